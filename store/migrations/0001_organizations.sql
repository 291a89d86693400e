-- Organizations, and who acts for them: keys, people, sessions, and the trail of what they did.
-- Every row of the service belongs to an organization in one mode; every query names both.

create table organizations (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now(),
  -- The key of its plan; plans themselves are configuration.
  plan text not null default 'default',
  -- True if metadata are removed from pictures and videos before they are published.
  strip_metadata boolean not null default true
);

create table api_keys (
  id uuid primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  name text not null,
  -- SHA-256 of the key: the key itself is shown once and never kept.
  digest bytea not null constraint api_keys_digest_key unique,
  last_four text not null,
  scopes text[] not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  -- The part of the organization's data that the key is limited to; null for all of it.
  bound jsonb,
  -- Limits of a client token beside its tenant; null for an API key.
  client jsonb,
  -- The e-mail address of the member who created the key; null for one created by other means.
  created_by text
);
create index api_keys_owner on api_keys (org_id, mode, created_at desc, id desc);

-- People who sign in to the dashboard. A person may be a member of several organizations. Nothing but an
-- invitation makes somebody a member; an address in it proves nothing, so that it never leads to a known person.
create table people (
  id uuid primary key,
  created_at timestamptz not null
);

-- Passkeys: https://www.w3.org/TR/webauthn-3/#credential-record
create table passkeys (
  id uuid primary key,
  person_id uuid not null references people on delete cascade,
  credential_id bytea not null constraint passkeys_credential_key unique,
  -- The public key and what else never changes, and the counter and flags that do, as webauthn_rp encodes them.
  static_state bytea not null,
  dynamic_state bytea not null,
  name text not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkeys_person on passkeys (person_id);

-- People at the operator's OpenID provider.
create table identities (
  issuer text not null,
  subject text not null,
  person_id uuid not null references people on delete cascade,
  created_at timestamptz not null,
  primary key (issuer, subject)
);
create index identities_person on identities (person_id);

-- Digests of challenges that were answered: each is answered once.
create table spent_challenges (
  digest bytea primary key,
  expires_at timestamptz not null
);
create index spent_challenges_expiry on spent_challenges (expires_at);

-- People. They belong to the organization, whatever the mode of the key that asks.
create table members (
  id uuid primary key,
  org_id uuid not null references organizations,
  email text not null,
  name text,
  role text not null check (role in ('owner', 'admin', 'publisher', 'viewer')),
  status text not null check (status in ('invited', 'active')),
  -- SHA-256 of the token in the invitation, until it is accepted.
  invitation_digest bytea constraint members_invitation_key unique,
  invited_at timestamptz not null,
  joined_at timestamptz,
  -- Null until the invitation is accepted.
  person_id uuid references people,
  -- Invited with a test key, which must not give access to live data.
  is_test_only boolean not null default false
);
create unique index members_email_key on members (org_id, lower(email));
create unique index members_person_key on members (org_id, person_id) where person_id is not null;
-- Index by which the member of an identity of the OpenID provider is found.
create index members_email on members (lower(email)) where person_id is null;
create index members_person on members (person_id) where person_id is not null;

-- Who is signed in to the dashboard: a key or a member. What the key may not do any more, nobody who signed in with it may
-- either.
create table sessions (
  -- SHA-256 of the text in the cookie: the text itself is never kept.
  digest bytea primary key,
  org_id uuid not null references organizations,
  mode text not null check (mode in ('live', 'test')),
  key_id uuid references api_keys on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  member_id uuid references members on delete cascade,
  -- When the session was last used, to the minute; where and with what program it was started.
  last_used_at timestamptz,
  address inet,
  user_agent text,
  -- The passkey that a session of a member was started with; null for one that was started by other means.
  passkey_id uuid references passkeys on delete set null
);
create index sessions_expiry on sessions (expires_at);
create index sessions_member on sessions (member_id) where member_id is not null;
create index sessions_key on sessions (key_id) where key_id is not null;
create index sessions_passkey on sessions (passkey_id) where passkey_id is not null;

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
  details jsonb not null,
  -- The operator who made a change: user and host of the command, or the name given in the operators' pages.
  operator text,
  -- The member who made the change, their address at that time, and the program of the request.
  member_id uuid,
  member text,
  user_agent text
);
create index audit_entries_page on audit_entries (org_id, at desc, id desc);
create index audit_entries_age on audit_entries (at);
-- Filters of the audit trail, newest first: each reads only what it returns.
create index audit_entries_action on audit_entries (org_id, action, at desc, id desc);
create index audit_entries_object on audit_entries (org_id, object_id, at desc, id desc);
create index audit_entries_key on audit_entries (org_id, key_id, at desc, id desc) where key_id is not null;
create index audit_entries_member on audit_entries (org_id, member_id, at desc, id desc) where member_id is not null;

-- Requests with an API key, for the organization that sent them. Without a reference to it, so that writing the
-- log locks no row that a request needs.
create table request_log (
  id uuid primary key,
  org_id uuid not null,
  mode text not null check (mode in ('live', 'test')),
  method text not null,
  path text not null,
  status integer not null,
  duration_ms integer not null,
  last_four text not null,
  at timestamptz not null
);
create index request_log_page on request_log (org_id, mode, at desc, id desc);
create index request_log_age on request_log (at);
