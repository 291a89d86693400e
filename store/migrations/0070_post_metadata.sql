-- The caller's own data on a post: texts by key.
alter table posts add column metadata jsonb not null default '{}';
