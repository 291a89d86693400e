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

-- Null until the invitation is accepted, and of members who accepted when people could not sign in yet.
alter table members add column person_id uuid references people;
-- Invited with a test key, which must not give access to live data.
alter table members add column is_test_only boolean not null default false;
create unique index members_person_key on members (org_id, person_id) where person_id is not null;
-- What an identity of the OpenID provider is found by.
create index members_email on members (lower(email)) where person_id is null;
create index members_person on members (person_id) where person_id is not null;
