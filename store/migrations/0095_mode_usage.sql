-- Counters of rate limits and of the monthly quota, by mode: calls in test mode use up nothing that live calls
-- need. A table beside `usage_counters`, which processes of the previous version count in, one row per
-- organization, while this one is deployed; a later release drops it.
create table mode_usage (
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
) with (fillfactor = 20);

-- What was counted for both together goes on as what live mode used, so that nobody is given a second quota for
-- the month.
insert into mode_usage (org_id, mode, month, requests, exhausted, windows)
select org_id, 'live', month, requests, exhausted, windows from usage_counters;
