//! Bound of an API key: the part of its organization's data that the key is limited to.
//!
//! A bound is a rule on accounts. What is made of accounts follows from it: a post is within a bound if all of
//! its accounts are. So an account that moves to another tenant takes its posts along.

use crate::{AccountId, ProfileId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The data that an API key is limited to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// All data of the organization.
    #[default]
    Organization,
    /// The accounts and profiles of an end tenant.
    Tenant(String),
    /// A profile and its accounts.
    Profile(ProfileId),
    /// These accounts.
    Accounts(Vec<AccountId>),
}

impl Bound {
    /// The bound of a key of the organization.
    pub const ORGANIZATION: &'static Self = &Self::Organization;

    /// Returns true if the key is limited to a part of the organization's data.
    pub fn is_limited(&self) -> bool {
        *self != Self::Organization
    }

    /// Returns the end tenant that the key is limited to.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Self::Tenant(tenant) => Some(tenant),
            _ => None,
        }
    }

    /// Returns true if an account with this tenant and profile is within the bound.
    pub fn has_account(&self, id: AccountId, tenant: Option<&str>, profile: Option<ProfileId>) -> bool {
        match self {
            Self::Organization => true,
            Self::Tenant(own) => tenant == Some(own),
            Self::Profile(own) => profile == Some(*own),
            Self::Accounts(own) => own.contains(&id),
        }
    }
}

/// Names the resources that the key is limited to, for messages.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Organization => f.write_str("the organization"),
            Self::Tenant(tenant) => write!(f, "the tenant {tenant}"),
            Self::Profile(profile) => write!(f, "the profile {profile}"),
            Self::Accounts(accounts) => match accounts[..] {
                [account] => write!(f, "the account {account}"),
                _ => write!(f, "{} accounts", accounts.len()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_bound_contains_what_belongs_to_it() {
        let (account, other) = (AccountId(Uuid::from_u128(1)), AccountId(Uuid::from_u128(2)));
        let (profile, another) = (ProfileId(Uuid::from_u128(3)), ProfileId(Uuid::from_u128(4)));
        let tenant = Bound::Tenant("a".to_owned());
        for (bound, id, tenant, group, is_within) in [
            (Bound::Organization, account, None, None, true),
            (tenant.clone(), account, Some("a"), None, true),
            (tenant.clone(), account, Some("A"), None, false),
            (tenant.clone(), account, None, Some(profile), false),
            (Bound::Profile(profile), account, None, Some(profile), true),
            (Bound::Profile(profile), account, Some("a"), Some(another), false),
            (Bound::Profile(profile), account, Some("a"), None, false),
            (Bound::Accounts(vec![account]), account, None, None, true),
            (Bound::Accounts(vec![account]), other, Some("a"), Some(profile), false),
            (Bound::Accounts(Vec::new()), account, None, None, false),
        ] {
            assert_eq!(bound.has_account(id, tenant, group), is_within, "{bound:?} {id} {tenant:?}");
        }
    }

    #[test]
    fn every_bound_but_the_organization_is_limited_and_named() {
        let (profile, account) = (ProfileId(Uuid::from_u128(3)), AccountId(Uuid::from_u128(1)));
        for (bound, tenant, name) in [
            (Bound::Organization, None, "the organization".to_owned()),
            (Bound::Tenant("a".to_owned()), Some("a"), "the tenant a".to_owned()),
            (Bound::Profile(profile), None, format!("the profile {profile}")),
            (Bound::Accounts(vec![account]), None, format!("the account {account}")),
            (Bound::Accounts(vec![account; 2]), None, "2 accounts".to_owned()),
            (Bound::Accounts(Vec::new()), None, "0 accounts".to_owned()),
        ] {
            assert_eq!(bound.is_limited(), bound != Bound::default(), "{bound:?}");
            assert_eq!((bound.tenant(), bound.to_string()), (tenant, name), "{bound:?}");
        }
        assert!(!Bound::ORGANIZATION.is_limited() && Bound::Accounts(Vec::new()).is_limited());
    }

    #[test]
    fn bounds_are_stored_as_objects_of_one_member() {
        for (bound, text) in [
            (Bound::Tenant("a".to_owned()), r#"{"tenant":"a"}"#),
            (Bound::Profile(ProfileId(Uuid::nil())), r#"{"profile":"00000000-0000-0000-0000-000000000000"}"#),
            (Bound::Accounts(Vec::new()), r#"{"accounts":[]}"#),
        ] {
            assert_eq!(serde_json::to_string(&bound).unwrap(), text);
            assert_eq!(serde_json::from_str::<Bound>(text).unwrap(), bound);
        }
    }
}
