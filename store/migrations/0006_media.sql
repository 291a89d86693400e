create table media (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  status text not null default 'pending_upload' check (status in ('pending_upload', 'uploaded', 'ready', 'failed')),
  -- What it claims to be, until its bytes were looked at.
  kind text not null check (kind in ('image', 'video', 'gif', 'document', 'audio')),
  filename text not null,
  content_type text,
  size bigint,
  sha256 text,
  width integer,
  height integer,
  duration_ms bigint,
  alt_text text,
  -- What was announced of the bytes: they are held to it.
  claim jsonb not null default '{}',
  -- Where it is fetched from, unless its owner sends it.
  source_url text,
  -- Why it can't be used, and the code that says so to who asks again.
  error_code text,
  error text,
  -- When somebody began to take its bytes in: one at a time may.
  taken_at timestamptz,
  -- Until when its bytes are awaited.
  upload_expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- The row outlives the asset until the bytes are gone.
  deleted_at timestamptz
);
create index media_page on media (org_id, mode, created_at desc, id desc) where deleted_at is null;
create index media_age on media (created_at) where deleted_at is null;

-- Which posts need an asset.
create index containers_media on containers using gin (media jsonb_path_ops) where media <> '[]';
