-- Rounds: how often dead targets of a post were retried, and in which of these rounds a target is. Events of a round
-- above 0 carry it.
alter table targets add column round integer not null default 0;
alter table posts add column round integer not null default 0;
-- The post had failed when it was retried, so that its `post.error` was written.
alter table posts add column has_failed boolean not null default false;
