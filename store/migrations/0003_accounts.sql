-- Accounts, the OAuth apps through which they are connected, and logins that are under way.

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

create table accounts (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  platform text not null,
  network_unique_id text not null,
  username text not null,
  display_name text not null,
  account_type text not null default 'profile',
  profile_image_url text,
  profile_url text,
  tenant_id text,
  profile_id uuid constraint accounts_profile references profiles on delete set null,
  social_network_id uuid,
  status text not null default 'active'
    check (status in ('active', 'token_expired', 'reauth_required', 'disconnected')),
  scopes text[] not null default '{}',
  -- The grant (access token, refresh token and what else the platform needs), sealed to the worker's key.
  grant_sealed bytea,
  -- Raised by each refresh: a process that refreshes says which grant the platform refused.
  grant_version bigint not null default 0,
  -- Held by the one process that is refreshing the grant: a rotating refresh token dies when used twice.
  refresh_leased_until timestamptz,
  token_expires_at timestamptz,
  last_synced_at timestamptz,
  last_error_code text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- True if the account's owner named it: connecting it again then leaves the name alone.
  is_renamed boolean not null default false,
  -- The login whose grant the account shares with others that were chosen from it; null for a grant of its
  -- own. What is shared is not revoked as long as anybody else speaks through it.
  login_digest bytea,
  -- When the grant was got: how long it lives, and whether it is old enough to be renewed, counts from here.
  granted_at timestamptz,
  swept_at timestamptz,
  -- Until then no further post of the account is attempted: the platform throttled one.
  rests_until timestamptz,
  -- An account that was disconnected and is connected for another end tenant gets a row of its own; the former one keeps
  -- what the former tenant made of it. Of the rows of an account at its platform one is current, the one that is connected
  -- or was last; the others have null here, of which a unique constraint allows any number.
  is_current boolean default true constraint accounts_is_current_check check (is_current),
  -- The time at which the platform ends the whole grant, if it tells, and the end that the owner was told of.
  grant_expires_at timestamptz,
  grant_end_told timestamptz,
  constraint accounts_identity_key unique (org_id, mode, platform, network_unique_id, is_current)
);
create index accounts_page on accounts (org_id, mode, created_at desc, id desc) where status <> 'disconnected';
create index accounts_username on accounts (org_id, mode, username) where status <> 'disconnected';
create index accounts_network_unique_id on accounts (org_id, mode, network_unique_id) where status <> 'disconnected';
create index accounts_profile on accounts (profile_id) where profile_id is not null;
create index accounts_leaving on accounts (updated_at) where status = 'disconnected' and grant_sealed is not null;
create index accounts_ending on accounts (token_expires_at)
  where status = 'active' and grant_sealed is not null and token_expires_at is not null;
create index accounts_tenant on accounts (org_id, mode, tenant_id) where tenant_id is not null;
create index accounts_grant_ends on accounts (grant_expires_at)
  where status = 'active' and grant_expires_at is not null;
create index accounts_login_digest on accounts (login_digest) where login_digest is not null;

-- An authorization that is under way at a platform: what the `state` that travels stands for.
create table oauth_states (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  platform text not null,
  -- The OAuth app; null for a shared one.
  network_id uuid references networks,
  -- Address to which the platform sends its user back.
  callback text not null,
  -- Address to which the user goes from there.
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
  expires_at timestamptz not null,
  -- A login that only a call with an API key connects.
  confirm boolean not null default false,
  -- Who began the login, and what it may change: see store::accounts::oauth_states::Begun.
  begun jsonb
);
create index oauth_states_expiry on oauth_states (expires_at);

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
  -- Address to which the user goes from our own page; null to stay there.
  redirect_uri text,
  -- Accounts that can be chosen: [{ network_unique_id, username, display_name, … }].
  offers jsonb not null,
  -- Grants of the platform, sealed to the worker's key; null once the choice is made.
  grants_sealed bytea,
  -- The choice, by the platform's ids, and the accounts that it became, in the same order.
  chosen text[],
  account_ids uuid[],
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- As of the authorization.
  confirm boolean not null default false,
  -- The account that the login was to connect again, which may change its tenant.
  account_id uuid,
  begun jsonb
);
create index pending_logins_expiry on pending_logins (expires_at);

-- How the connect pages of an organization look, in both modes; null where it has set nothing.
create table connect_branding (
  org_id uuid primary key references organizations,
  name text,
  logo_url text,
  -- #rrggbb
  accent_color text,
  support_url text,
  imprint_url text,
  -- { page: { heading, description, button } }
  pages jsonb not null,
  updated_at timestamptz not null
);

-- Branding set by test keys: the connect pages of test mode show it until a live key sets the branding.
create table connect_branding_previews (
  org_id uuid primary key references organizations,
  name text,
  logo_url text,
  accent_color text,
  support_url text,
  imprint_url text,
  pages jsonb not null,
  updated_at timestamptz not null
);

-- Apps that a platform refuses, such as one that has spent what it may: nothing is published with them until one post
-- has been tried again.
create table app_holds (
  -- As app_of returns it.
  app text primary key,
  platform text not null,
  mode text not null,
  -- Message of the platform.
  message text not null,
  since timestamptz not null,
  -- When the next post is tried.
  until timestamptz not null,
  -- The target that looks whether the app is taken again. Its next attempt is not held: it may have refreshed a token first.
  looker uuid
);

-- The app of an account: its organization's own, or the installation's. In test mode each organization has one of its
-- own, so that a simulated refusal holds nobody else's posts.
create function app_of(platform text, mode text, org uuid, network uuid) returns text language sql immutable as $$
  select coalesce(network::text, platform || case mode when 'live' then '' else ' ' || org::text end)
$$;

-- The accounts with a stored grant, for a role that may not read grants: the sweeper asks which accounts have one.
create view granted_accounts as
select id, org_id, mode, platform, status, token_expires_at, granted_at, updated_at, swept_at
from accounts
where grant_sealed is not null;
