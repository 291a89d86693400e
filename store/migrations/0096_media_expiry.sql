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
