-- What the platforms told of a published target, each time they were asked.
create table metric_snapshots (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  mode text not null,
  target_id uuid not null references targets on delete cascade,
  impressions bigint not null,
  reach bigint not null,
  likes bigint not null,
  comments bigint not null,
  shares bigint not null,
  saves bigint not null,
  clicks bigint not null,
  video_views bigint not null,
  captured_at timestamptz not null
);
create index metric_snapshots_latest on metric_snapshots (target_id, captured_at desc, id desc);

-- Raised by each redelivery, which has a budget of attempts of its own: an attempt that was made for an
-- earlier one finds another number here and leaves the delivery alone.
alter table deliveries add column round integer not null default 0;
