-- When the grant was got: how long it lives, and whether it is old enough to be renewed, counts from here.
alter table accounts add column granted_at timestamptz;

-- Accounts that were connected before grants were renewed ahead of their end.
insert into outbox (errand)
select jsonb_build_object(
         'errand', 'keep_account', 'account', id, 'owner', jsonb_build_object('org', org_id, 'mode', mode),
         'platform', platform, 'grant_version', grant_version, 'granted_at', updated_at,
         'expires_at', token_expires_at)
from accounts
where status = 'active' and grant_sealed is not null and token_expires_at is not null;
