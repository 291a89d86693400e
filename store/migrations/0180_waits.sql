-- What a target waits for that is not a time: a file, the post that it replies to, a slot, a claim, the service itself.
-- `wait_since` is when it began to wait for this, `wait_until` when that ends. `look_at` is when its workflow looks at
-- the row again; unlike `next_attempt_at` it refuses no attempt, so that what it waits for may wake it before.
alter table targets
  add column wait_reason text,
  add column wait_since timestamptz,
  add column wait_until timestamptz,
  add column look_at timestamptz;
