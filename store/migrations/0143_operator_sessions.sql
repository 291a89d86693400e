-- Who is signed in to the operators' pages. Apart from `sessions`: an operator belongs to no organization.
create table operator_sessions (
  -- SHA-256 of the text in the cookie.
  digest bytea primary key,
  -- Identifies the operators' token that the session was begun with: with another one it has ended.
  credential bytea not null,
  -- The name that the operator gave, for the audit trail.
  operator text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  last_used_at timestamptz not null,
  address inet,
  user_agent text
);
create index operator_sessions_expiry on operator_sessions (expires_at);
