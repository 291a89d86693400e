//! One platform account that end tenants connect, disconnect and move, and the keys that reach its rows.
//!
//! A row is the account in the hands of one tenant. Whether a key reaches a row is decided by [`domain::Bound`], which the
//! product asks, too; its conditions on posts are SQL, and are described here a second time. A row of another account, which
//! always belongs to the second tenant, is there for posts of both.

use crate::graph::{self, Broken, Cause, Explored, Kept, Next};
use domain::{AccountId, Bound, ProfileId};
use strum::{EnumIter, IntoStaticStr};
use uuid::Uuid;

/// Names of the transitions of the product that this model makes, besides those of [`super::Transition`].
pub(crate) const TRANSITIONS: [&str; 3] = ["Connect", "Move", "HandOver"];

/// End tenants; `None` is an account without one.
const TENANTS: [Option<u8>; 3] = [None, Some(0), Some(1)];
/// Three rows of the account, and one of the other account.
const ROWS: usize = 4;
/// The row of the other account, which belongs to the second tenant.
const OTHER: usize = 3;
/// Posts that are created.
const POSTS: usize = 1;

/// The account and its tenants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tenants {
    /// A rule that is left out, to show that an invariant depends on it.
    pub flaw: Option<TenantFlaw>,
}

/// A rule of tenants that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum TenantFlaw {
    /// An account that was disconnected is connected for another tenant in the same row.
    ReusesRow,
    /// A key that names an account reaches it after it has moved.
    KeepsKeys,
    /// An account that moves stays in the profile of its former tenant.
    KeepsProfile,
    /// A post is reached if one of its accounts is.
    ReachesAny,
    /// A login for another tenant connects an account that is connected for the first one.
    ConnectsConnected,
}

/// A statement that holds in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, IntoStaticStr)]
pub enum TenantInvariant {
    /// A key with a bound reaches the accounts of its tenant only.
    AccountsAreBound,
    /// A key with a bound reaches the posts of its tenant only: those made for it, and those that came with an account.
    PostsAreBound,
    /// At most one row of the account is connected.
    ConnectedOnce,
}

/// A row of `accounts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    tenant: Option<u8>,
    is_connected: bool,
    /// The tenant whose profile it is in.
    profile: Option<u8>,
}

/// A post, with the rows that it is published to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Post {
    rows: [bool; ROWS],
    /// The tenants that it was made for.
    tenants: [bool; TENANTS.len()],
}

/// A state of all rows and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TenantState {
    rows: [Option<Row>; ROWS],
    /// The rows that a key names, which was given for one of the [`TENANTS`].
    named: [Option<[bool; ROWS]>; TENANTS.len()],
    posts: [Option<Post>; POSTS],
}

fn account(row: usize) -> AccountId {
    AccountId(Uuid::from_u128(row as u128))
}

fn tenant(tenant: u8) -> String {
    tenant.to_string()
}

fn profile(tenant: u8) -> ProfileId {
    ProfileId(Uuid::from_u128(tenant.into()))
}

impl Row {
    fn is_within(&self, index: usize, bound: &Bound) -> bool {
        bound.has_account(account(index), self.tenant.map(tenant).as_deref(), self.profile.map(profile))
    }
}

impl TenantState {
    /// Returns the keys with a bound, each with its tenant.
    fn keys(&self) -> Vec<(Option<u8>, Bound)> {
        let named = TENANTS.iter().zip(self.named).filter_map(|(of, rows)| {
            let rows = rows?;
            let accounts = (0..ROWS).filter(|row| rows[*row]).map(account).collect();
            Some((*of, Bound::Accounts(accounts)))
        });
        let of_tenants = TENANTS
            .into_iter()
            .flatten()
            .flat_map(|of| [(Some(of), Bound::Tenant(tenant(of))), (Some(of), Bound::Profile(profile(of)))]);
        named.chain(of_tenants).collect()
    }
}

impl Tenants {
    /// Explores all states.
    ///
    /// # Errors
    ///
    /// With the first invariant that does not hold.
    pub fn explore(&self) -> Result<Explored, Broken> {
        graph::explore(self)
    }

    fn has(&self, flaw: TenantFlaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Connects the account for a tenant: the row that is connected, else the last one of this tenant, else a new one.
    /// Returns false if it is connected for another tenant, or there is no room for a row.
    fn connect(&self, state: &mut TenantState, of: Option<u8>) -> bool {
        let find = |is_meant: &dyn Fn(&Row) -> bool| {
            state.rows[..OTHER].iter().rposition(|row| row.as_ref().is_some_and(is_meant))
        };
        let connected = find(&|row| row.is_connected);
        let former = find(&|row| row.tenant == of || self.has(TenantFlaw::ReusesRow));
        let Some(index) = connected.or(former) else {
            let Some(free) = state.rows.iter().position(Option::is_none) else { return false };
            state.rows[free] = Some(Row { tenant: of, is_connected: true, profile: None });
            return true;
        };
        let mut row = state.rows[index].expect("the row was found");
        let is_assigned = connected.is_some() && row.tenant.is_none() && of.is_some();
        if connected.is_some() && of.is_some() && row.tenant != of && !is_assigned {
            return false;
        }
        row.is_connected = true;
        if is_assigned {
            (row.tenant, row.profile) = (of, None);
        }
        if self.has(TenantFlaw::ReusesRow) {
            row.tenant = of;
        }
        state.rows[index] = Some(row);
        if is_assigned {
            self.hand_over(state, index, of);
        }
        true
    }

    /// Ends what keys were given of a row that has moved to another tenant. Its posts come with it.
    fn hand_over(&self, state: &mut TenantState, index: usize, to: Option<u8>) {
        if !self.has(TenantFlaw::KeepsKeys) {
            for named in state.named.iter_mut().flatten() {
                named[index] = false;
            }
        }
        for post in state.posts.iter_mut().flatten().filter(|post| post.rows[index]) {
            let place = TENANTS.iter().position(|tenant| *tenant == to).expect("a tenant");
            post.tenants[place] = true;
        }
    }

    /// Appends what may be done with a row.
    fn change(&self, state: &TenantState, index: usize, next: &mut Vec<Next<TenantState>>) {
        let Some(row) = state.rows[index] else { return };
        let mut push = |name, state| next.push(Next { name, cause: Cause::Will, state });
        let with = |row: Row| {
            let mut state = *state;
            state.rows[index] = Some(row);
            state
        };
        if row.is_connected && index != OTHER {
            push("Disconnect", with(Row { is_connected: false, ..row }));
            for to in TENANTS.into_iter().flatten().filter(|to| row.tenant != Some(*to)) {
                let profile = row.profile.filter(|_| self.has(TenantFlaw::KeepsProfile));
                let mut moved = with(Row { tenant: Some(to), profile, ..row });
                self.hand_over(&mut moved, index, Some(to));
                push("Move", moved);
            }
        }
        if row.is_connected && row.profile.is_none() && row.tenant.is_some() {
            push("Group", with(Row { profile: row.tenant, ..row }));
        }
        let Some(free) = state.posts.iter().position(Option::is_none) else { return };
        if !row.is_connected {
            return;
        }
        for others in [false, true] {
            let mut post = Post { rows: [false; ROWS], tenants: [false; TENANTS.len()] };
            post.rows[index] = true;
            post.rows[OTHER] |= others;
            for own in rows_of(&post).collect::<Vec<_>>() {
                let tenant = state.rows[own].and_then(|row| row.tenant);
                let place = TENANTS.iter().position(|one| *one == tenant).expect("a tenant");
                post.tenants[place] = true;
            }
            let mut state = *state;
            state.posts[free] = Some(post);
            push("Post", state);
        }
    }
}

impl Kept for Tenants {
    type State = TenantState;

    fn begin(&self) -> Vec<TenantState> {
        let mut rows = [None; ROWS];
        rows[OTHER] = Some(Row { tenant: Some(1), is_connected: true, profile: None });
        vec![TenantState { rows, named: [None; TENANTS.len()], posts: [None; POSTS] }]
    }

    fn follow(&self, state: &TenantState, next: &mut Vec<Next<TenantState>>) {
        for of in TENANTS {
            let mut after = *state;
            let is_refused = !self.connect(&mut after, of);
            if is_refused && self.has(TenantFlaw::ConnectsConnected) {
                let free = after.rows.iter().position(Option::is_none);
                if let Some(free) = free {
                    after.rows[free] = Some(Row { tenant: of, is_connected: true, profile: None });
                }
            }
            next.push(Next { name: "Connect", cause: Cause::Will, state: after });
        }
        for row in 0..ROWS {
            self.change(state, row, next);
        }
        for (place, of) in TENANTS.iter().enumerate() {
            if state.named[place].is_some() {
                continue;
            }
            let mut state = *state;
            state.named[place] = Some(state.rows.map(|row| row.is_some_and(|row| row.tenant == *of)));
            next.push(Next { name: "GiveKey", cause: Cause::Will, state });
        }
    }

    fn broken(&self, state: &TenantState) -> Option<&'static str> {
        let connected = state.rows[..OTHER].iter().flatten().filter(|row| row.is_connected).count();
        if connected > 1 {
            return Some(TenantInvariant::ConnectedOnce.into());
        }
        for (of, bound) in state.keys() {
            let reached: [bool; ROWS] = std::array::from_fn(|index| {
                state.rows[index].is_some_and(|row| row.is_within(index, &bound))
            });
            let is_own = |row: &Option<Row>| row.is_some_and(|row| row.tenant == of);
            if state.rows.iter().zip(reached).any(|(row, is_reached)| is_reached && !is_own(row)) {
                return Some(TenantInvariant::AccountsAreBound.into());
            }
            let place = TENANTS.iter().position(|tenant| *tenant == of).expect("a tenant");
            let foreign = state.posts.iter().flatten().find(|post| {
                let mut rows = rows_of(post);
                let is_reached = match self.has(TenantFlaw::ReachesAny) {
                    true => rows.any(|row| reached[row]),
                    false => rows.all(|row| reached[row]),
                };
                let mut tenants = rows_of(post).map(|row| state.rows[row].and_then(|row| row.tenant));
                is_reached && (!post.tenants[place] || tenants.any(|tenant| tenant != of))
            });
            if foreign.is_some() {
                return Some(TenantInvariant::PostsAreBound.into());
            }
        }
        None
    }

    fn has_ended(&self, _: &TenantState) -> bool {
        true
    }
}

fn rows_of(post: &Post) -> impl Iterator<Item = usize> + '_ {
    (0..ROWS).filter(|row| post.rows[*row])
}
