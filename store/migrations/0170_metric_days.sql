-- By how much the metrics of an account's targets grew on each day (UTC): a chart of any period reads a row for each
-- account and day instead of every snapshot. Sums of what platforms tell can be of any size.
create table metric_days (
  account_id uuid not null references accounts on delete cascade,
  day date not null,
  org_id uuid not null,
  mode text not null,
  impressions numeric not null,
  reach numeric not null,
  likes numeric not null,
  comments numeric not null,
  shares numeric not null,
  saves numeric not null,
  clicks numeric not null,
  video_views numeric not null,
  primary key (account_id, day)
);
create index metric_days_owner on metric_days (org_id, mode, day);
create index metric_days_age on metric_days (day);

-- A day's growth of a target is its last snapshot of the day less the one before.
insert into metric_days
with growth as (
  select target_id, captured_at,
    impressions - coalesce(lag(impressions) over earlier, 0) as impressions,
    reach - coalesce(lag(reach) over earlier, 0) as reach,
    likes - coalesce(lag(likes) over earlier, 0) as likes,
    comments - coalesce(lag(comments) over earlier, 0) as comments,
    shares - coalesce(lag(shares) over earlier, 0) as shares,
    saves - coalesce(lag(saves) over earlier, 0) as saves,
    clicks - coalesce(lag(clicks) over earlier, 0) as clicks,
    video_views - coalesce(lag(video_views) over earlier, 0) as video_views
  from metric_snapshots
  window earlier as (partition by target_id order by captured_at, id)
)
select t.account_id, (g.captured_at at time zone 'UTC')::date, t.org_id, t.mode, sum(g.impressions), sum(g.reach),
  sum(g.likes), sum(g.comments), sum(g.shares), sum(g.saves), sum(g.clicks), sum(g.video_views)
from growth g join targets t on t.id = g.target_id
group by 1, 2, 3, 4;
