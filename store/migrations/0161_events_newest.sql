-- The events of an owner, newest first, of each name or some: see store::events::newest. By their time, which no other
-- index has: by the id, Postgres would read through the primary key for a name that it takes for a common one.
create index events_newest on events (org_id, mode, event, created_at desc, id desc);
