-- Every row belongs to an organization in one mode; every query names both.

create table organizations (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now()
);

create table api_keys (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  name text not null,
  -- SHA-256 of the key: the key itself is shown once and never kept.
  digest bytea not null constraint api_keys_digest_key unique,
  last_four text not null,
  scopes text[] not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now()
);
create index api_keys_owner on api_keys (org_id, mode, created_at desc, id desc);

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
  profile_id uuid,
  social_network_id uuid,
  status text not null default 'active' check (status in ('active', 'token_expired', 'reauth_required', 'disconnected')),
  scopes text[] not null default '{}',
  -- The grant (access token, refresh token and what else the platform needs), sealed to the worker's key.
  grant_sealed bytea,
  -- Raised by each refresh: whoever refreshes says which grant the platform refused.
  grant_version bigint not null default 0,
  -- Held by the one process that is refreshing the grant: a rotating refresh token dies when used twice.
  refresh_leased_until timestamptz,
  token_expires_at timestamptz,
  last_synced_at timestamptz,
  last_error_code text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint accounts_identity_key unique (org_id, mode, platform, network_unique_id)
);
create index accounts_page on accounts (org_id, mode, created_at desc, id desc) where status <> 'disconnected';
create index accounts_username on accounts (org_id, mode, username) where status <> 'disconnected';
create index accounts_network_unique_id on accounts (org_id, mode, network_unique_id) where status <> 'disconnected';

create table posts (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  status text not null check (status in
    ('draft', 'scheduled', 'queued', 'publishing', 'published', 'partial', 'failed', 'canceled')),
  is_draft boolean not null,
  -- Raised by each edit: an attempt that was started for an older version finds that it is stale.
  version integer not null default 1,
  scheduled_at timestamptz,
  published_at timestamptz,
  default_config jsonb not null default '{}',
  external_ref text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create unique index posts_external_ref_key on posts (org_id, mode, external_ref) where external_ref is not null;
create index posts_page on posts (org_id, mode, created_at desc, id desc) where deleted_at is null;
create index posts_scheduled on posts (org_id, mode, scheduled_at) where deleted_at is null and scheduled_at is not null;

create table containers (
  id uuid primary key,
  post_id uuid not null references posts on delete cascade,
  org_id uuid not null,
  mode text not null,
  position smallint not null,
  content text not null,
  -- [{ "id": uuid, "alt_text": text | null }]
  media jsonb not null default '[]',
  constraint containers_position_key unique (post_id, position)
);

create table targets (
  id uuid primary key,
  post_id uuid not null references posts on delete cascade,
  org_id uuid not null,
  mode text not null,
  account_id uuid not null references accounts,
  platform text not null,
  status text not null default 'pending' check (status in
    ('pending', 'queued', 'published', 'failed', 'dead', 'canceled')),
  platform_post_id text,
  platform_post_url text,
  published_at timestamptz,
  error_code text,
  error_message text,
  error_source text check (error_source in ('user', 'platform', 'service')),
  -- Publish attempts begun, and of these how many the platform refused for the token.
  attempts integer not null default 0,
  token_attempts integer not null default 0,
  next_attempt_at timestamptz,
  -- Raised by whoever takes the target up. An attempt that lost its turn finds another number here
  -- and stops before it can publish.
  fence integer not null default 0,
  -- Since when the platform has been processing; an attempt that goes on after it costs no budget.
  processing_since timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint targets_account_key unique (post_id, account_id)
);
create index targets_account on targets (account_id, status);
create index targets_platform on targets (org_id, mode, platform);

-- One container on one account: what is published by one call, and what became of that call.
create table publications (
  target_id uuid not null references targets on delete cascade,
  position smallint not null,
  org_id uuid not null,
  mode text not null,
  -- How far preparing has come, in the platform adapter's own words.
  checkpoint jsonb not null default 'null',
  -- The intent: from here until the outcome is known the post may be live.
  commit_begun_at timestamptz,
  -- When the call came back without an outcome; null while it may still be under way.
  commit_ended_at timestamptz,
  -- The code that raised the doubt.
  doubt_code text,
  -- The platform accepted it and gives the id later.
  accepted boolean not null default false,
  platform_id text,
  published_at timestamptz,
  primary key (target_id, position)
);

-- What happened to a post, in order, for the people who ask.
create table timeline (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  mode text not null,
  post_id uuid not null references posts on delete cascade,
  target_id uuid references targets on delete cascade,
  at timestamptz not null,
  kind text not null,
  message text not null,
  detail jsonb not null default '{}'
);
create index timeline_post on timeline (post_id, id);

create table webhooks (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  url text not null,
  events text[] not null,
  description text,
  is_active boolean not null default true,
  secret_sealed bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index webhooks_owner on webhooks (org_id, mode, created_at desc, id desc) where deleted_at is null;

create table events (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  event text not null,
  post_id uuid references posts on delete cascade,
  target_id uuid references targets on delete cascade,
  account_id uuid references accounts,
  -- The exact bytes of every delivery: fixed here, signed anew at each attempt.
  body text not null,
  created_at timestamptz not null default now()
);
create index events_post on events (post_id) where post_id is not null;

create table deliveries (
  id uuid primary key,
  event_id uuid not null references events on delete cascade,
  webhook_id uuid not null references webhooks,
  org_id uuid not null,
  mode text not null,
  event text not null,
  status text not null default 'pending' check (status in ('pending', 'delivering', 'delivered', 'failed')),
  attempts integer not null default 0,
  response_status integer,
  response_excerpt text,
  latency_ms integer,
  error text,
  next_attempt_at timestamptz,
  created_at timestamptz not null default now(),
  delivered_at timestamptz,
  constraint deliveries_endpoint_key unique (event_id, webhook_id)
);
create index deliveries_page on deliveries (webhook_id, created_at desc, id desc);

-- What the transaction that wrote it owes Temporal. The relay pays it and deletes the row.
create table outbox (
  id bigint generated always as identity primary key,
  errand jsonb not null,
  available_at timestamptz not null default now(),
  attempts integer not null default 0
);
create index outbox_ready on outbox (available_at, id);

create function outbox_notify() returns trigger language plpgsql as $$
begin
  perform pg_notify('outbox', '');
  return null;
end $$;
create trigger outbox_notify after insert on outbox for each statement execute function outbox_notify();
