-- Messages are claimed in turns of organizations, so that one that writes thousands holds up nobody
-- else. A message that can't be carried is parked with the reason, for an operator to look at.
alter table outbox add column org_id uuid;
alter table outbox add column parked_at timestamptz;
alter table outbox add column error text;

update outbox o set errand = o.errand || jsonb_build_object('owner', jsonb_build_object('org', p.org_id, 'mode', p.mode))
from posts p where o.errand ->> 'errand' = 'post_canceled' and p.id = (o.errand ->> 'post')::uuid;
update outbox o set errand = o.errand || jsonb_build_object(
  'post', t.post_id, 'owner', jsonb_build_object('org', t.org_id, 'mode', t.mode))
from targets t where o.errand ->> 'errand' = 'hurry_target' and t.id = (o.errand ->> 'target')::uuid;
update outbox set org_id = coalesce((errand -> 'owner' ->> 'org')::uuid, '00000000-0000-0000-0000-000000000000');
alter table outbox alter column org_id set not null;

drop index outbox_ready;
create index outbox_ready on outbox (org_id, available_at, id) where parked_at is null;
