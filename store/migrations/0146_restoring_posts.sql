-- Posts of a restored database that `fanfare ops restored` has still to prepare, and the nil id until all is prepared.
-- Workers don't start before it is empty.
create table restoring_posts (
  post_id uuid primary key
);
