-- Media: files that posts use.

create table media (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  status text not null default 'pending_upload' check (status in ('pending_upload', 'uploaded', 'ready', 'failed')),
  -- Kind that it claims to be, until its bytes were looked at.
  kind text not null check (kind in ('image', 'video', 'gif', 'document', 'audio')),
  filename text not null,
  content_type text,
  size bigint,
  sha256 text,
  width integer,
  height integer,
  duration_ms bigint,
  alt_text text,
  -- Announced properties of the bytes, which are held to them.
  declared jsonb not null default '{}',
  -- Address that it is fetched from, unless its owner sends it.
  source_url text,
  -- Why it can't be used, and the code that says so to who asks again.
  error_code text,
  error text,
  -- When somebody began to take its bytes in: one at a time may.
  processing_claimed_at timestamptz,
  -- Until when its bytes are awaited.
  upload_expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- The row outlives the asset until the bytes are gone.
  deleted_at timestamptz,
  swept_at timestamptz,
  -- The part of the organization's data that the asset was uploaded for; null for all of it.
  bound jsonb,
  -- The plan's ceiling on storage when the asset was created: the size of a file that is fetched, or uploaded without
  -- a declared size, is only known to a worker, which knows no plans. Null: unlimited.
  storage_limit bigint,
  -- Bytes that a running or finished upload takes before it is confirmed. Null: the declared size counts.
  held_bytes bigint,
  -- When the running upload was last seen: one at a time may.
  upload_seen_at timestamptz,
  -- Which upload runs.
  upload_id uuid,
  -- Frames of an animation.
  frames integer,
  -- Content of a picture or video besides what it shows: see domain::media::Metadata. Null before it was looked for,
  -- and for other kinds of media.
  metadata text,
  -- Facts that the file states about its encoding.
  facts jsonb
);
create index media_page on media (org_id, mode, created_at desc, id desc) where deleted_at is null;
create index media_age on media (created_at) where deleted_at is null;
create index media_open on media (updated_at)
  where deleted_at is not null or status = 'uploaded' or status = 'pending_upload' and source_url is not null;

-- Bytes that an asset counts for the storage of its owner. A function, so that all who count agree.
create function stored_bytes(asset media) returns bigint
language sql immutable as $$
  select case asset.status
    when 'failed' then 0
    when 'pending_upload' then coalesce(asset.held_bytes, asset.size, 0)
    else coalesce(asset.size, 0)
  end
$$;
