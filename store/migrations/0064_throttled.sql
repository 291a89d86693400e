-- When the platform throttled the first of a target's latest attempts, without another failure since.
alter table targets add column throttled_since timestamptz;
-- Attempts that cost nothing of the budget.
alter table targets add column free_attempts integer not null default 0;
-- Until then no further post of the account is attempted: the platform throttled one.
alter table accounts add column rests_until timestamptz;
