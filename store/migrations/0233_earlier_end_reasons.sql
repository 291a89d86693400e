-- Targets that ended without a reason in their row: the timeline has it, unless it was deleted with age.
update targets t
set error_source = coalesce(error_source, 'user'),
    error_message = coalesce(
      (select substr(message, length('Canceled: ') + 1) from timeline
       where target_id = t.id and kind = 'canceled' and message like 'Canceled: %' order by id desc limit 1),
      'canceled before it was published')
where status in ('dead', 'canceled') and error_message is null;

alter table targets validate constraint targets_end_has_reason;
