-- Whose published post an id is: a look-up must not take the post of another target of the account for its
-- own. Null where two targets share an id that the platform answered to both.
alter table publications add column account_id uuid;

update publications p set account_id = first.account_id
from (
  select distinct on (t.account_id, p.platform_id) t.account_id, p.target_id, p.position
  from publications p join targets t on t.id = p.target_id
  where p.platform_id is not null
  order by t.account_id, p.platform_id, p.published_at, p.target_id, p.position) first
where p.target_id = first.target_id and p.position = first.position;

create unique index publications_platform_id_key on publications (account_id, platform_id)
  where platform_id is not null;
create index publications_recent on publications (account_id, published_at) where platform_id is not null;
