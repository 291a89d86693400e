-- What a client token is limited to beside its tenant; null for an API key.
alter table api_keys add column client jsonb;
