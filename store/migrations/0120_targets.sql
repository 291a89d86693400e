-- Since when a target waits for its metrics to be requested: it is due one shortest interval later. Null before the
-- first request, and for one by a process of the previous version; infinity for a target that is too old by then.
alter table targets add column metrics_since timestamptz;
-- Replaces `targets_recent`, which processes of the previous version use; a later release drops it.
create index targets_metrics on targets (platform, (coalesce(metrics_since, metrics_asked_at, published_at)))
  where status = 'published' and unpublished_at is null;
-- The open targets of an account, to be canceled in parts when it is disconnected. Few of all targets are open.
create index targets_open on targets (account_id, post_id) where status in ('pending', 'queued', 'failed');
