-- While a post waits in the database only: the time of its first target, before which a workflow is started for it.
-- Null once a workflow was asked for; so are the posts of before, which all have one. Infinity for a draft.
alter table posts add column starts_at timestamptz;
create index posts_starting on posts (starts_at) where starts_at is not null;
