-- Until when a target is held because its posts are being deleted from their platform: meanwhile nothing is published
-- for it or below it. Null while nobody deletes them.
alter table targets add column unpublish_until timestamptz;
