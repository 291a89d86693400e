-- Webhooks: endpoints, events and deliveries. Events and deliveries are partitioned by week.

-- Ids begin with the time (UUIDv7): the least id of a time, and the time of an id.
create function uuid_at(at timestamptz) returns uuid language sql immutable strict parallel safe as $$
  select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$$;

create function uuid_time(id uuid) returns timestamptz language sql immutable strict parallel safe as $$
  select to_timestamp(('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)
$$;

create table webhooks (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  url text not null,
  events text[] not null,
  description text,
  is_active boolean not null default true,
  secret_sealed bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  -- Until when a worker drains the endpoint, unless it goes on or stops: who writes a delivery need not wake it.
  awake_until timestamptz,
  -- No open delivery has an earlier id, so that older weeks of deliveries are not looked at. Null: a day ago.
  open_from timestamptz,
  -- Attempts that failed in a row, and when the first of them did.
  failures integer not null default 0,
  failing_since timestamptz,
  -- When the next attempt may be made at an endpoint that does not answer.
  probe_at timestamptz,
  swept_at timestamptz,
  -- The signing secret that takes the place of the present one when it is rotated: made before, so that the receiver knows it
  -- by then.
  next_secret_sealed bytea
);
create index webhooks_owner on webhooks (org_id, mode, created_at desc, id desc) where deleted_at is null;

-- The last place that is taken in an owner's stream.
create table event_streams (
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  streamed_at timestamptz not null,
  primary key (org_id, mode)
);

-- Everything that was said to endpoints and is read at GET /events. An event stays true when what it is about is gone.
-- No foreign key leads to or from it and `deliveries`: to drop a partition, Postgres would look for references to each of
-- its rows; creating one would lock the tables that it refers to, whose rows are never deleted.
create table events (
  id uuid primary key,
  org_id uuid not null,
  mode text not null constraint events_mode_check check (mode in ('live', 'test')),
  event text not null,
  post_id uuid,
  target_id uuid,
  account_id uuid,
  -- The exact bytes of every delivery: fixed here, signed again at each attempt.
  body text not null,
  created_at timestamptz not null default now(),
  -- Place of the event in the stream of its owner; null until a reader asks for it. See store::webhooks::events.
  streamed_at timestamptz
) partition by range (id);
create index events_post on events (post_id) where post_id is not null;
create index events_stream on events (org_id, mode, streamed_at, id) where streamed_at is not null;
create index events_unstreamed on events (org_id, mode, created_at, id) where streamed_at is null;
-- The events of an owner, newest first, of each name or some: see store::webhooks::events::newest. By their time, which no other
-- index has: by the id, Postgres would read through the primary key for a name that it takes for a common one.
create index events_newest on events (org_id, mode, event, created_at desc, id desc);

-- An event at an endpoint.
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
  swept_at timestamptz,
  -- Answers of an endpoint to each attempt of a delivery, oldest first; null while the first attempt is the only one or
  -- none has failed. The columns of the row have the last one. See store::webhooks::deliveries::Answer.
  answers jsonb
) partition by range (id);
create index deliveries_page on deliveries (webhook_id, created_at desc, id desc);
create index deliveries_troubled on deliveries (webhook_id, created_at) where error is not null;
create index deliveries_open on deliveries ((coalesce(next_attempt_at, created_at)))
  where status in ('pending', 'delivering');
-- The open deliveries of an endpoint. While one is being attempted, next_attempt_at is when its worker counts as lost.
create index deliveries_drained on deliveries (webhook_id, (coalesce(next_attempt_at, created_at)), id)
  where status not in ('delivered', 'failed');

-- For what no partition is made for: nothing that is written may fail for want of one.
create table events_default partition of events default;
create table deliveries_default partition of deliveries default;
-- One delivery per event and endpoint: a unique index of the whole table would have to contain its id, so each partition has
-- one.
create unique index on deliveries_default (event_id, webhook_id);

-- The first partitions, from which the next ones continue: until the end of the present week.
do $$
declare
  bound text := uuid_at((date_trunc('week', now() at time zone 'utc') + interval '1 week') at time zone 'utc');
begin
  execute format('create table events_first partition of events for values from (minvalue) to (%L)', bound);
  execute format('create table deliveries_first partition of deliveries for values from (minvalue) to (%L)', bound);
end $$;
create unique index on deliveries_first (event_id, webhook_id);

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
language plpgsql security definer set search_path = public, pg_temp set lock_timeout = '200ms' as $$
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
language plpgsql security definer set search_path = public, pg_temp set lock_timeout = '200ms' as $$
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
language plpgsql security definer set search_path = public, pg_temp set lock_timeout = '200ms' as $$
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

-- Functions that run as the owner of the schema: `store::upkeep::roles` grants the processes their use.
revoke execute on function partition_create(text, timestamptz) from public;
revoke execute on function partition_detach(text, timestamptz) from public;
revoke execute on function partition_discard(text, timestamptz, integer) from public;

-- Returns which of the endpoints are asleep. Until the transaction ends, none of them falls asleep: a worker takes the lock
-- exclusively for that, and only if nobody has it, so that nobody waits for it. A function, because it must read after it
-- has the lock, and each statement of a function sees what is committed when it begins.
create function endpoints_asleep(ids uuid[]) returns setof uuid language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext('drain'), hashtext(id::text)) from unnest(ids) id;
  return query
    select w.id from webhooks w
    where w.id = any(ids) and (w.awake_until is null or w.awake_until < now()) and (w.probe_at is null or w.probe_at < now());
end $$;

-- Endpoints with open deliveries, found one by one in the index, however many deliveries each has.
create view endpoints_open as
with recursive open as (
  (select webhook_id from deliveries
   where status not in ('delivered', 'failed') order by webhook_id limit 1)
  union all
  select (select d.webhook_id from deliveries d
          where d.status not in ('delivered', 'failed') and d.webhook_id > open.webhook_id
          order by d.webhook_id limit 1)
  from open where open.webhook_id is not null)
select webhook_id from open where webhook_id is not null;

-- Replaces the signing secret of an endpoint: by the next one, or else by `secret`. Returns whether there was a next one;
-- null if there is no such endpoint. Runs as the owner, because the role of the API may not read sealed values.
create function endpoint_rotate(endpoint uuid, org uuid, in_mode text, secret bytea, at timestamptz) returns boolean
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  prepared bytea;
begin
  select next_secret_sealed into prepared from webhooks
  where id = endpoint and org_id = org and mode = in_mode and deleted_at is null for no key update;
  if not found then
    return null;
  end if;
  update webhooks set secret_sealed = coalesce(prepared, secret), next_secret_sealed = null, updated_at = at
  where id = endpoint;
  return prepared is not null;
end $$;

revoke execute on function endpoint_rotate(uuid, uuid, text, bytea, timestamptz) from public;
