-- Counters of the callers that are limited to a part of an organization's data: keys with a bound, and client tokens. They
-- count beside the organization's own keys, as `mode_usage` does, so that they neither use up what these need nor lock the
-- row that these wait for. A process of the previous version counts them in `mode_usage` still.
create table limited_usage (
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  -- The first day of the month that is counted; UTC.
  month date not null,
  requests bigint not null,
  -- Whether the last call that the quota counts found it used up.
  exhausted boolean not null default false,
  -- { bucket: [start of the window in Unix seconds, calls in it] }
  windows jsonb not null,
  primary key (org_id, mode)
-- Rewritten by every call: room on the page keeps the row's versions out of the index.
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
