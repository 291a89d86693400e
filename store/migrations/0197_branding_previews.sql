-- What test keys set: the connect pages of test mode show it until a live key sets the branding.
create table connect_branding_previews (
  org_id uuid primary key references organizations,
  name text,
  logo_url text,
  accent_color text,
  support_url text,
  imprint_url text,
  pages jsonb not null,
  updated_at timestamptz not null
);
