//! Bounds of API keys: what a caller reaches, and the conditions of lists.
//!
//! An account is within a bound by its tenant, its profile or its id; a post if all of its accounts are; a media
//! asset if it was uploaded within the same bound, since it belongs to no account. See [`domain::bound`].

use domain::{Bound, Owner};
use sqlx::{PgExecutor, Postgres, QueryBuilder, types::Json};
use std::ops::Deref;
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

/// The data that a caller reaches: an organization's, in one mode, within a bound.
///
/// Functions on what a bound limits (posts, accounts, profiles, media, and what hangs on them) take it as they would
/// take an owner, and there is no such function without. Only this module opens it, and gives the owner together with
/// the bound.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    owner: Owner,
    bound: &'a Bound,
}

/// Proof that a caller reaches the whole organization: the argument of functions that read across its data.
#[derive(Clone, Copy, Debug)]
pub struct Whole(Owner);

impl Deref for Whole {
    type Target = Owner;

    fn deref(&self) -> &Owner {
        &self.0
    }
}

/// Returns access to all data of an owner, for work that no key asks for. `tests/it/walls.rs` lists the modules of the
/// API that may call it.
pub const fn unbounded(owner: Owner) -> Access<'static> {
    Access { owner, bound: Bound::ORGANIZATION }
}

impl<'a> Access<'a> {
    /// Returns the access of a caller.
    pub const fn new(owner: Owner, bound: &'a Bound) -> Self {
        Self { owner, bound }
    }

    /// Returns the proof that nothing limits the access; `None` for a limited one.
    pub fn whole(self) -> Option<Whole> {
        (!self.bound.is_limited()).then_some(Whole(self.owner))
    }

    /// Returns true if the owner has the resource and it is within the bound.
    pub async fn contains(self, db: impl PgExecutor<'_>, resource: Resource, id: Uuid) -> sqlx::Result<bool> {
        Ok(!self.within(db, resource, &[id]).await?.is_empty())
    }

    /// Returns those of the resources with these ids that the owner has and that are within the bound.
    pub async fn within(
        self,
        db: impl PgExecutor<'_>,
        resource: Resource,
        ids: &[Uuid],
    ) -> sqlx::Result<Vec<Uuid>> {
        let (table, condition): (_, Condition) = match resource {
            Resource::Account => ("accounts", push_accounts),
            Resource::Post => ("posts", push_posts),
            Resource::Media => ("media", push_media),
            Resource::Profile => ("profiles", push_profiles),
        };
        let mut query = QueryBuilder::new("select id from ");
        query.push(table).push(" where id = any(").push_bind(ids).push(")");
        query.push(" and org_id = ").push_bind(self.owner.org.0);
        query.push(" and mode = ").push_bind(self.owner.mode.as_str()).push(" and ");
        condition(&mut query, self.bound);
        query.build_query_scalar().fetch_all(db).await
    }

    /// Returns the owner to look a resource up with; `None` if the resource is not within the bound. Without a limit
    /// nothing is asked, and the resource may not exist.
    pub(crate) async fn reach(
        self,
        db: impl PgExecutor<'_>,
        resource: Resource,
        id: Uuid,
    ) -> sqlx::Result<Option<Owner>> {
        let is_reached = !self.bound.is_limited() || self.contains(db, resource, id).await?;
        Ok(is_reached.then_some(self.owner))
    }

    /// Returns the owner to look resources up with, and those of the ids that are within the bound; all of them without
    /// a limit.
    pub(crate) async fn reach_all(
        self,
        db: impl PgExecutor<'_>,
        resource: Resource,
        ids: Vec<Uuid>,
    ) -> sqlx::Result<(Owner, Vec<Uuid>)> {
        let ids = if self.bound.is_limited() { self.within(db, resource, &ids).await? } else { ids };
        Ok((self.owner, ids))
    }

    /// Returns the owner and the bound for the conditions of a list.
    pub(crate) const fn parts(self) -> (Owner, &'a Bound) {
        (self.owner, self.bound)
    }

    /// Returns the owner of rows that are created, which are in no bound yet.
    pub(crate) const fn owner_of_new(self) -> Owner {
        self.owner
    }
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
pub(crate) fn push_profiles(query: &mut QueryBuilder<Postgres>, bound: &Bound) {
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
