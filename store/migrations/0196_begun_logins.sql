-- Who began a login, and what it may change: see store::oauth_states::Begun. Null for logins of the previous version.
alter table oauth_states add column begun jsonb;
alter table pending_logins add column begun jsonb;
