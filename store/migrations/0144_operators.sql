-- The dead targets of a time, of all organizations: operators ask which of them may be live.
create index targets_dead on targets (updated_at) where status = 'dead';
