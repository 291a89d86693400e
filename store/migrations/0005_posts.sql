-- Posts: content, targets, the result of each publishing call, and the timeline.

-- Digest that is equal for texts that say the same, letter case and white space aside. Not Unicode composition:
-- normalize() takes seconds for some texts of 100 kB.
create function text_digest(content text) returns text language sql immutable strict parallel safe as $$
  select md5(lower(btrim(regexp_replace(content, '\s+', ' ', 'g'))))
$$;

-- A time in JSON, as the API formats it.
create function json_time(at timestamptz) returns text language sql stable parallel safe as $$
  select to_char($1 at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

create table posts (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  status text not null
    check (status in ('draft', 'scheduled', 'queued', 'publishing', 'published', 'partial', 'failed', 'canceled')),
  is_draft boolean not null,
  -- Raised by each edit: an attempt that was started for an older version finds that it is stale.
  version integer not null default 1,
  scheduled_at timestamptz,
  published_at timestamptz,
  default_config jsonb not null default '{}',
  external_ref text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  -- The account whose slot the post's time is.
  slot_account_id uuid references accounts,
  -- When a message for the overdue row was last sent to Temporal again: its workflow may be gone.
  swept_at timestamptz,
  -- The caller's own data on a post: texts by key.
  metadata jsonb not null default '{}',
  -- The live post that a post replies to. No foreign key: a reply whose post is gone ends with that reason, and must
  -- never become a post of its own.
  reply_to uuid,
  -- While a post waits in the database only: the time of its first target, before which a workflow is started for it.
  -- Null once a workflow was requested. Infinity for a draft.
  starts_at timestamptz,
  -- When its timeline was deleted, long after its end.
  timeline_deleted_at timestamptz,
  -- How often dead targets of the post were retried. Events of a round above 0 carry it.
  round integer not null default 0,
  -- The post had failed when it was retried, so that its `post.error` was written.
  has_failed boolean not null default false
-- As of `targets`.
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
create unique index posts_external_ref_key on posts (org_id, mode, external_ref) where external_ref is not null;
create index posts_page on posts (org_id, mode, created_at desc, id desc) where deleted_at is null;
create index posts_scheduled on posts (org_id, mode, scheduled_at) where deleted_at is null and scheduled_at is not null;
-- A slot is held by one post, until it is canceled, deleted or moved.
create unique index posts_slot_key on posts (slot_account_id, scheduled_at)
  where slot_account_id is not null and deleted_at is null and status <> 'canceled';
create index posts_unfinished on posts (org_id, mode, (coalesce(scheduled_at, created_at)))
  where deleted_at is null and status in ('scheduled', 'queued', 'publishing');
create index posts_due on posts ((coalesce(scheduled_at, created_at)))
  where status in ('scheduled', 'queued', 'publishing');
-- There is no index for the search in texts. pg_trgm may not be installed and needs a superuser on some services.
-- Full-text search, which is, finds words of languages that separate them, not parts of them, and can't be
-- limited to one owner: a common word would walk through everyone's posts. Either index would be written with
-- every post, for a search that few make. A page of a search therefore looks through a bounded number of the
-- owner's posts (store::posts::SEARCHED), newest first by posts_page, and its cursor continues from there.
--
-- Finds posts by metadata. Each entry is hashed with its owner in front, so that a pair that many organizations
-- use, such as env=prod, is as selective as within the one that asks; a plain index on `metadata` would walk
-- through everyone's posts. Posts without metadata are not in it and cost nothing.
create index posts_metadata on posts
  using gin (jsonb_set('{}', array[org_id::text || ':' || mode], metadata) jsonb_path_ops)
  where metadata <> '{}';
create index posts_reply_to on posts (reply_to) where reply_to is not null;
create index posts_starting on posts (starts_at) where starts_at is not null;
-- Lists of posts by status, account and platform, newest first: each reads only what it returns.
create index posts_status on posts (org_id, mode, status, created_at desc, id desc) where deleted_at is null;
create index posts_timeline on posts (updated_at)
  where timeline_deleted_at is null and status in ('published', 'partial', 'failed', 'canceled');
-- The sweeper's order: overdue posts that were never swept by their time, and those that were by when.
create index posts_swept on posts (swept_at, (coalesce(scheduled_at, created_at)))
  where status in ('scheduled', 'queued', 'publishing') and starts_at is null;

create table containers (
  id uuid primary key,
  post_id uuid not null references posts on delete cascade,
  org_id uuid not null,
  mode text not null,
  -- From 1 for what replaces the post's own containers for the targets of that variant; 0 for those.
  variant smallint not null default 0,
  position smallint not null,
  content text not null,
  -- [{ "id": uuid, "alt_text": text | null }]
  media jsonb not null default '[]',
  constraint containers_position_key unique (post_id, variant, position)
);
-- Which posts need an asset.
create index containers_media on containers using gin (media jsonb_path_ops) where media <> '[]';
-- Finds posts with the same text. An index instead of a column, because it needs nothing of the processes that write
-- texts.
create index containers_text on containers (org_id, mode, text_digest(content)) where position = 0;

create table targets (
  id uuid primary key,
  post_id uuid not null references posts on delete cascade,
  org_id uuid not null,
  mode text not null,
  account_id uuid not null references accounts,
  platform text not null,
  status text not null default 'pending'
    check (status in ('pending', 'queued', 'published', 'failed', 'dead', 'canceled')),
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
  -- Raised each time the target is taken up. An attempt that lost its turn finds another number here
  -- and stops before it can publish.
  fence integer not null default 0,
  -- Since when the platform has been processing; an attempt that goes on after it costs no budget.
  processing_since timestamptz,
  -- That of its post, so that posts are listed by their targets.
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- When a platform was last asked for a target's figures, whatever it answered: who fails does not stand
  -- first in every round.
  metrics_asked_at timestamptz,
  -- True if the next attempt continues the last one (the platform was processing) and costs no budget.
  -- processing_since only says when the polling window of the current processing phase opened.
  is_continuation boolean not null default false,
  -- When the platform throttled the first of a target's latest attempts, without another failure since.
  throttled_since timestamptz,
  -- Attempts that cost nothing of the budget.
  free_attempts integer not null default 0,
  -- Attempts and looks that began since the last one that had a result: their workers stopped before.
  unanswered integer not null default 0,
  -- Which containers of the post it publishes.
  variant smallint not null default 0,
  -- The target's own time; null is the post's.
  scheduled_at timestamptz,
  -- When a live target's post was deleted from its platform; its status stays `published`.
  unpublished_at timestamptz,
  -- Changes to a live target's posts since they were published: `containers`, new texts by position, and `config`,
  -- settings of the platform.
  edits jsonb,
  edited_at timestamptz,
  -- The edit that is being made, or was made last: its id, by which a worker names it; the digest of the values that it
  -- sets, which tells the same edit from another one; the time until which another one waits; and its changes of each
  -- container (domain::Edit), which the API writes and a worker reads, until they are made.
  edit_id uuid,
  edit_digest text,
  edit_until timestamptz,
  edit_changes jsonb,
  -- Platform ids of the thread's first post and of the one that the target replies to, from its first attempt on: a
  -- look-up must search below the same post as the call did.
  reply_root text,
  reply_parent text,
  -- Why an operator ends a target. Its next attempt looks up what may be live, publishes nothing and ends it.
  stop_reason text,
  -- The freeze that a target waits for.
  freeze_id uuid,
  -- Since when a target waits for its metrics to be requested: it is due one shortest interval later. Null before the
  -- first request; infinity for a target that is too old by then.
  metrics_since timestamptz,
  -- Reason of a wait that is not for a time: a file, the post that it replies to, a slot, a claim, the service itself.
  -- `wait_since` is when it began to wait for this, `wait_until` when that ends. `look_at` is when its workflow looks at
  -- the row again; unlike `next_attempt_at` it refuses no attempt, so that what it waits for may wake it before.
  wait_reason text,
  wait_since timestamptz,
  wait_until timestamptz,
  look_at timestamptz,
  -- Until when a target is held because its posts are being deleted from their platform: meanwhile nothing is published
  -- for it or below it. A time that is over tells of a deletion without a result. Null while nobody deletes them.
  unpublish_until timestamptz,
  -- Deletions from the platform that began and have no result. Only when none is left, the posts are known to be live.
  open_deletions integer not null default 0,
  -- In which of the post's rounds the target is.
  round integer not null default 0,
  -- Parts of a live target that are not published and not awaited any more, each with its reason: see domain::Missing.
  -- Null while none is known to be missing.
  missing jsonb,
  -- Round of retries in which the missing parts of a live target are published; null once its end was told.
  resumed_round integer,
  constraint targets_account_key unique (post_id, account_id),
  constraint targets_deletions_check check ((unpublish_until is null) = (open_deletions = 0)),
  -- A target that ended without being published says why.
  constraint targets_end_has_reason check (status not in ('dead', 'canceled') or error_message is not null)
-- Dead rows cost every reader; the default waits until a fifth of the table is dead, which is millions of rows. There is no
-- room left for new versions of rows (fillfactor), because each change of a status is one of an indexed column.
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
create index targets_account on targets (account_id, status);
-- Index for the usage of a month's plan, counted by the time of publishing.
create index targets_published on targets (org_id, mode, published_at) where published_at is not null;
-- Indexes for the overview, which asks every few seconds: targets that failed, and targets that should be out by now.
create index targets_troubled on targets (org_id, mode, updated_at) where status in ('failed', 'dead');
create index targets_incomplete on targets (next_attempt_at)
  where status = 'published' and next_attempt_at is not null;
create index targets_frozen on targets (freeze_id) where freeze_id is not null;
create index targets_account_page on targets (account_id, created_at desc, post_id desc);
create index targets_platform_page on targets (org_id, mode, platform, created_at desc, post_id desc);
-- The order in which metrics are requested.
create index targets_metrics on targets (platform, (coalesce(metrics_since, metrics_asked_at, published_at)))
  where status = 'published' and unpublished_at is null;
-- The open targets of an account, and the live ones whose thread is not complete, to be canceled or looked up in parts
-- when it is disconnected. Few of all targets are open.
create index targets_open on targets (account_id, post_id)
  where status in ('pending', 'queued', 'failed') or status = 'published' and next_attempt_at is not null;
-- The dead targets of a time, of all organizations: operators ask which of them may be live.
create index targets_dead on targets (updated_at) where status = 'dead';

-- One container on one account: the content of one publishing call, and the result of that call.
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
  ambiguous_error_code text,
  -- The platform accepted it and gives the id later.
  accepted boolean not null default false,
  platform_id text,
  published_at timestamptz,
  -- The intent of a publishing call says until when the call may be on its way, and the first call that
  -- stayed without an answer is remembered, so that a look-up begins there.
  commit_deadline timestamptz,
  doubted_since timestamptz,
  -- Account of the published post that an id names: a look-up must not take the post of another target of the account
  -- for its own. Null where two targets share an id that the platform answered to both.
  account_id uuid,
  -- True for a publication whose row came from a backup: its checkpoint may lack steps taken since then.
  is_restored boolean not null default false,
  primary key (target_id, position)
-- As of `targets`.
) with (autovacuum_vacuum_scale_factor = 0.02);
create unique index publications_platform_id_key on publications (account_id, platform_id)
  where platform_id is not null;
create index publications_recent on publications (account_id, published_at) where platform_id is not null;

-- Events of a post, in order, for the people who ask.
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
-- Vacuum marks pages of which every row is old, so that deletions by time and lists read no more than they need.
) with (autovacuum_vacuum_insert_scale_factor = 0.02);
create index timeline_post on timeline (post_id, id);
-- Indexes behind foreign keys whose parents are deleted: without one, each deleted parent costs a scan of the table.
create index timeline_target on timeline (target_id) where target_id is not null;

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

-- Content that each target publishes: the containers of its variant, with the texts that were changed on it. A missing
-- part is published with its new text.
create view target_containers as
  select t.id as target_id, c.id, c.position, coalesce(t.edits -> 'containers' ->> c.position::text, c.content) as content,
    c.media
  from targets t join containers c on c.post_id = t.post_id and c.variant = t.variant;

-- The containers of each target that are not live, whether a call was begun for them or not.
create view open_containers as
  select c.target_id, c.position
  from target_containers c
  where not exists (
    select from publications p
    where p.target_id = c.target_id and p.position = c.position and p.platform_id is not null);

-- The intents whose call has no known result: its post may be live.
create view open_intents as
  select target_id, position, commit_ended_at, commit_deadline, accepted
  from publications
  where commit_begun_at is not null and platform_id is null;

-- The media of each post, in any variant. The condition is that of the index.
create view post_media as
  select post_id, media from containers where media <> '[]';

-- When an asset is deleted: null while an unfinished post uses it, or if files are kept without limit. A function, so
-- that the time that clients are shown is the time by which it is deleted. A live post whose thread is still being
-- completed is unfinished.
create function media_expires_at(asset media, upload_ttl interval, retention interval) returns timestamptz
language sql stable as $$
  select case
    when asset.status = 'pending_upload' then least(asset.created_at + upload_ttl, asset.created_at + retention)
    else (
      select case when coalesce(bool_or(
                 p.status in ('draft', 'scheduled', 'queued', 'publishing')
                 or exists (select from targets t where t.post_id = p.id and t.next_attempt_at is not null)), false)
             then null
             else greatest(asset.created_at, max(p.updated_at)) + retention end
      from post_media c join posts p on p.id = c.post_id
      where c.media @> jsonb_build_array(jsonb_build_object('id', asset.id::text))
        and p.org_id = asset.org_id and p.mode = asset.mode)
    end
$$;
