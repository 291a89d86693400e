-- What accounts published by whatever means, brought here page by page.

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
  ceiling integer not null,
  -- Where the platform's next page begins, and how many pages are behind: kept with the posts of the
  -- page, so that whoever goes on after a crash begins where the posts end.
  cursor text,
  pages integer not null default 0,
  imported_count integer not null default 0,
  skipped_count integer not null default 0,
  error_message text,
  started_at timestamptz,
  finished_at timestamptz,
  created_at timestamptz not null default now()
);
-- One at a time per account.
create unique index imports_open_key on imports (account_id) where status in ('pending', 'running');
create index imports_page on imports (account_id, created_at desc, id desc);

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
