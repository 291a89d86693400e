-- The target that looks whether a held app is taken again. Its next attempt is not held: it may have refreshed a token
-- first.
alter table app_holds add column looker uuid;
