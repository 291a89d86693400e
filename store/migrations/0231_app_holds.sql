-- Apps that a platform refuses, such as one that has spent what it may: nothing is published with them until one post
-- has been tried again.
create table app_holds (
  -- As app_of returns it.
  app text primary key,
  platform text not null,
  mode text not null,
  -- What the platform said.
  message text not null,
  since timestamptz not null,
  -- When the next post is tried.
  until timestamptz not null
);

-- The app of an account: its organization's own, or the installation's. In test mode each organization has one of its
-- own, so that a simulated refusal holds nobody else's posts.
create function app_of(platform text, mode text, org uuid, network uuid) returns text language sql immutable as $$
  select coalesce(network::text, platform || case mode when 'live' then '' else ' ' || org::text end)
$$;
