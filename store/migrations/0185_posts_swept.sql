-- The sweeper's order: overdue posts that were never swept by their time, and those that were by when.
create index posts_swept on posts (swept_at, (coalesce(scheduled_at, created_at)))
  where status in ('scheduled', 'queued', 'publishing') and starts_at is null;
