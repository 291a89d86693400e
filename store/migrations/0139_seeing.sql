-- When a message was written: `available_at` moves with each attempt to send it.
alter table outbox add column created_at timestamptz not null default now();
