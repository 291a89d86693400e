//! Pagination with opaque cursors, signed for one list of one owner.
//!
//! The signature keeps the format private and prevents using a cursor with another list or owner. It is not
//! encryption: a cursor contains a time and an id that the list has shown.

use crate::{
    http::{
        caller::Call,
        problem::{Code, Problem},
    },
    openapi::validate::Rules,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::DateTime;
use domain::{AccountId, Owner, PostId, WebhookId};
use hmac::{Hmac, KeyInit, Mac};
use poem_openapi::Object;
use sha2::Sha256;
use store::page::{Cursor, Request};
use uuid::Uuid;

/// Default page size.
const DEFAULT_LIMIT: i64 = 25;
/// Maximum page size.
const MAX_LIMIT: i64 = 100;
/// Page size of a list that once had no pages, for clients that ask for none: more than the default ceilings allow of
/// what such a list contains.
const WHOLE: u32 = 1000;
/// Length of the signature, in bytes.
const TAG_BYTES: usize = 16;

/// Returns the number of rows on a page for the `limit` of a request.
pub fn page_size(limit: Option<i64>) -> u32 {
    let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    u32::try_from(limit).expect("a limit is at most 100")
}

/// The page of a list that once had no pages.
#[derive(Debug, Default, Object)]
#[oai(rename = "ShortListPaging")]
pub struct Paging {
    /// Page size, 1 to 100; values outside are clamped. Without it, a page has up to 1,000 entries.
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

impl Rules for Paging {}

/// A paginated list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Posts.
    Posts,
    /// Accounts.
    Accounts,
    /// Deliveries to a webhook endpoint.
    Deliveries(WebhookId),
    /// Events.
    Events,
    /// Requests.
    Requests,
    /// The audit trail.
    Audit,
    /// API keys.
    Keys,
    /// Webhook endpoints.
    Webhooks,
    /// Profiles.
    Profiles,
    /// Members of the organization.
    Team,
    /// Posting slots.
    Slots,
    /// The timeline of a post.
    Timeline(PostId),
    /// Imports of an account.
    Imports(AccountId),
    /// Imported posts of an account.
    ImportedPosts(AccountId),
}

impl List {
    /// Parses limit and cursor of a request.
    ///
    /// # Errors
    ///
    /// `invalid_cursor`, when the cursor was not made by this list for this owner.
    pub fn request(
        self,
        call: &Call<'_>,
        limit: Option<i64>,
        cursor: Option<&str>,
    ) -> Result<Request, Problem> {
        let after =
            cursor.map(|text| self.read(&call.app.config.cursor_key, call.owner, text)).transpose()?;
        Ok(Request { after, limit: page_size(limit) })
    }

    /// Parses the page of a list that once had no pages.
    ///
    /// # Errors
    ///
    /// `invalid_cursor`, when the cursor was not made by this list for this owner.
    pub fn paged(self, call: &Call<'_>, paging: &Paging) -> Result<Request, Problem> {
        let request = self.request(call, paging.limit, paging.cursor.as_deref())?;
        Ok(if paging.limit.is_none() { Request { limit: WHOLE, ..request } } else { request })
    }

    /// Signs the cursor of the next page.
    pub fn next(self, call: &Call<'_>, cursor: Option<Cursor>) -> Option<String> {
        cursor.map(|cursor| self.write(&call.app.config.cursor_key, call.owner, cursor))
    }

    fn write(self, key: &[u8; 32], owner: Owner, cursor: Cursor) -> String {
        let micros = cursor.created_at.timestamp_micros().to_be_bytes();
        let row = [&micros[..], cursor.id.as_bytes()].concat();
        let tag = self.sign(key, owner, &row).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode([&tag[..TAG_BYTES], &row].concat())
    }

    fn read(self, key: &[u8; 32], owner: Owner, text: &str) -> Result<Cursor, Problem> {
        let read = || {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
            let (tag, row) = bytes.split_at_checked(TAG_BYTES)?;
            self.sign(key, owner, row).verify_truncated_left(tag).ok()?;
            let (micros, id) = row.split_first_chunk::<8>()?;
            let created_at = DateTime::from_timestamp_micros(i64::from_be_bytes(*micros))?;
            Some(Cursor { created_at, id: Uuid::from_slice(id).ok()? })
        };
        read().ok_or_else(|| Problem::new(Code::InvalidCursor, "invalid cursor"))
    }

    fn sign(self, key: &[u8; 32], owner: Owner, row: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
        let list = match self {
            Self::Posts => "posts".to_owned(),
            Self::Accounts => "accounts".to_owned(),
            Self::Events => "events".to_owned(),
            Self::Requests => "requests".to_owned(),
            Self::Audit => "audit".to_owned(),
            Self::Keys => "keys".to_owned(),
            Self::Webhooks => "webhooks".to_owned(),
            Self::Profiles => "profiles".to_owned(),
            Self::Team => "team".to_owned(),
            Self::Slots => "slots".to_owned(),
            Self::Timeline(post) => format!("timeline-{post}"),
            Self::Deliveries(webhook) => format!("deliveries-{webhook}"),
            Self::Imports(account) => format!("imports-{account}"),
            Self::ImportedPosts(account) => format!("imported-posts-{account}"),
        };
        mac.update(format!("cursor:{list}:{}:{}:", owner.org, owner.mode).as_bytes());
        mac.update(row);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Mode, OrgId};

    #[test]
    fn a_cursor_is_good_for_its_list_and_owner_only() {
        let key = [7; 32];
        let owner = Owner { org: OrgId(Uuid::from_u128(1)), mode: Mode::Live };
        let created_at = DateTime::from_timestamp_micros(1_767_323_045_678_901).unwrap();
        let cursor = Cursor { created_at, id: Uuid::from_u128(2) };
        let text = List::Posts.write(&key, owner, cursor);
        assert_eq!(List::Posts.read(&key, owner, &text).unwrap(), cursor);

        assert!(List::Accounts.read(&key, owner, &text).is_err());
        let [one, other] = [1, 2].map(|n| List::Deliveries(WebhookId(Uuid::from_u128(n))));
        assert!(other.read(&key, owner, &one.write(&key, owner, cursor)).is_err());
        assert!(List::Posts.read(&[8; 32], owner, &text).is_err());
        assert!(List::Posts.read(&key, Owner { mode: Mode::Test, ..owner }, &text).is_err());
        assert!(List::Posts.read(&key, Owner { org: OrgId(Uuid::nil()), ..owner }, &text).is_err());
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let problem = List::Posts.read(&key, owner, &changed).unwrap_err();
            assert_eq!(problem.code, Code::InvalidCursor, "{changed}");
        }
        for text in ["", "abc", "é", "====", &text[1..], &format!("{text}A")] {
            assert!(List::Posts.read(&key, owner, text).is_err(), "{text}");
        }
    }
}
