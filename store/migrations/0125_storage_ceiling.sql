-- The plan's ceiling on storage when the asset was created: the size of a file that is fetched, or uploaded without
-- a declared size, is only known to a worker, which knows no plans. Null: unlimited.
alter table media add column storage_limit bigint;
-- Bytes that a running or finished upload takes before it is confirmed. Null: the declared size counts.
alter table media add column held_bytes bigint;
-- When the running upload was last seen: one at a time may.
alter table media add column upload_seen_at timestamptz;
-- Which upload runs.
alter table media add column upload_id uuid;

-- What an asset counts for the storage of its owner. A function, so that all who count agree.
create function stored_bytes(asset media) returns bigint
language sql immutable as $$
  select case asset.status
    when 'failed' then 0
    when 'pending_upload' then coalesce(asset.held_bytes, asset.size, 0)
    else coalesce(asset.size, 0)
  end
$$;
