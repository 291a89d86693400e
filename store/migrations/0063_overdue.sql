-- The overdue row that a sweep wrote the message for: while one waits, further sweeps write none for the row.
alter table outbox add column overdue uuid;
create unique index outbox_overdue on outbox (overdue) where overdue is not null and parked_at is null;
