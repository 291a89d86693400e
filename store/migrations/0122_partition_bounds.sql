-- `events` and `deliveries` become partitioned by week of their ids, which begin with the time (UUIDv7), in three steps,
-- so that a large table is neither copied nor locked: this one says up to where the existing rows reach, the next one
-- checks it while the table is in use, and the last one makes the existing table the first partition, which then needs no
-- further check. The bound leaves two weeks for that.
create function uuid_at(at timestamptz) returns uuid language sql immutable strict parallel safe as $$
  select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$$;
create function uuid_time(id uuid) returns timestamptz language sql immutable strict parallel safe as $$
  select to_timestamp(('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)
$$;

do $$
declare
  bound timestamptz;
begin
  -- A row from a clock that was ahead may lie beyond.
  select greatest(now(), uuid_time((select id from events order by id desc limit 1)),
      uuid_time((select id from deliveries order by id desc limit 1))) + interval '2 weeks' into bound;
  bound := (date_trunc('week', bound at time zone 'utc') + interval '1 week') at time zone 'utc';
  execute format('alter table events add constraint events_first_bound check (id < %L) not valid', uuid_at(bound));
  execute format('alter table deliveries add constraint deliveries_first_bound check (id < %L) not valid', uuid_at(bound));
end $$;

-- Dead rows of these tables cost every reader; the default waits until a fifth of a table is dead, which is millions of
-- rows. In the outbox nearly all rows are dead soon: there a number counts, not a share. None of them has room left for
-- new versions of its rows (fillfactor), because each change of a status is one of an indexed column.
alter table outbox set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);
alter table targets set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
alter table posts set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
alter table publications set (autovacuum_vacuum_scale_factor = 0.02);
-- Vacuum marks pages of which every row is old, so that deletions by time and lists read no more than they need.
alter table timeline set (autovacuum_vacuum_insert_scale_factor = 0.02);
alter table mode_usage set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
