-- Messages are announced outside the transactions that write them: Postgres takes one lock for the whole cluster from
-- the notification to the end of the commit. Relays of the previous version still find messages by polling, every two
-- seconds.
drop trigger outbox_notify on outbox;
drop function outbox_notify();
