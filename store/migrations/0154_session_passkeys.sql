-- The passkey that a session of a member was started with; null for one that was started by other means, or by a
-- process of the previous version.
alter table sessions add column passkey_id uuid references passkeys on delete set null;
create index sessions_passkey on sessions (passkey_id) where passkey_id is not null;
