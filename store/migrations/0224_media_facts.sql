-- What a file says of its encoding; null for files that were inspected before.
alter table media add column facts jsonb;
