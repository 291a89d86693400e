-- A reply waits in the database for its own time only. Until now it also waited for the time that the post it replies
-- to had when the reply was written.
update posts set starts_at = coalesce(scheduled_at, now()) where reply_to is not null and starts_at < 'infinity';
