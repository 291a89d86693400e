-- An account that was disconnected and is connected for another end tenant gets a row of its own; the former one keeps
-- what the former tenant made of it. Of the rows of an account at its platform one is current, the one that is connected or
-- was last; the others have null here, of which a unique constraint allows any number. The constraint keeps its name,
-- because statements of the previous version use it.
alter table accounts add column is_current boolean default true;
alter table accounts add constraint accounts_is_current_check check (is_current);
alter table accounts drop constraint accounts_identity_key;
alter table accounts add constraint accounts_identity_key
  unique (org_id, mode, platform, network_unique_id, is_current);
