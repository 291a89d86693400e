-- Names that say what is stored, before the first release: nothing reads both names, so that every process
-- is stopped for this migration.
alter table outbox rename column errand to message;
update outbox set message = message - 'errand' || jsonb_build_object('type', case message ->> 'errand'
  when 'keep_account' then 'renew_grant'
  when 'part_account' then 'disconnect_account'
  when 'tend_media' then 'process_media'
  when 'hurry_target' then 'retry_target'
  else message ->> 'errand' end);

alter table publications rename column doubt_code to ambiguous_error_code;
alter table media rename column taken_at to processing_claimed_at;
alter table media rename column claim to declared;
alter table accounts rename column shared_login to login_digest;
alter index accounts_shared_login rename to accounts_login_digest;
alter table imports rename column ceiling to max_posts;

alter table states rename to oauth_states;
alter index states_expiry rename to oauth_states_expiry;
alter table meters rename to usage_counters;
alter table addresses rename to ip_rate_limits;
alter index addresses_ended rename to ip_rate_limits_ended;
