-- The signing secret that takes the place of the present one when it is rotated: made before, so that the receiver knows it
-- by then.
alter table webhooks add column next_secret_sealed bytea;

-- Replaces the signing secret of an endpoint: by the next one, or else by `secret`. Returns whether there was a next one;
-- null if there is no such endpoint. Runs as the owner, because the role of the API may not read sealed values.
create function endpoint_rotate(endpoint uuid, org uuid, in_mode text, secret bytea, at timestamptz) returns boolean
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  prepared bytea;
begin
  select next_secret_sealed into prepared from webhooks
  where id = endpoint and org_id = org and mode = in_mode and deleted_at is null for no key update;
  if not found then
    return null;
  end if;
  update webhooks set secret_sealed = coalesce(prepared, secret), next_secret_sealed = null, updated_at = at
  where id = endpoint;
  return prepared is not null;
end $$;
revoke execute on function endpoint_rotate(uuid, uuid, text, bytea, timestamptz) from public;
