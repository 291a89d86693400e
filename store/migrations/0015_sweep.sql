-- When a row that is overdue was last carried to Temporal again: its workflow may be gone.
alter table posts add column swept_at timestamptz;
alter table deliveries add column swept_at timestamptz;
alter table imports add column swept_at timestamptz;
alter table media add column swept_at timestamptz;
alter table accounts add column swept_at timestamptz;

create index posts_due on posts ((coalesce(scheduled_at, created_at)))
  where status in ('scheduled', 'queued', 'publishing');
create index targets_incomplete on targets (next_attempt_at)
  where status = 'published' and next_attempt_at is not null;
create index deliveries_open on deliveries ((coalesce(next_attempt_at, created_at)))
  where status in ('pending', 'delivering');
create index imports_open on imports (created_at) where status in ('pending', 'running');
create index media_open on media (updated_at)
  where deleted_at is not null or status = 'uploaded' or status = 'pending_upload' and source_url is not null;
create index accounts_leaving on accounts (updated_at) where status = 'disconnected' and grant_sealed is not null;
create index accounts_ending on accounts (token_expires_at)
  where status = 'active' and grant_sealed is not null and token_expires_at is not null;
