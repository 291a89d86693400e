-- Content and times that differ between the targets of a post.

-- The containers of a variant of a post: what replaces the post's containers for the targets of that variant. A
-- table of its own, because a program of an earlier version reads `containers` by post alone.
create table variant_containers (
  id uuid primary key,
  post_id uuid not null references posts on delete cascade,
  org_id uuid not null,
  mode text not null,
  -- From 1; 0 stands for the post's own containers.
  variant smallint not null check (variant > 0),
  position smallint not null,
  content text not null,
  -- As in `containers`.
  media jsonb not null default '[]',
  constraint variant_containers_position_key unique (post_id, variant, position)
);

create index variant_containers_media on variant_containers using gin (media jsonb_path_ops) where media <> '[]';

alter table targets
  add column variant smallint not null default 0,
  -- The target's own time; null is the post's.
  add column scheduled_at timestamptz;

-- What each target publishes.
create view target_containers as
  select t.id as target_id, c.id, c.position, c.content, c.media
  from targets t join containers c on c.post_id = t.post_id
  where t.variant = 0
  union all
  select t.id, c.id, c.position, c.content, c.media
  from targets t join variant_containers c on c.post_id = t.post_id and c.variant = t.variant
  where t.variant > 0;

-- The media of each post, in any variant.
create view post_media as
  select post_id, media from containers where media <> '[]'
  union all
  select post_id, media from variant_containers where media <> '[]';
