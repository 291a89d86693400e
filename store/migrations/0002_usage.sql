-- Usage: what was counted for rate limits and monthly quotas.

-- Counters by organization and mode, in one row, so that a call locks and counts them at once. Calls in test mode use up
-- nothing that live calls need.
create table usage_counters (
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  -- The first day of the month that is counted; UTC.
  month date not null,
  requests bigint not null,
  -- True if the last call that the quota counts found it used up.
  exhausted boolean not null default false,
  -- { bucket: [start of the window in Unix seconds, calls in it] }
  windows jsonb not null,
  primary key (org_id, mode)
-- Rewritten by every call: room on the page keeps the row's versions out of the index.
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Counters of the callers that are limited to a part of an organization's data: keys with a bound, and client tokens. They
-- count beside the organization's own keys, so that they neither use up what these need nor lock the row that these wait
-- for.
create table limited_usage (
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  -- The first day of the month that is counted; UTC.
  month date not null,
  requests bigint not null,
  -- True if the last call that the quota counts found it used up.
  exhausted boolean not null default false,
  -- { bucket: [start of the window in Unix seconds, calls in it] }
  windows jsonb not null,
  primary key (org_id, mode)
-- As of `usage_counters`.
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Callers that are not known, by address. Of no worth after their window, so never logged ahead.
create unlogged table ip_rate_limits (
  bucket text not null,
  address text not null,
  ends_at timestamptz not null,
  calls bigint not null,
  primary key (bucket, address)
);
create index ip_rate_limits_ended on ip_rate_limits (ends_at);
