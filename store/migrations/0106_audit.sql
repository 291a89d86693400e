-- Who changed what concerns an organization's security, when and from where. Written in the transaction of the
-- change. Without a reference to the organization, so that writing it locks no row.
create table audit_entries (
  id uuid primary key,
  org_id uuid not null,
  -- Null for what both modes share: the team, and the branding of the connect pages.
  mode text check (mode in ('live', 'test')),
  at timestamptz not null,
  actor text not null,
  -- The key of a call, or the one that a session was started with.
  key_id uuid,
  last_four text,
  address inet,
  request_id text,
  action text not null,
  object_id uuid not null,
  details jsonb not null
);
create index audit_entries_page on audit_entries (org_id, at desc, id desc);
create index audit_entries_age on audit_entries (at);
