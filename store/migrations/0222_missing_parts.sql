-- Parts of a live target that are not published and not awaited any more, each with its reason: see domain::Missing.
-- Null while none is known to be missing.
alter table targets add column missing jsonb;
-- Round of retries in which the missing parts of a live target are published; null once its end was told.
alter table targets add column resumed_round integer;

-- As before, and with the texts that were changed on one target: a missing part is published with its new text.
create or replace view target_containers as
  select t.id as target_id, c.id, c.position, coalesce(t.edits -> 'containers' ->> c.position::text, c.content) as content,
    c.media
  from targets t join containers c on c.post_id = t.post_id
  where t.variant = 0
  union all
  select t.id, c.id, c.position, coalesce(t.edits -> 'containers' ->> c.position::text, c.content), c.media
  from targets t join variant_containers c on c.post_id = t.post_id and c.variant = t.variant
  where t.variant > 0;
