-- See 0122. Old weeks are removed by dropping a partition: deleting as many rows would cost more than writing them.
--
-- No foreign key leads to or from these tables. From `deliveries` to `events`, it would make Postgres look for references
-- to each row of a partition before it is dropped. To `posts`, `organizations` and `webhooks`, creating a partition would
-- lock these tables against writes; their rows are never deleted.
alter table deliveries drop constraint deliveries_event_id_fkey, drop constraint deliveries_webhook_id_fkey;
alter table events drop constraint events_org_id_fkey, drop constraint events_post_id_fkey;

alter table events rename to events_first;
alter table deliveries rename to deliveries_first;
-- The names go to the indexes of the new tables; these become their first parts.
do $$
declare
  index record;
begin
  for index in
    select indexname, tablename from pg_indexes
    where schemaname = current_schema and tablename in ('events_first', 'deliveries_first')
      and indexname <> 'deliveries_endpoint_key'
  loop
    execute format('alter index %I rename to %I', index.indexname,
      index.tablename || substring(index.indexname from '_.*$'));
  end loop;
end $$;

create table events (
  id uuid primary key,
  org_id uuid not null,
  mode text not null constraint events_mode_check check (mode in ('live', 'test')),
  event text not null,
  post_id uuid,
  target_id uuid,
  account_id uuid,
  -- The exact bytes of every delivery: fixed here, signed anew at each attempt.
  body text not null,
  created_at timestamptz not null default now(),
  -- Read by processes of the previous version only, which delete events without deliveries.
  has_deliveries boolean not null default true,
  -- Where the event is in the stream of its owner; null until a reader asks for it. See store::events.
  streamed_at timestamptz
) partition by range (id);
create index events_post on events (post_id) where post_id is not null;
create index events_stream on events (org_id, mode, streamed_at, id) where streamed_at is not null;
create index events_unstreamed on events (org_id, mode, created_at, id) where streamed_at is null;

create table deliveries (
  id uuid primary key,
  event_id uuid not null,
  webhook_id uuid not null,
  org_id uuid not null,
  mode text not null,
  event text not null,
  status text not null default 'pending' constraint deliveries_status_check
    check (status in ('pending', 'delivering', 'delivered', 'failed')),
  attempts integer not null default 0,
  response_status integer,
  response_excerpt text,
  latency_ms integer,
  error text,
  next_attempt_at timestamptz,
  created_at timestamptz not null default now(),
  delivered_at timestamptz,
  round integer not null default 0,
  swept_at timestamptz
) partition by range (id);
create index deliveries_page on deliveries (webhook_id, created_at desc, id desc);
create index deliveries_troubled on deliveries (webhook_id, created_at) where error is not null;
create index deliveries_open on deliveries ((coalesce(next_attempt_at, created_at)))
  where status in ('pending', 'delivering');

-- For what no partition is made for: nothing that is written may fail for want of one.
create table events_default partition of events default;
create table deliveries_default partition of deliveries default;
-- One delivery per event and endpoint: a unique index of the whole table would have to contain its id, so each partition
-- has one, as the first one has `deliveries_endpoint_key`.
create unique index on deliveries_default (event_id, webhook_id);

do $$
declare
  parent text;
  bound text;
begin
  foreach parent in array array['events', 'deliveries'] loop
    select substring(pg_get_constraintdef(oid) from '''([0-9a-f-]{36})''') into strict bound
    from pg_constraint where conname = parent || '_first_bound';
    execute format('alter table %I attach partition %I for values from (minvalue) to (%L)', parent, parent || '_first', bound);
  end loop;
end $$;

-- The weekly partitions of a table, in order, with their upper bounds; without the default partition.
create function partitions(parent text) returns table (name text, upper_bound uuid)
language sql stable set search_path from current as $$
  select c.relname::text, substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([0-9a-f-]{36})''\)')::uuid as upper_bound
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent = parent::regclass and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
  order by upper_bound
$$;

-- Creates the partitions of the weeks until `ahead` that are missing. Functions, owned by who migrates: processes need no
-- right to change the schema. They wait for no lock longer than a fifth of a second, and fail instead, to be called again.
--
-- Rows that were written before there was a partition for them are moved into it, unless they are so many that writers
-- would wait for it: then they stay in the default partition.
create function partition_create(parent text, ahead timestamptz) returns integer
language plpgsql security definer set search_path from current set lock_timeout = '200ms' as $$
declare
  fallback text := parent || '_default';
  low uuid;
  high uuid;
  created integer := 0;
  waiting integer;
  name text;
begin
  if parent not in ('events', 'deliveries') then
    raise exception 'the table % has no partitions', parent;
  end if;
  select upper_bound into strict low from partitions(parent) order by upper_bound desc limit 1;
  while uuid_time(low) < ahead loop
    high := uuid_at((date_trunc('week', uuid_time(low) at time zone 'utc') + interval '1 week') at time zone 'utc');
    execute format('select count(*) from (select from %I where id >= %L and id < %L limit 10001) t', fallback, low, high)
      into waiting;
    if waiting <= 10000 then
      name := format('%s_%s', parent, to_char(uuid_time(low) at time zone 'utc', 'YYYYMMDD'));
      execute format('create table %I (like %I including defaults including constraints including indexes)', name, parent);
      if parent = 'deliveries' then
        execute format('create unique index on %I (event_id, webhook_id)', name);
      end if;
      if waiting > 0 then
        execute format('lock table %I in access exclusive mode', fallback);
        execute format('with moved as (delete from %I where id >= %L and id < %L returning *) insert into %I select * from moved',
          fallback, low, high, name);
      end if;
      execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, name, low, high);
      created := created + 1;
    end if;
    low := high;
  end loop;
  return created;
end $$;

-- Detaches the oldest partition if all of it is before a time. Returns whether it did. It is dropped in a transaction of
-- its own, because deleting its files may take longer than the lock of the table may be held.
create function partition_detach(parent text, before timestamptz) returns boolean
language plpgsql security definer set search_path from current set lock_timeout = '200ms' as $$
declare
  oldest record;
begin
  if parent not in ('events', 'deliveries') then
    raise exception 'the table % has no partitions', parent;
  end if;
  select * into oldest from partitions(parent) limit 1;
  -- One is always left, from which the next one continues.
  if oldest.upper_bound > uuid_at(before) or (select count(*) from partitions(parent)) < 2 then
    return false;
  end if;
  execute format('alter table %I detach partition %I', parent, oldest.name);
  execute format('alter table %I rename to %I', oldest.name, oldest.name || '_detached');
  return true;
end $$;

-- Drops detached partitions, and deletes up to `most` rows before a time from the default partition. Returns the number of
-- partitions and rows.
create function partition_discard(parent text, before timestamptz, most integer) returns integer
language plpgsql security definer set search_path from current set lock_timeout = '200ms' as $$
declare
  name text;
  discarded integer;
  dropped integer := 0;
begin
  if parent not in ('events', 'deliveries') then
    raise exception 'the table % has no partitions', parent;
  end if;
  for name in
    select relname from pg_class
    where relkind = 'r' and not relispartition and relname ~ ('^' || parent || '_(first|\d{8})_detached$')
      and relnamespace = (select relnamespace from pg_class where oid = parent::regclass)
  loop
    execute format('drop table %I', name);
    dropped := dropped + 1;
  end loop;
  execute format('delete from %1$I where id in (select id from %1$I where id < %2$L order by id limit %3$s)',
    parent || '_default', uuid_at(before), most);
  get diagnostics discarded = row_count;
  return discarded + dropped;
end $$;

select partition_create(parent, now() + interval '4 weeks') from unnest(array['events', 'deliveries']) parent;

-- Posts whose timeline is still to be deleted, by the time of their end.
alter table posts add column timeline_deleted_at timestamptz;
create index posts_timeline on posts (updated_at)
  where timeline_deleted_at is null and status in ('published', 'partial', 'failed', 'canceled');
