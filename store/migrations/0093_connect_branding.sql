-- How the connect pages of an organization look, in both modes; null where it has set nothing.
create table connect_branding (
  org_id uuid primary key references organizations,
  name text,
  logo_url text,
  -- #rrggbb
  accent_color text,
  support_url text,
  imprint_url text,
  -- { page: { heading, description, button } }
  pages jsonb not null,
  updated_at timestamptz not null
);
