-- What was changed in a live target's posts since they were published: `containers`, new texts by position, and
-- `config`, settings of the platform.
alter table targets add column edits jsonb;
alter table targets add column edited_at timestamptz;
-- The edit that is being made, or was made last, as a digest of its content; and the time until which another one
-- waits.
alter table targets add column edit_digest text;
alter table targets add column edit_until timestamptz;
