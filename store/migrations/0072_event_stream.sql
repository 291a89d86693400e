-- Every event is kept for GET /events, also one that no endpoint is subscribed to. Such an event has no delivery
-- and is deleted after 30 days; one with deliveries stays with the log of them. Processes of the previous version
-- write only events with deliveries.
alter table events add column has_deliveries boolean not null default true;
-- Where the event is in the stream of its owner; null until a reader asks for it. See store::events.
alter table events add column streamed_at timestamptz;

-- The last place that is taken in an owner's stream.
create table event_streams (
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  streamed_at timestamptz not null,
  primary key (org_id, mode)
);

create index events_stream on events (org_id, mode, streamed_at, id) where streamed_at is not null;
create index events_unstreamed on events (org_id, mode, created_at, id) where streamed_at is null;
create index events_expiring on events (created_at) where not has_deliveries;
