-- The number of frames of an animation, and whether width and height are those of the picture as it is displayed: in
-- rows of earlier versions they are those of the stored pixels, which a camera may have laid on their side.
alter table media add column frames integer;
alter table media add column is_measured_as_displayed boolean not null default false;
create index media_unmeasured on media (id)
  where not is_measured_as_displayed and status = 'ready' and deleted_at is null and kind in ('image', 'gif');
