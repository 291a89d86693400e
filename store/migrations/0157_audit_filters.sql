-- Filters of the audit trail, newest first: each reads only what it returns.
create index audit_entries_action on audit_entries (org_id, action, at desc, id desc);
create index audit_entries_object on audit_entries (org_id, object_id, at desc, id desc);
create index audit_entries_key on audit_entries (org_id, key_id, at desc, id desc) where key_id is not null;
create index audit_entries_member on audit_entries (org_id, member_id, at desc, id desc) where member_id is not null;
