-- When a platform was last asked for a target's figures, whatever it answered: who fails does not stand
-- first in every round.
alter table targets add column metrics_asked_at timestamptz;
-- Who is asked about: what was published of late.
create index targets_recent on targets (platform, published_at) where status = 'published';
-- What is forgotten: the oldest.
create index metric_snapshots_age on metric_snapshots (captured_at);
