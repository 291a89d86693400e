-- Reads each table once, while it is read and written.
alter table events validate constraint events_first_bound;
alter table deliveries validate constraint deliveries_first_bound;
