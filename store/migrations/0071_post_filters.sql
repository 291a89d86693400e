-- Finds posts by metadata. Each entry is hashed with its owner in front, so that a pair that many organizations
-- use, such as env=prod, is as selective as within the one that asks; a plain index on `metadata` would walk
-- through everyone's posts. Posts without metadata are not in it and cost nothing.
create index posts_metadata on posts
  using gin (jsonb_set('{}', array[org_id::text || ':' || mode], metadata) jsonb_path_ops)
  where metadata <> '{}';

create index accounts_tenant on accounts (org_id, mode, tenant_id) where tenant_id is not null;

-- There is no index for the search in texts. pg_trgm may not be installed and needs a superuser on some services.
-- Full-text search, which is, finds words of languages that separate them, not parts of them, and can't be
-- limited to one owner: a common word would walk through everyone's posts. Either index would be written with
-- every post, for a search that few make. A page of a search therefore looks through a bounded number of the
-- owner's posts (store::posts::SEARCHED), newest first by posts_page, and its cursor continues from there.
