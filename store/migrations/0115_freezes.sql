-- What operators froze: no publishing call begins for it until it is released. A small table, read by every attempt.
create table freezes (
  id uuid primary key,
  kind text not null check (kind in ('platform', 'account', 'organization')),
  -- Id of the platform, account or organization.
  subject text not null,
  -- Null for both modes.
  mode text check (mode in ('live', 'test')),
  -- Shown to the owners of the posts that wait.
  reason text not null,
  frozen_by text not null,
  created_at timestamptz not null,
  released_at timestamptz
);
create index freezes_open on freezes (kind, subject) where released_at is null;
-- The freeze that a target waits for.
alter table targets add column freeze_id uuid;
create index targets_frozen on targets (freeze_id) where freeze_id is not null;
