-- Roles and databases of an installation, created once by a superuser of Postgres: Docker Compose does so at
-- the first start. By hand, with the passwords in these variables of the environment:
--
--   psql -v ON_ERROR_STOP=1 -d postgres -f deploy/postgres/roles.sql
--
-- `fanfare migrate` runs as the owner of the database and grants the other two what they need, each time.
\getenv migrate_password FANFARE_MIGRATE_PASSWORD
\getenv api_password FANFARE_API_PASSWORD
\getenv worker_password FANFARE_WORKER_PASSWORD
\getenv temporal_password TEMPORAL_PASSWORD
create role fanfare login password :'migrate_password';
create role fanfare_api login password :'api_password';
create role fanfare_worker login password :'worker_password';
create role temporal login password :'temporal_password';
create database fanfare owner fanfare;
create database temporal owner temporal;
create database temporal_visibility owner temporal;
revoke all on database fanfare, temporal, temporal_visibility from public;
grant connect on database fanfare to fanfare_api, fanfare_worker;
