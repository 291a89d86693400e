-- Imports of earlier posts, and metrics.

-- Imports of what an account published by whatever means, page by page.
create table imports (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  account_id uuid not null references accounts,
  status text not null default 'pending' check (status in ('pending', 'running', 'completed', 'failed')),
  -- The range of publishing times: from the first, before the second.
  from_date timestamptz,
  to_date timestamptz,
  -- How many posts it looks at, those that are here already included.
  max_posts integer not null,
  -- Beginning of the platform's next page, and the number of pages behind: kept with the posts of the page, so that an
  -- attempt after a crash begins where the posts end.
  cursor text,
  pages integer not null default 0,
  imported_count integer not null default 0,
  skipped_count integer not null default 0,
  error_message text,
  started_at timestamptz,
  finished_at timestamptz,
  created_at timestamptz not null default now(),
  swept_at timestamptz
);
-- One at a time per account.
create unique index imports_open_key on imports (account_id) where status in ('pending', 'running');
create index imports_page on imports (account_id, created_at desc, id desc);
create index imports_open on imports (created_at) where status in ('pending', 'running');

create table imported_posts (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  account_id uuid not null references accounts,
  import_id uuid not null references imports,
  platform_post_id text not null,
  platform_post_url text not null,
  content text not null,
  -- Addresses.
  media text[] not null,
  -- The figures as the platform's list told them.
  metrics jsonb not null,
  published_at timestamptz not null,
  constraint imported_posts_identity_key unique (account_id, platform_post_id)
);
create index imported_posts_page on imported_posts (account_id, published_at desc, id desc);

-- Metrics of a published target, as the platforms told them each time they were asked.
create table metric_snapshots (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  mode text not null,
  target_id uuid not null references targets on delete cascade,
  impressions bigint not null,
  reach bigint not null,
  likes bigint not null,
  comments bigint not null,
  shares bigint not null,
  saves bigint not null,
  clicks bigint not null,
  video_views bigint not null,
  captured_at timestamptz not null
);
create index metric_snapshots_latest on metric_snapshots (target_id, captured_at desc, id desc);
-- Index of the oldest ones, which are deleted.
create index metric_snapshots_age on metric_snapshots (captured_at);

-- By how much the metrics of an account's targets grew on each day (UTC): a chart of any period reads a row for each
-- account and day instead of every snapshot. Sums of what platforms tell can be of any size.
create table metric_days (
  account_id uuid not null references accounts on delete cascade,
  day date not null,
  org_id uuid not null,
  mode text not null,
  impressions numeric not null,
  reach numeric not null,
  likes numeric not null,
  comments numeric not null,
  shares numeric not null,
  saves numeric not null,
  clicks numeric not null,
  video_views numeric not null,
  primary key (account_id, day)
);
create index metric_days_owner on metric_days (org_id, mode, day);
create index metric_days_age on metric_days (day);
