-- The operator who made a change: user and host of the command, or the name given in the operators' pages.
alter table audit_entries add column operator text;
-- Why an operator ends a target. Its next attempt looks up what may be live, publishes nothing and ends it.
alter table targets add column stop_reason text;
