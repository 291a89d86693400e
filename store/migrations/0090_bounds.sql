-- The part of the organization's data that a key is limited to, and that a media asset was uploaded for; null for
-- all of it. The digest of a limited key is another than that of its text alone, so that processes of the previous
-- version, which know no bounds, refuse it.
alter table api_keys add column bound jsonb;
alter table media add column bound jsonb;
