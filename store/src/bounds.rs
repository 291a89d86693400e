//! Bounds of API keys: whether a resource is within one, and the conditions of lists.
//!
//! An account is within a bound by its tenant, its profile or its id; a post if all of its accounts are; a media
//! asset if it was uploaded within the same bound, since it belongs to no account. See [`domain::bound`].

use domain::{Bound, Owner};
use sqlx::{PgPool, Postgres, QueryBuilder, types::Json};
use uuid::Uuid;

/// A kind of resource that can be within a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A connected or disconnected account.
    Account,
    /// A post.
    Post,
    /// A media asset.
    Media,
    /// A profile.
    Profile,
}

/// Returns true if the owner has the resource and it is within the bound.
pub async fn contains(
    db: &PgPool,
    owner: Owner,
    bound: &Bound,
    resource: Resource,
    id: Uuid,
) -> sqlx::Result<bool> {
    let (table, condition): (_, Condition) = match resource {
        Resource::Account => ("accounts", push_accounts),
        Resource::Post => ("posts", push_posts),
        Resource::Media => ("media", push_media),
        Resource::Profile => ("profiles", push_profiles),
    };
    let mut query = QueryBuilder::new("select exists (select from ");
    query.push(table).push(" where id = ").push_bind(id);
    query.push(" and org_id = ").push_bind(owner.org.0);
    query.push(" and mode = ").push_bind(owner.mode.as_str()).push(" and ");
    condition(&mut query, bound);
    query.push(")").build_query_scalar().fetch_one(db).await
}

/// Returns those of the owner's media assets with these ids that were uploaded within the bound.
pub async fn media(db: &PgPool, owner: Owner, bound: &Bound, ids: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
    let mut query = QueryBuilder::new("select id from media where id = any(");
    query.push_bind(ids).push(") and org_id = ").push_bind(owner.org.0);
    query.push(" and mode = ").push_bind(owner.mode.as_str()).push(" and ");
    push_media(&mut query, bound);
    query.build_query_scalar().fetch_all(db).await
}

/// Appends a condition on rows to a query.
type Condition = fn(&mut QueryBuilder<Postgres>, &Bound);

/// Appends the condition that a row of `accounts` is within the bound.
pub(crate) fn push_accounts(query: &mut QueryBuilder<Postgres>, bound: &Bound) {
    match bound {
        Bound::Organization => query.push("true"),
        Bound::Tenant(tenant) => query.push("accounts.tenant_id = ").push_bind(tenant.clone()),
        Bound::Profile(profile) => query.push("accounts.profile_id = ").push_bind(profile.0),
        Bound::Accounts(accounts) => {
            let ids: Vec<_> = accounts.iter().map(|account| account.0).collect();
            query.push("accounts.id = any(").push_bind(ids).push(")")
        }
    };
}

/// Appends the condition that all accounts of a row of `posts` are within the bound.
pub(crate) fn push_posts(query: &mut QueryBuilder<Postgres>, bound: &Bound) {
    if !bound.is_limited() {
        query.push("true");
        return;
    }
    query.push("exists (select from targets where targets.post_id = posts.id)");
    query.push(" and not exists (select from targets join accounts on accounts.id = targets.account_id");
    query.push(" where targets.post_id = posts.id and (");
    push_accounts(query, bound);
    // An account without a tenant or a profile is in none.
    query.push(") is not true)");
}

/// Appends the condition that a row of `media` was uploaded within the bound.
pub(crate) fn push_media(query: &mut QueryBuilder<Postgres>, bound: &Bound) {
    match bound {
        Bound::Organization => query.push("true"),
        limited => query.push("media.bound = ").push_bind(Json(limited.clone())),
    };
}

/// Appends the condition that a row of `profiles` is within the bound.
fn push_profiles(query: &mut QueryBuilder<Postgres>, bound: &Bound) {
    match bound {
        Bound::Organization => query.push("true"),
        Bound::Tenant(tenant) => query.push("profiles.tenant_id = ").push_bind(tenant.clone()),
        Bound::Profile(profile) => query.push("profiles.id = ").push_bind(profile.0),
        Bound::Accounts(_) => query.push("false"),
    };
}

/// Appends the condition that a row of `events` is about accounts and posts within the bound only.
pub(crate) fn push_events(query: &mut QueryBuilder<Postgres>, bound: &Bound) {
    if !bound.is_limited() {
        query.push("true");
        return;
    }
    query.push("(events.account_id is not null or events.post_id is not null)");
    query.push(" and (events.account_id is null or exists (select from accounts");
    query.push(" where accounts.id = events.account_id and ");
    push_accounts(query, bound);
    query.push(
        ")) and (events.post_id is null or exists (select from posts where posts.id = events.post_id and ",
    );
    push_posts(query, bound);
    query.push("))");
}

/// The bound as it is stored: null for all data of the organization.
pub(crate) fn stored(bound: &Bound) -> Option<Json<&Bound>> {
    bound.is_limited().then_some(Json(bound))
}
