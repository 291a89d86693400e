-- The accounts with a stored grant, for a role that may not read grants: the sweeper asks which accounts have one.
create view granted_accounts as
select id, org_id, mode, platform, status, token_expires_at, granted_at, updated_at, swept_at
from accounts
where grant_sealed is not null;
