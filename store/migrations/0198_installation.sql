-- Which server and database the rows were written on, and when a worker last said that it works on them: see
-- store::lineage. `written_by` is the transaction that wrote the row, as its xmin says until the row is written anew.
create table installation (
  is_only boolean primary key default true check (is_only),
  id uuid not null,
  server text not null,
  written_by xid8 not null,
  recorded_at timestamptz not null
);
create table installation_beats (
  is_only boolean primary key default true check (is_only),
  at timestamptz not null
);

-- The server, its history and the database. A restore to a point in time and a promotion begin another timeline.
create function server_lineage() returns text language sql stable as $$
  select concat_ws('/',
    (select system_identifier from pg_control_system()),
    substring(pg_walfile_name(pg_current_wal_lsn()) for 8),
    (select oid from pg_database where datname = current_database()))
$$;
