-- What an endpoint answered to each attempt of a delivery, oldest first; null while the first attempt is the only one or
-- none has failed. The columns of the row have the last one. See store::deliveries::Answer.
alter table deliveries add column answers jsonb;
