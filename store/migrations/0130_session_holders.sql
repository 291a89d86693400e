-- A session is of an API key or of a member. Processes of the previous version join the key, and do not find the
-- session of a member.
alter table sessions alter column key_id drop not null;
alter table sessions add column member_id uuid references members on delete cascade;
create index sessions_member on sessions (member_id) where member_id is not null;
create index sessions_key on sessions (key_id) where key_id is not null;
-- When the session was last used, to the minute; where and with what program it was started.
alter table sessions add column last_used_at timestamptz;
alter table sessions add column address inet;
alter table sessions add column user_agent text;

-- The e-mail address of the member who created the key; null for one created by other means.
alter table api_keys add column created_by text;

-- The member who made the change, their address at that time, and the program of the request.
alter table audit_entries add column member_id uuid;
alter table audit_entries add column member text;
alter table audit_entries add column user_agent text;
