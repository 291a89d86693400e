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
