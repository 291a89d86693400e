-- These functions run as the owner of the schema. Without pg_temp at the end of its search path, a function finds a temporary
-- table of its caller before the table of the schema. `store::roles` grants the processes their use.
alter function partition_create(text, timestamptz) set search_path = public, pg_temp;
alter function partition_detach(text, timestamptz) set search_path = public, pg_temp;
alter function partition_discard(text, timestamptz, integer) set search_path = public, pg_temp;
revoke execute on function partition_create(text, timestamptz) from public;
revoke execute on function partition_detach(text, timestamptz) from public;
revoke execute on function partition_discard(text, timestamptz, integer) from public;
