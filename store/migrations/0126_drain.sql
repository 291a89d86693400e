-- The workflow of an endpoint (DrainEndpoint) sends the deliveries with `is_drained`. The others have a workflow of their
-- event (DeliverEvent), as processes of the previous version write them, until a worker of this version hands them over.
alter table deliveries add column is_drained boolean not null default false;
-- While a delivery is being attempted, next_attempt_at is when its worker counts as lost.
create index deliveries_drained on deliveries (webhook_id, (coalesce(next_attempt_at, created_at)), id)
  where is_drained and status not in ('delivered', 'failed');
-- Holds nothing once the previous version is gone.
create index deliveries_undrained on deliveries (id) where not is_drained and status not in ('delivered', 'failed');

alter table webhooks
  -- Until when a worker drains the endpoint, unless it goes on or stops: who writes a delivery need not wake it.
  add column awake_until timestamptz,
  -- No open delivery has an earlier id, so that older weeks of deliveries are not looked at. Null: a day ago.
  add column open_from timestamptz,
  -- Attempts that failed in a row, and when the first of them did.
  add column failures integer not null default 0,
  add column failing_since timestamptz,
  -- When the next attempt may be made at an endpoint that does not answer.
  add column probe_at timestamptz,
  add column swept_at timestamptz;

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
   where is_drained and status not in ('delivered', 'failed') order by webhook_id limit 1)
  union all
  select (select d.webhook_id from deliveries d
          where d.is_drained and d.status not in ('delivered', 'failed') and d.webhook_id > open.webhook_id
          order by d.webhook_id limit 1)
  from open where open.webhook_id is not null)
select webhook_id from open where webhook_id is not null;
