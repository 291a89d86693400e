-- Outbox: messages for Temporal.

-- Messages that a transaction wrote for Temporal. The relay sends each and deletes its row. They are announced outside of
-- the transactions that write them: Postgres takes one lock for the whole cluster from the notification to the end of the
-- commit.
create table outbox (
  id bigint generated always as identity primary key,
  message jsonb not null,
  available_at timestamptz not null default now(),
  attempts integer not null default 0,
  -- Messages are claimed in turns of organizations, so that one that writes thousands holds up nobody else.
  org_id uuid not null,
  -- A message that can't be sent is parked with the reason, for an operator to look at.
  parked_at timestamptz,
  error text,
  -- The overdue row that a sweep wrote the message for: while one waits, further sweeps write none for the row.
  overdue uuid,
  -- When a message was written: `available_at` moves with each attempt to send it.
  created_at timestamptz not null default now()
-- Nearly all rows are dead soon: a number counts, not a share.
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);
create index outbox_ready on outbox (org_id, available_at, id) where parked_at is null;
create unique index outbox_overdue on outbox (overdue) where overdue is not null and parked_at is null;
