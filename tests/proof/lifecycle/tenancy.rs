//! The reference model of tenants and bounds: who reaches which rows.
//!
//! It stands beside the model of states ([`super::model`]), which knows the posts. An account belongs to an end tenant and
//! a profile and can be moved; a post is in reach if all of its accounts are; an asset belongs to the bound that it was
//! uploaded with. What concerns the whole organization is in reach of unlimited callers, and nothing of it of another
//! organization.

use super::{
    callers::{ELSEWHERE, Furniture, named},
    model::{Checked, Post},
    steps::{ACCOUNTS, SPARES},
    who::By,
};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// A bound, as it is at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// All of the organization.
    Organization,
    /// Rows of an end tenant.
    Tenant(String),
    /// Rows of a profile.
    Profile(String),
    /// Some accounts.
    Accounts(BTreeSet<String>),
    /// Nothing of the organization.
    Elsewhere,
}

/// A connected or disconnected account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// Id of the account.
    pub(super) id: String,
    /// Its platform.
    pub(super) platform: &'static str,
    /// End tenant that it belongs to.
    pub(super) tenant: Option<String>,
    /// Id of the profile that it belongs to.
    pub(super) profile: Option<String>,
    /// False while it is disconnected.
    pub(super) is_connected: bool,
}

/// Part of the organization that a row belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The organization.
    Organization,
    /// The end tenant of a client token or a profile.
    Tenant(Option<String>),
    /// The bound of the key that uploaded it.
    Upload(Bound),
}

/// A row that is no post and no account.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Kind of resource, as in paths.
    pub(super) kind: &'static str,
    /// Id of the row.
    pub(super) id: String,
    /// Its name, which the last change set.
    pub(super) name: String,
    /// Part of the organization that it belongs to.
    pub(super) place: Place,
    /// True once it was deleted.
    pub(super) is_gone: bool,
    /// True if steps may change it: nothing else depends on it.
    pub(super) is_spare: bool,
}

/// The model of an organization's tenants and bounds.
#[derive(Clone, Debug)]
pub(super) struct Tenancy {
    /// The accounts: those that posts go to, in the order of [`ACCOUNTS`], then the spare ones.
    pub(super) accounts: Vec<Account>,
    /// The other rows.
    pub(super) rows: Vec<Row>,
    /// Ids of the other organization, by kind.
    pub(super) foreign: HashMap<&'static str, String>,
    /// The profile of a key.
    pub(super) profile: String,
    /// The accounts of a key: those that have moved to another tenant have left it.
    pub(super) named: BTreeSet<String>,
}

/// Lists whose rows the model expects.
pub(super) const LISTS: [&str; 8] =
    ["posts", "social-accounts", "profiles", "media", "api-keys", "team", "webhooks", "social-networks"];

impl Tenancy {
    /// Returns the model of an organization without posts.
    pub(super) fn new(furniture: Furniture) -> Self {
        let Furniture { accounts, profile, token, spare, foreign } = furniture;
        let places = ACCOUNTS.map(|(platform, _, _, tenant)| (platform, tenant));
        let spare_account = accounts[ACCOUNTS.len()].clone();
        let of = |(id, (platform, tenant)): (&String, (&'static str, Option<&str>))| Account {
            id: id.clone(),
            platform,
            tenant: tenant.map(str::to_owned),
            profile: None,
            is_connected: true,
        };
        let named = named(&accounts).into_iter().collect();
        let places = places.into_iter().chain(SPARES.map(|(platform, _, tenant)| (platform, tenant)));
        let mut accounts: Vec<_> = accounts.iter().zip(places).map(of).collect();
        accounts[0].profile = Some(profile.clone());
        let mine = || Place::Tenant(Some("mine".to_owned()));
        let row = |kind, id: &str, name: &str, place| Row {
            kind,
            id: id.to_owned(),
            name: name.to_owned(),
            place,
            is_gone: false,
            is_spare: true,
        };
        let mut rows = vec![row("profiles", &profile, "Profile", mine())];
        rows.push(Row { is_spare: false, ..row("client-tokens", &token, &token, mine()) });
        for (kind, id) in &spare {
            let (name, place) = match *kind {
                "social-accounts" => continue,
                "profiles" | "client-tokens" => ("Spare", mine()),
                "media" => ("Spare.png", Place::Upload(Bound::Organization)),
                "team" => ("spare@example.com", Place::Organization),
                "webhooks" | "social-networks" => (id.as_str(), Place::Organization),
                _ => ("Spare", Place::Organization),
            };
            rows.push(row(kind, id, name, place));
        }
        for account in accounts.iter_mut().filter(|account| account.id == spare_account) {
            account.profile = Some(spare["profiles"].clone());
        }
        Self { accounts, rows, foreign, profile, named }
    }

    /// Adds what the setup of a case made and nothing may change, from a list.
    pub(super) fn keep(&mut self, kind: &'static str, list: &Value, name: &str) {
        for listed in list["data"].as_array().into_iter().flatten() {
            let id = listed["id"].as_str().unwrap_or_default().to_owned();
            if !self.rows.iter().any(|row| row.id == id) {
                let name = listed[name].as_str().unwrap_or(&id).to_owned();
                let place = Place::Organization;
                self.rows.push(Row { kind, id, name, place, is_gone: false, is_spare: false });
            }
        }
    }

    /// Returns the bound of a caller, as it is now.
    pub(super) fn bound(&self, by: By) -> Bound {
        match by {
            By::Owner | By::Reader => Bound::Organization,
            By::Tenant | By::Client => Bound::Tenant("mine".to_owned()),
            By::Profile => Bound::Profile(self.profile.clone()),
            By::Accounts => Bound::Accounts(self.named.clone()),
            By::Stranger => Bound::Elsewhere,
        }
    }

    /// Returns whether an account is within the bound of a caller, connected or not.
    pub(super) fn has_account(&self, by: By, index: usize) -> bool {
        let account = &self.accounts[index];
        match self.bound(by) {
            Bound::Organization => true,
            Bound::Tenant(tenant) => account.tenant.as_deref() == Some(&tenant),
            Bound::Profile(profile) => account.profile.as_deref() == Some(&profile),
            Bound::Accounts(named) => named.contains(&account.id),
            Bound::Elsewhere => false,
        }
    }

    /// Returns whether a caller finds an account.
    pub(super) fn sees_account(&self, by: By, index: usize) -> bool {
        self.accounts[index].is_connected && self.has_account(by, index)
    }

    /// Returns whether a caller finds all of these accounts.
    pub(super) fn sees_accounts(&self, by: By, accounts: impl IntoIterator<Item = usize>) -> bool {
        accounts.into_iter().all(|index| self.sees_account(by, index))
    }

    /// Returns whether a post is within the bound of a caller, deleted or not.
    pub(super) fn has_post(&self, by: By, post: &Post) -> bool {
        post.targets.iter().all(|target| self.has_account(by, target.account))
    }

    /// Returns whether a row is within the bound of a caller, deleted or not.
    pub(super) fn has_row(&self, by: By, row: &Row) -> bool {
        match (self.bound(by), &row.place) {
            (Bound::Elsewhere, _) => false,
            (Bound::Organization, _) => true,
            (Bound::Tenant(own), Place::Tenant(tenant)) => tenant.as_deref() == Some(&own),
            (Bound::Profile(own), Place::Tenant(_)) => row.kind == "profiles" && row.id == own,
            (Bound::Accounts(_), Place::Tenant(_)) | (_, Place::Organization) => false,
            (own, Place::Upload(bound)) => own == *bound,
        }
    }

    /// Returns whether a caller finds a row.
    pub(super) fn sees_row(&self, by: By, row: &Row) -> bool {
        !row.is_gone && self.has_row(by, row)
    }

    /// Returns the ids that a list has for a caller.
    pub(super) fn listed(&self, by: By, kind: &str, posts: &[Post]) -> BTreeSet<String> {
        match kind {
            "posts" => {
                let seen = posts.iter().filter(|post| !post.is_deleted && self.has_post(by, post));
                seen.map(|post| post.id.clone()).collect()
            }
            "social-accounts" => {
                let seen = (0..self.accounts.len()).filter(|index| self.sees_account(by, *index));
                seen.map(|index| self.accounts[index].id.clone()).collect()
            }
            _ => {
                let seen = self.rows.iter().filter(|row| row.kind == kind && self.sees_row(by, row));
                seen.map(|row| row.id.clone()).collect()
            }
        }
    }

    /// Checks the rows of a list.
    pub(super) fn check_list(&self, by: By, kind: &str, posts: &[Post], answer: &Value) -> Checked {
        let rows = answer["data"].as_array().ok_or_else(|| format!("{kind} are no list: {answer}"))?;
        let found: BTreeSet<_> =
            rows.iter().filter_map(|row| row["id"].as_str()).map(str::to_owned).collect();
        let expected = self.listed(by, kind, posts);
        // Another organization has rows of its own.
        let is_right = if by == By::Stranger {
            let ours = self.listed(By::Owner, kind, posts);
            found.is_disjoint(&ours)
        } else {
            found == expected
        };
        if is_right { Ok(()) } else { Err(format!("{by:?} finds {kind} {found:?} instead of {expected:?}")) }
    }

    /// Checks that an answer shows nothing that its caller does not reach. `sent` is what the request named itself.
    pub(super) fn check_hidden(&self, by: By, posts: &[Post], sent: &str, shown: &str) -> Checked {
        let mut hidden = Vec::new();
        for index in (0..self.accounts.len()).filter(|index| !self.has_account(by, *index)) {
            hidden.push(self.accounts[index].id.clone());
        }
        let seen: Vec<_> = posts.iter().filter(|post| self.has_post(by, post)).collect();
        // A reply names the post that it replies to, which may have more accounts.
        let parents: Vec<_> = seen.iter().filter_map(|post| post.parent).collect();
        for (index, post) in posts.iter().enumerate().filter(|(_, post)| !self.has_post(by, post)) {
            hidden.push(format!("Text {}.", post.text));
            hidden.extend((!parents.contains(&index)).then(|| post.id.clone()));
        }
        // An account names its profile, also one of another tenant.
        let names_profiles = |row: &&Row| row.kind == "profiles" && by != By::Stranger;
        let rows = self.rows.iter().filter(|row| !self.has_row(by, row) && !names_profiles(row));
        hidden.extend(rows.map(|row| row.id.clone()));
        if by != By::Stranger {
            hidden.push(ELSEWHERE.to_owned());
            hidden.extend(self.foreign.values().cloned());
        }
        let found =
            hidden.iter().find(|hidden| shown.contains(hidden.as_str()) && !sent.contains(hidden.as_str()));
        match found {
            Some(found) => Err(format!("{by:?} is shown {found} by {shown}")),
            None => Ok(()),
        }
    }

    /// Moves an account to an end tenant: it leaves its profile, and the keys that name it.
    pub(super) fn move_to(&mut self, index: usize, tenant: Option<String>) {
        let account = &mut self.accounts[index];
        if account.tenant != tenant {
            (account.tenant, account.profile) = (tenant, None);
            self.named.remove(&account.id);
        }
    }

    /// Gives a profile these accounts and no other.
    pub(super) fn group(&mut self, profile: &str, members: &[usize]) {
        for (index, account) in self.accounts.iter_mut().enumerate() {
            if members.contains(&index) {
                account.profile = Some(profile.to_owned());
            } else if account.profile.as_deref() == Some(profile) {
                account.profile = None;
            }
        }
    }

    /// Returns the connected accounts of a profile.
    pub(super) fn members(&self, profile: &str) -> Vec<usize> {
        let is_member =
            |account: &Account| account.is_connected && account.profile.as_deref() == Some(profile);
        (0..self.accounts.len()).filter(|index| is_member(&self.accounts[*index])).collect()
    }

    /// Returns whether a caller may change the accounts of a profile, which it finds, to these.
    pub(super) fn may_regroup(&self, by: By, profile: &str, kept: &[usize]) -> bool {
        let members = self.members(profile);
        let keeps_all = members.iter().all(|member| kept.contains(member));
        !by.is_limited() || self.sees_accounts(by, members) && (keeps_all || by != By::Profile)
    }

    /// A row was deleted.
    pub(super) fn end(&mut self, id: &str) {
        self.rows.iter_mut().filter(|row| row.id == id).for_each(|row| row.is_gone = true);
        self.group(id, &[]);
    }
}
