//! Posting slots: the times at which an account's queue publishes, and reservations of these times.
//!
//! A queued post holds its slot by its own row, so that canceling, deleting or rescheduling it releases the
//! slot, and a unique index keeps two posts from holding the same one. With the index alone, posts created
//! concurrently would wait for each other, slot by slot; so each first locks the slot that it is about to
//! take, and skips those that other transactions have locked.

use crate::{
    bounds::{self, Access, Resource, Whole},
    page::{Cursor, Page, Request},
    usage::ceilings::{self, Exceeded, Kind},
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, Owner, PostId,
    slot::{Schedule, Slot},
};
use sqlx::{PgConnection, PgPool, QueryBuilder, types::Json};
use std::collections::HashSet;
use uuid::Uuid;

/// Number of slots that a post tries to lock: more than there are connections to take one.
const MAX_CANDIDATES: usize = 200;
/// Slots of all sets on a page, which ends with the set that reaches it: a slot takes far more memory than its text.
const PAGE_SLOTS: i64 = 5_000;

/// The slots of an account, or the default slots of the organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Id of the set.
    pub id: Uuid,
    /// The account; `None` for the slots of accounts that have none of their own.
    pub account: Option<AccountId>,
    /// Weekly local times.
    pub slots: Vec<Slot>,
    /// When the set was created.
    pub created_at: DateTime<Utc>,
    /// When the set was last updated.
    pub updated_at: DateTime<Utc>,
}

/// The queue of an account: each post takes the next slot without a post.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Account of the queue.
    pub account: AccountId,
    /// Times of the slots.
    pub schedule: Schedule,
}

/// Replaces the slots of an account, or of the organization, unless all together would exceed the `limit` of slots.
/// Returns `None` when the account doesn't exist.
pub async fn set(
    db: &PgPool,
    access: Access<'_>,
    account: Option<AccountId>,
    slots: Vec<Slot>,
    limit: Option<u64>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Result<Set, Exceeded>>> {
    let owner = match account {
        Some(account) => access.reach(db, Resource::Account, account.0).await?,
        None => access.whole().map(|whole| *whole),
    };
    let Some(owner) = owner else { return Ok(None) };
    let count = slots.len() as u64;
    let mut tx = crate::begin(db).await?;
    let row = sqlx::query_as!(
        Row,
        r#"insert into slots (id, org_id, mode, account_id, slots, created_at, updated_at)
           select $1, $2, $3, $4, $5, $6, $6
           where $4::uuid is null or exists (
             select from accounts where id = $4 and org_id = $2 and mode = $3 and status <> 'disconnected')
           on conflict (org_id, mode, coalesce(account_id, '00000000-0000-0000-0000-000000000000'))
             do update set slots = excluded.slots, updated_at = excluded.updated_at
           returning id, account_id, slots as "slots: Json<Vec<Slot>>", created_at, updated_at"#,
        Uuid::now_v7(),
        owner.org.0,
        owner.mode.as_str(),
        account.map(|account| account.0),
        Json(slots) as _,
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(None) };
    // Those that replaced others are counted already.
    if let Err(Exceeded { limit, used }) = ceilings::check(&mut tx, owner, Kind::Slots, 0, limit, now).await?
        && count > 0
    {
        return Ok(Some(Err(Exceeded { limit, used: used.saturating_sub(count) })));
    }
    tx.commit().await?;
    Ok(Some(Ok(row.into())))
}

/// Returns a page of the sets of accounts that a caller reaches, without those of disconnected ones; before them the
/// organization's, which a limited caller does not reach.
pub async fn list(db: &PgPool, access: Access<'_>, page: Request) -> sqlx::Result<Page<Set>> {
    let (owner, bound) = access.parts();
    let beyond = page.beyond();
    let mut query = QueryBuilder::new(
        "select id, account_id, slots, created_at, updated_at, found from (
           select page.*, count(*) over () as found,
             sum(jsonb_array_length(slots)) over (order by account_id is not null, created_at, id)
               - jsonb_array_length(slots) as before
           from (
             select s.id, s.account_id, s.slots, s.created_at, s.updated_at
             from slots s left join accounts on accounts.id = s.account_id where s.org_id = ",
    );
    query.push_bind(owner.org.0).push(" and s.mode = ").push_bind(owner.mode.as_str());
    query.push(" and case when s.account_id is null then ");
    query.push_bind(page.after.is_none() && !bound.is_limited());
    query.push(" else accounts.status <> 'disconnected' and (s.created_at, s.id) > (");
    query.push_bind(beyond.created_at).push(", ").push_bind(beyond.id).push(") and ");
    bounds::push_accounts(&mut query, bound);
    query.push(" end order by s.account_id is not null, s.created_at, s.id limit ").push_bind(page.rows());
    query.push(") page) sized where before < ").push_bind(PAGE_SLOTS);
    query.push(" order by account_id is not null, created_at, id");
    let rows = query.build_query_as::<Listed>().fetch_all(db).await?;
    let found = rows.first().map_or(0, |listed| listed.found);
    let rows = rows.into_iter().map(|listed| listed.row).collect();
    // After the organization's set come those of all accounts.
    let key = |row: &Row| match row.account_id {
        Some(_) => Cursor { created_at: row.created_at, id: row.id },
        None => Cursor::FIRST,
    };
    let Page { items, next } = page.part(rows, found, key);
    Ok(Page { items: items.into_iter().map(Set::from).collect(), next })
}

/// Returns the slots that apply to an account: its own, else the organization's; empty without any.
pub async fn of(db: &PgPool, access: Access<'_>, account: AccountId) -> sqlx::Result<Vec<Slot>> {
    let Some(owner) = access.reach(db, Resource::Account, account.0).await? else { return Ok(Vec::new()) };
    let slots = sqlx::query_scalar!(
        r#"select slots as "slots: Json<Vec<Slot>>" from slots
           where org_id = $1 and mode = $2 and (account_id = $3 or account_id is null)
             and jsonb_array_length(slots) > 0
           order by account_id is null limit 1"#,
        owner.org.0,
        owner.mode.as_str(),
        account.0
    )
    .fetch_optional(db)
    .await?;
    Ok(slots.map(|Json(slots)| slots).unwrap_or_default())
}

/// Returns the next `count` open slots after `after`, without reserving them.
pub async fn open(
    db: &PgPool,
    access: Access<'_>,
    queue: &Queue,
    after: DateTime<Utc>,
    count: usize,
) -> sqlx::Result<Vec<DateTime<Utc>>> {
    let Some(owner) = access.reach(db, Resource::Account, queue.account.0).await? else {
        return Ok(Vec::new());
    };
    open_to(&mut *db.acquire().await?, owner, queue, after, None, count).await
}

/// Returns the slots that are open to a post, including the one that it holds.
async fn open_to(
    connection: &mut PgConnection,
    owner: Owner,
    queue: &Queue,
    after: DateTime<Utc>,
    post: Option<PostId>,
    count: usize,
) -> sqlx::Result<Vec<DateTime<Utc>>> {
    let taken = sqlx::query_scalar!(
        r#"select scheduled_at as "at!" from posts
           where org_id = $1 and mode = $2 and slot_account_id = $3 and scheduled_at > $4
             and deleted_at is null and status <> 'canceled' and id is distinct from $5"#,
        owner.org.0,
        owner.mode.as_str(),
        queue.account.0,
        after,
        post.map(|post| post.0)
    )
    .fetch_all(connection)
    .await?;
    let taken: HashSet<_> = taken.into_iter().collect();
    Ok(queue.schedule.after(after).filter(|at| !taken.contains(at)).take(count).collect())
}

/// The slots of an account that publishes by them.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The account.
    pub account: AccountId,
    /// Platform id.
    pub platform: String,
    /// Handle on the platform.
    pub username: String,
    /// Its own slots, else the organization's.
    pub slots: Vec<Slot>,
}

/// Returns the slots of active accounts that have some, up to `limit` accounts, or of one account.
pub async fn planned(
    db: &PgPool,
    owner: Whole,
    account: Option<AccountId>,
    limit: i64,
) -> sqlx::Result<Vec<Planned>> {
    let rows = sqlx::query!(
        r#"select a.id, a.platform, a.username, coalesce(own.slots, shared.slots) as "slots!: Json<Vec<Slot>>"
           from accounts a
           left join slots own on own.account_id = a.id and jsonb_array_length(own.slots) > 0
           left join slots shared on shared.org_id = a.org_id and shared.mode = a.mode and shared.account_id is null
             and jsonb_array_length(shared.slots) > 0
           where a.org_id = $1 and a.mode = $2 and a.status = 'active' and ($3::uuid is null or a.id = $3)
             and coalesce(own.slots, shared.slots) is not null
           order by a.created_at desc, a.id desc limit $4"#,
        owner.org.0,
        owner.mode.as_str(),
        account.map(|account| account.0),
        limit
    )
    .fetch_all(db)
    .await?;
    let planned = rows.into_iter().map(|row| Planned {
        account: row.id.into(),
        platform: row.platform,
        username: row.username,
        slots: row.slots.0,
    });
    Ok(planned.collect())
}

/// Returns the slots that posts hold in a time.
pub async fn taken(
    db: &PgPool,
    owner: Whole,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> sqlx::Result<HashSet<(AccountId, DateTime<Utc>)>> {
    let rows = sqlx::query!(
        r#"select slot_account_id as "account!", scheduled_at as "at!" from posts
           where org_id = $1 and mode = $2 and slot_account_id is not null and scheduled_at >= $3 and scheduled_at < $4
             and deleted_at is null and status <> 'canceled'"#,
        owner.org.0,
        owner.mode.as_str(),
        from,
        until
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (AccountId(row.account), row.at)).collect())
}

/// Reserves a slot until the transaction ends, the next one if possible. Returns `None` when none is open.
/// Another transaction may have taken it just before: then writing the post fails with [`is_taken`], and a
/// new transaction sees the taken slot.
pub(crate) async fn reserve(
    tx: &mut PgConnection,
    owner: Owner,
    queue: &Queue,
    post: Option<PostId>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    let open = open_to(tx, owner, queue, now, post, MAX_CANDIDATES).await?;
    let [first, ..] = open[..] else { return Ok(None) };
    if let Some(at) = lock(tx, owner, queue.account, &open, post).await? {
        return Ok(Some(at));
    }
    // All open slots are being taken, and one may be released by a rollback. This transaction has locked no
    // slot yet, so that none waits for it meanwhile.
    sqlx::query!("select pg_advisory_xact_lock($1)", key(queue.account, first)).execute(tx).await?;
    Ok(Some(first))
}

/// Locks the first slot that no other transaction has locked and no post holds, without waiting.
async fn lock(
    tx: &mut PgConnection,
    owner: Owner,
    account: AccountId,
    slots: &[DateTime<Utc>],
    post: Option<PostId>,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    let place = sqlx::query_scalar!(
        r#"with recursive walk as (
             select 0 as place, false as is_won
             union all
             select place + 1, case
               when exists (
                 select from posts
                 where org_id = $1 and mode = $2 and slot_account_id = $3
                   and scheduled_at = ($4::timestamptz[])[place + 1]
                   and deleted_at is null and status <> 'canceled' and id is distinct from $6) then false
               else pg_try_advisory_xact_lock(($5::bigint[])[place + 1])
             end
             from walk where not is_won and place < cardinality($5::bigint[])
           )
           select place as "place!" from walk where is_won"#,
        owner.org.0,
        owner.mode.as_str(),
        account.0,
        slots,
        &slots.iter().map(|at| key(account, *at)).collect::<Vec<_>>(),
        post.map(|post| post.0)
    )
    .fetch_optional(tx)
    .await?;
    let index = place.and_then(|place| usize::try_from(place - 1).ok());
    Ok(index.and_then(|index| slots.get(index).copied()))
}

/// Returns the key of a slot's advisory lock. If two slots have the same key, one waits for the other.
fn key(account: AccountId, at: DateTime<Utc>) -> i64 {
    // The second half of an id is random.
    let (_, random) = account.0.as_u64_pair();
    random.cast_signed() ^ at.timestamp()
}

/// Returns whether a post could not be written because another post holds its slot.
pub(crate) fn is_taken(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.constraint() == Some("posts_slot_key"))
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    account_id: Option<Uuid>,
    slots: Json<Vec<Slot>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

/// A set in a list.
#[derive(sqlx::FromRow)]
struct Listed {
    #[sqlx(flatten)]
    row: Row,
    /// Number of sets that were looked at.
    found: i64,
}

impl From<Row> for Set {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            account: row.account_id.map(AccountId),
            slots: row.slots.0,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}
