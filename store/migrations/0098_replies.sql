-- The live post that a post replies to. No foreign key: a reply whose post is gone ends with that reason, and must
-- never become a post of its own.
alter table posts add column reply_to uuid;
create index posts_reply_to on posts (reply_to) where reply_to is not null;

-- Platform ids of the thread's first post and of the one that the target replies to, from its first attempt on: a
-- look-up must search below the same post as the call did.
alter table targets add column reply_root text;
alter table targets add column reply_parent text;

-- True for an open intent of a reply.
alter table publications add column is_reply boolean not null default false;

-- A worker of the previous version knows no replies, and would publish one as a post of its own, or look it up as one.
-- It gets no intent for a reply, and can't clear the intent of another worker.
create function publications_guard_reply() returns trigger language plpgsql as $$
begin
  if new.commit_begun_at is null
    or exists (
      select from targets t join posts p on p.id = t.post_id
      where t.id = new.target_id and p.reply_to is not null)
  then
    return null;
  end if;
  return new;
end
$$;
create trigger publications_guard_reply before insert or update of commit_begun_at on publications
  for each row when ((new.commit_begun_at is null) = new.is_reply) execute function publications_guard_reply();
