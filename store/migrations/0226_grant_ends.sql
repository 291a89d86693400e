-- The time at which the platform ends the whole grant, if it tells, and the end that the owner was told of.
alter table accounts
  add column grant_expires_at timestamptz,
  add column grant_end_told timestamptz;

create index accounts_grant_ends on accounts (grant_expires_at)
  where status = 'active' and grant_expires_at is not null;
