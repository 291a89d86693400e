-- When the next of the released targets has its turn, so that a release that is continued goes on where it ended.
alter table freezes add column next_turn_at timestamptz;
