//! Accounts, media assets and posts for the tests of these modules. A number tells each from the others.

use crate::http::problem::Segment;
use chrono::DateTime;
use domain::{AccountId, MediaId, MediaKind, MediaStatus, PostId, PostStatus, TargetId, TargetStatus};
use serde_json::json;
use store::{
    accounts::{Account, AccountStatus},
    media::Media,
    posts::{Container, Post, Target},
};
use uuid::Uuid;

/// Returns a connected account, `name-1` for number 1, whose platform calls it `network-1`.
pub(super) fn account(number: u128, platform: &str) -> Account {
    Account {
        id: AccountId(Uuid::from_u128(number)),
        platform: platform.to_owned(),
        network_unique_id: format!("network-{number}"),
        username: format!("name-{number}"),
        display_name: String::new(),
        account_type: "profile".to_owned(),
        profile_image_url: None,
        profile_url: None,
        tenant_id: None,
        profile_id: None,
        social_network_id: None,
        status: AccountStatus::Active,
        scopes: Vec::new(),
        token_expires_at: None,
        grant_expires_at: None,
        last_synced_at: None,
        last_error_code: None,
        created_at: DateTime::UNIX_EPOCH,
        updated_at: DateTime::UNIX_EPOCH,
    }
}

/// Returns a picture that was uploaded.
pub(super) fn asset(number: u128, status: MediaStatus) -> Media {
    Media {
        id: MediaId(Uuid::from_u128(number)),
        status,
        kind: MediaKind::Image,
        filename: "a.jpg".to_owned(),
        content_type: Some("image/jpeg".to_owned()),
        size: Some(1000),
        sha256: None,
        width: Some(60),
        height: Some(40),
        frames: None,
        duration_ms: None,
        facts: None,
        metadata: None,
        alt_text: None,
        declared: Default::default(),
        source_url: None,
        fault: None,
        upload_expires_at: DateTime::UNIX_EPOCH,
        created_at: DateTime::UNIX_EPOCH,
    }
}

/// Returns a queued post with these texts and a target on each of the accounts.
pub(super) fn post(texts: &[&str], accounts: &[Account]) -> Post {
    let container = |(position, text): (u16, &&str)| Container::new(position, (*text).to_owned(), Vec::new());
    Post {
        id: PostId(Uuid::from_u128(1)),
        status: PostStatus::Queued,
        is_draft: false,
        version: 1,
        reply_to: None,
        scheduled_at: None,
        published_at: None,
        default_config: json!({}),
        external_ref: None,
        metadata: Default::default(),
        created_at: DateTime::UNIX_EPOCH,
        updated_at: DateTime::UNIX_EPOCH,
        containers: (0..).zip(texts).map(container).collect(),
        variants: Vec::new(),
        targets: accounts.iter().map(target).collect(),
    }
}

/// Returns a target on an account whose turn has not come yet.
fn target(account: &Account) -> Target {
    Target {
        id: TargetId(account.id.0),
        account_id: account.id,
        platform: account.platform.clone(),
        variant: 0,
        scheduled_at: None,
        status: TargetStatus::Pending,
        reply_parent: None,
        platform_post_id: None,
        platform_post_url: None,
        error_code: None,
        error_message: None,
        error_source: None,
        attempts: 0,
        next_attempt_at: None,
        is_frozen: false,
        published_at: None,
        unpublished_at: None,
        edited_at: None,
        edits: None,
        missing: Vec::new(),
    }
}

/// Returns the path that a text such as `containers.0.content` stands for.
pub(super) fn path(text: &str) -> Vec<Segment> {
    let segment = |part: &str| part.parse::<u64>().map_or_else(|_| Segment::from(part), Segment::Index);
    text.split('.').map(segment).collect()
}
