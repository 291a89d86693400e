-- The events of an owner, newest first, of each name or some: see store::events::newest.
create index events_newest on events (org_id, mode, event, id desc);
