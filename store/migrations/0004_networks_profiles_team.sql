-- An organization's own OAuth app at one platform. A removed one keeps its row: accounts that were
-- connected through it go on refreshing with its secret.
create table networks (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  platform text not null,
  display_name text,
  client_id text,
  -- The client secret, sealed to the worker's key.
  secret_sealed bytea,
  redirect_uri text,
  scopes text[] not null default '{}',
  extra_config jsonb not null default '{}',
  is_enabled boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  constraint networks_platform_key unique (org_id, mode, platform)
);

-- An authorization that is under way at a platform: what the `state` that travels stands for.
create table states (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  platform text not null,
  -- The OAuth app; null for a shared one.
  network_id uuid references networks,
  -- Where the platform sends its user back to.
  callback text not null,
  -- Where the user goes from there.
  redirect_uri text,
  tenant_id text,
  scopes text[] not null,
  -- The account that is to be connected again, and who it has to be at the platform.
  account_id uuid references accounts,
  network_unique_id text,
  is_forced boolean not null,
  -- How often somebody came back with it; only the first one counts.
  claims integer not null default 0,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index states_expiry on states (expires_at);

-- A group of accounts: a brand, a client.
create table profiles (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  name text not null,
  tenant_id text,
  description text,
  timezone text not null,
  default_config jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index profiles_owner on profiles (org_id, mode, created_at desc, id desc);

alter table accounts
  add constraint accounts_profile foreign key (profile_id) references profiles on delete set null;
create index accounts_profile on accounts (profile_id) where profile_id is not null;

-- People. They belong to the organization, whatever the mode of the key that asks.
create table members (
  id uuid primary key,
  org_id uuid not null references organizations,
  email text not null,
  name text,
  role text not null check (role in ('owner', 'admin', 'publisher', 'viewer')),
  status text not null check (status in ('invited', 'active')),
  -- SHA-256 of the token in the invitation, until it is accepted.
  invitation_digest bytea constraint members_invitation_key unique,
  invited_at timestamptz not null,
  joined_at timestamptz
);
create unique index members_email_key on members (org_id, lower(email));
