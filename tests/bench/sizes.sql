-- Generates what 20,000 published posts leave, each on three accounts and told to one endpoint, and prints the size of
-- each table per post with its indexes. Run by `just sizes`; see docs/scaling.md.
\set posts 20000
\set ON_ERROR_STOP 1
set statement_timeout = 0;

create function pg_temp.id(kind bigint, number bigint) returns uuid language sql immutable as $$
  -- Like UUIDv7: growing by the number, and then random.
  select (lpad(to_hex(1790000000000 + number * 26), 12, '0') || '7' || lpad(to_hex(kind), 3, '0') || '8'
    || substr(md5(kind::text || number::text), 1, 15))::uuid
$$;
create function pg_temp.text(number bigint, length int) returns text language sql immutable as $$
  select substr(md5(number::text) || md5((number + 1)::text) || md5((number + 2)::text) || md5((number + 3)::text)
    || md5((number + 4)::text) || md5((number + 5)::text) || md5((number + 6)::text) || md5((number + 7)::text)
    || md5((number + 8)::text) || md5((number + 9)::text) || md5((number + 10)::text) || md5((number + 11)::text)
    || md5((number + 12)::text) || md5((number + 13)::text) || md5((number + 14)::text) || md5((number + 15)::text)
    || md5((number + 16)::text) || md5((number + 17)::text) || md5((number + 18)::text) || md5((number + 19)::text),
    1, length)
$$;

insert into organizations (id, name) select pg_temp.id(0, n), 'Acme' from generate_series(1, 100) n;
insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name)
select pg_temp.id(1, n), pg_temp.id(0, n % 100 + 1), 'live', (array['x', 'linkedin', 'instagram'])[n % 3 + 1], n, n, n
from generate_series(0, 2999) n;
insert into webhooks (id, org_id, mode, url, events, secret_sealed)
select pg_temp.id(2, n), pg_temp.id(0, n), 'live', 'https://example.com', '{*}', '' from generate_series(1, 100) n;

-- As it comes: written when it is created, then by each step. Updates leave dead rows and pages that are half full.
insert into posts (id, org_id, mode, status, is_draft, scheduled_at, external_ref, metadata, created_at, updated_at)
select pg_temp.id(3, n), pg_temp.id(0, n % 100 + 1), 'live', 'scheduled', false, at, md5(n::text), '{"campaign": "spring"}', at, at
from generate_series(1, :posts) n, lateral (select to_timestamp(1790000000 + n * 0.026) as at) t;
insert into containers (id, post_id, org_id, mode, position, content)
select pg_temp.id(4, n), pg_temp.id(3, n), pg_temp.id(0, n % 100 + 1), 'live', 0, pg_temp.text(n, 220)
from generate_series(1, :posts) n;
insert into targets (id, post_id, org_id, mode, account_id, platform, created_at, updated_at)
select pg_temp.id(5 + k, n), pg_temp.id(3, n), pg_temp.id(0, n % 100 + 1), 'live', pg_temp.id(1, (n * 3 + k) % 3000),
  (array['x', 'linkedin', 'instagram'])[k + 1], at, at
from generate_series(1, :posts) n, generate_series(0, 2) k, lateral (select to_timestamp(1790000000 + n * 0.026) as at) t;
insert into publications (target_id, position, org_id, mode, commit_begun_at, commit_deadline)
select id, 0, org_id, mode, created_at, created_at from targets;
update targets set status = 'queued', attempts = 1, fence = 1;
update publications p set platform_id = substr(md5(p.target_id::text), 1, 20), account_id = t.account_id,
  published_at = t.created_at, commit_begun_at = null
from targets t where t.id = p.target_id;
update targets set status = 'published', published_at = created_at + interval '1 s',
  platform_post_id = substr(md5(id::text), 1, 20), platform_post_url = 'https://example.com/posts/' || substr(md5(id::text), 1, 20);
update posts set status = 'published', published_at = created_at;
insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
select org_id, mode, post_id, case when k > 0 then id end, created_at, 'published', pg_temp.text(k, 40), '{"from": "queued", "to": "published"}'
from targets, generate_series(0, 2) k;
insert into timeline (org_id, mode, post_id, at, kind, message, detail)
select org_id, mode, id, created_at, 'created', pg_temp.text(1, 40), '{"request_id": "req_01a2101784227051bcb05e219672e5c5"}'
from posts;
insert into events (id, org_id, mode, event, post_id, target_id, body, created_at)
select pg_temp.id(10 + k, n), pg_temp.id(0, n % 100 + 1), 'live', 'post.target.published', pg_temp.id(3, n),
  case when k < 3 then pg_temp.id(5 + k, n) end, pg_temp.text(n, 560), to_timestamp(1790000000 + n * 0.026)
from generate_series(1, :posts) n, generate_series(0, 3) k;
insert into deliveries (id, event_id, webhook_id, org_id, mode, event, created_at)
select pg_temp.id(20 + k, n), pg_temp.id(10 + k, n), pg_temp.id(2, n % 100 + 1), pg_temp.id(0, n % 100 + 1), 'live',
  'post.target.published', to_timestamp(1790000000 + n * 0.026)
from generate_series(1, :posts) n, generate_series(0, 3) k;
update deliveries set status = 'delivering', attempts = 1;
update deliveries set status = 'delivered', delivered_at = created_at, response_status = 200, response_excerpt = 'ok', latency_ms = 12;
-- Of about forty calls in the first month, one for each of the thirty days is kept.
insert into metric_snapshots (org_id, mode, target_id, impressions, reach, likes, comments, shares, saves, clicks, video_views, captured_at)
select org_id, mode, id, 1, 1, 1, 1, 1, 1, 1, 1, created_at + k * interval '1 day'
from targets, generate_series(1, 30) k where id in (select id from targets order by id limit :posts * 3 / 10);
vacuum analyze;

\echo 'Bytes per post: table, indexes. Snapshots: of the targets whose metrics are collected for a month.'
select name, round(rows / :posts::numeric, 1) as rows_per_post, table_bytes / :posts as "table", index_bytes / :posts as indexes,
  (table_bytes + index_bytes) / :posts as total
from (
  select regexp_replace(c.relname, '_(first|default|\d{8})$', '') as name, sum(greatest(s.n_live_tup, 0)) as rows,
    sum(pg_table_size(c.oid)) as table_bytes, sum(pg_indexes_size(c.oid)) as index_bytes
  from pg_class c join pg_stat_user_tables s on s.relid = c.oid
  where c.relkind = 'r' group by 1) t
where rows > 1000 order by total desc;
\echo 'Share of updates that wrote no index (HOT), in percent'
select relname, n_tup_upd as updates, round(100.0 * n_tup_hot_upd / n_tup_upd, 1) as hot from pg_stat_user_tables
where n_tup_upd > 1000 order by 1;
