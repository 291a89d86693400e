-- Indexes behind foreign keys whose parents are deleted: without one, each deleted parent costs a scan of the table.
create index timeline_target on timeline (target_id) where target_id is not null;

-- An event is what was said about a target or an account, and stays true when that is gone. These two keys made every
-- insert lock three rows, and nothing is found by them, so that an index would be written for nothing.
alter table events drop constraint events_target_id_fkey;
alter table events drop constraint events_account_id_fkey;
