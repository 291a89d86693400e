-- Operators: what they froze, their sessions, and on which server the rows were written.

-- Freezes by operators: no publishing call begins for what is frozen until its release. A small table, read by every
-- attempt.
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
  released_at timestamptz,
  -- When the next of the released targets has its turn, so that a release that is continued goes on where it ended.
  next_turn_at timestamptz
);
create index freezes_open on freezes (kind, subject) where released_at is null;

-- The freezes that keep an account from publishing. Called in a `from`, it is a part of the statement.
create function open_freezes(platform text, account uuid, org uuid, in_mode text) returns setof freezes
language sql stable as $$
  select * from freezes
  where released_at is null and (mode is null or mode = in_mode)
    and (kind, subject) in (('platform', platform), ('account', account::text), ('organization', org::text))
$$;

-- Who is signed in to the operators' pages. Apart from `sessions`: an operator belongs to no organization.
create table operator_sessions (
  -- SHA-256 of the text in the cookie.
  digest bytea primary key,
  -- Identifies the operators' token that the session was begun with: with another one it has ended.
  credential bytea not null,
  -- The name that the operator gave, for the audit trail.
  operator text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  last_used_at timestamptz not null,
  address inet,
  user_agent text
);
create index operator_sessions_expiry on operator_sessions (expires_at);

-- Posts of a restored database that `fanfare ops restored` has still to prepare, and the nil id until all is prepared.
-- Workers don't start before it is empty.
create table restoring_posts (
  post_id uuid primary key
);

-- Which server and database the rows were written on, and when a worker last said that it works on them: see
-- store::upkeep::lineage. `written_by` is the transaction that wrote the row, as its xmin says until the row is written again.
create table installation (
  is_only boolean primary key default true check (is_only),
  id uuid not null,
  server text not null,
  written_by xid8 not null,
  recorded_at timestamptz not null
);

create table installation_beats (
  is_only boolean primary key default true check (is_only),
  at timestamptz not null
);

-- The server, its history and the database. A restore to a point in time and a promotion begin another timeline.
create function server_lineage() returns text language sql stable as $$
  select concat_ws('/',
    (select system_identifier from pg_control_system()),
    substring(pg_walfile_name(pg_current_wal_lsn()) for 8),
    (select oid from pg_database where datname = current_database()))
$$;
