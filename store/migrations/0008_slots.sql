-- The recurring posting slots of an account, or of the whole organization where there is no account.
create table slots (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  account_id uuid references accounts,
  -- [{ "weekday": "monday", "time": "09:30" }]: times on the wall, in no zone.
  slots jsonb not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
-- Nobody's id stands for the organization: older servers know no unique nulls.
create unique index slots_account_key
  on slots (org_id, mode, coalesce(account_id, '00000000-0000-0000-0000-000000000000'));

-- The account whose slot the post's time is.
alter table posts add column slot_account_id uuid references accounts;
-- A slot is held by one post, until it is canceled, deleted or moved.
create unique index posts_slot_key on posts (slot_account_id, scheduled_at)
  where slot_account_id is not null and deleted_at is null and status <> 'canceled';
