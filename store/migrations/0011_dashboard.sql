-- Who is signed in to the dashboard, by the key that was shown. What the key may not do any more, nobody
-- who came in with it may either.
create table sessions (
  -- SHA-256 of the text in the cookie: the text itself is never kept.
  digest bytea primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  key_id uuid not null references api_keys on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_expiry on sessions (expires_at);

-- What the overview asks every few seconds: what has gone wrong, and what should be out by now.
create index targets_troubled on targets (org_id, mode, updated_at) where status in ('failed', 'dead');
create index posts_unfinished on posts (org_id, mode, (coalesce(scheduled_at, created_at)))
  where deleted_at is null and status in ('scheduled', 'queued', 'publishing');
create index deliveries_troubled on deliveries (webhook_id, created_at) where error is not null;
