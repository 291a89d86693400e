-- Whether the account's owner named it: connecting it again then leaves the name alone.
alter table accounts add column is_renamed boolean not null default false;

-- The login whose grant the account shares with others that were chosen from it; null for a grant of its
-- own. What is shared is not revoked as long as anybody else speaks through it.
alter table accounts add column shared_login bytea;
create index accounts_shared_login on accounts (shared_login) where shared_login is not null;

-- A login that covers several accounts, until somebody says which of them are to be connected.
create table pending_logins (
  -- SHA-256 of the token that leads to it: the token itself is shown once and never kept.
  token_digest bytea primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  platform text not null,
  -- The OAuth app; null for a shared one.
  network_id uuid references networks,
  tenant_id text,
  -- Where the user goes from our own page; null to stay there.
  redirect_uri text,
  -- What can be chosen: [{ network_unique_id, username, display_name, … }].
  offers jsonb not null,
  -- What the platform granted, sealed to the worker's key; null once the choice is made.
  grants_sealed bytea,
  -- The choice, by the platform's ids, and the accounts that it became, in the same order.
  chosen text[],
  account_ids uuid[],
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index pending_logins_expiry on pending_logins (expires_at);
