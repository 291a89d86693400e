-- The intent of a publishing call says until when the call may be on its way, and the first call that
-- stayed without an answer is remembered, so that a look-up begins there.
alter table publications add column commit_deadline timestamptz;
alter table publications add column doubted_since timestamptz;
update publications set commit_deadline = commit_begun_at + interval '1 hour' where commit_begun_at is not null;

-- Whether the next attempt continues the last one (the platform was processing) and costs no budget.
-- processing_since only says when the polling window of the current processing phase opened.
alter table targets add column is_continuation boolean not null default false;
update targets set is_continuation = true where processing_since is not null;
