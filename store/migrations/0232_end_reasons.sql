-- A target that ended without being published says why.
--
-- Processes of the previous version cancel without a reason.
create function targets_give_reason() returns trigger language plpgsql as $$
begin
  new.error_message := 'canceled before it was published';
  new.error_source := coalesce(new.error_source, 'user');
  return new;
end
$$;
create trigger targets_give_reason before update of status on targets
  for each row when (old.status <> 'canceled' and new.status = 'canceled' and new.error_message is null)
  execute function targets_give_reason();

alter table targets add constraint targets_end_has_reason
  check (status not in ('dead', 'canceled') or error_message is not null) not valid;
