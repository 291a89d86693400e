-- Lists of posts by status, account and platform, newest first: each reads only what it returns.
create index posts_status on posts (org_id, mode, status, created_at desc, id desc) where deleted_at is null;

-- A target's `created_at` is its post's, so that posts are listed by their targets. One that was added by an edit had
-- the time of the edit.
update targets t set created_at = p.created_at from posts p where p.id = t.post_id and t.created_at <> p.created_at;
create index targets_account_page on targets (account_id, created_at desc, post_id desc);
create index targets_platform_page on targets (org_id, mode, platform, created_at desc, post_id desc);
-- The index above begins with the same columns.
drop index targets_platform;
