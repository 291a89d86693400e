-- A login that only a call with an API key connects. A process of the previous version connects it at once, as it
-- does every login: so ask for it once no such process runs.
alter table oauth_states add column confirm boolean not null default false;
alter table pending_logins add column confirm boolean not null default false;
-- The account that the login was to connect again, which may change its tenant.
alter table pending_logins add column account_id uuid;
