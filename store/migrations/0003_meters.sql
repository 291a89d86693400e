-- What an organization may use, and what it has used.

-- The key of its plan; plans themselves are configuration.
alter table organizations add column plan text not null default 'default';

-- One row per organization holds all its counters, so that a call locks and counts them at once.
create table meters (
  org_id uuid primary key references organizations,
  -- The first day of the month that is counted; UTC.
  month date not null,
  requests bigint not null,
  -- Whether the last call that the quota counts found it used up.
  exhausted boolean not null default false,
  -- { bucket: [start of the window in Unix seconds, calls in it] }
  windows jsonb not null
-- Rewritten by every call: room on the page keeps the row's versions out of the index.
) with (fillfactor = 20);

-- Callers that are not known yet, by address. Of no worth after their window, so never written twice.
create unlogged table addresses (
  bucket text not null,
  address text not null,
  ends_at timestamptz not null,
  calls bigint not null,
  primary key (bucket, address)
);
create index addresses_ended on addresses (ends_at);

-- What a month's plan includes is counted by the time of publishing.
create index targets_published on targets (org_id, mode, published_at) where published_at is not null;
