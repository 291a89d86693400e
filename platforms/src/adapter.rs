//! Adapters: data about a platform, and the traits that talk to it.
//!
//! Everything that can be written down as data is data in [`Adapter`]: limits, login, settings, and which
//! abilities the platform has. The calls are [`Publisher`]. An adapter never retries, waits or
//! writes to a database: `prepare` may be repeated, `commit` is the one call that publishes, `locate`
//! reports whether it happened, and the engine orders them so that a post is published at most once.

use crate::{
    Result,
    auth::{Auth, Code, OAuth2},
    checkpoint::Checkpoint,
    content::ContainerContent,
    limits::{Limits, MediaLimit, Shape, TextLimit},
    look_up::{Findings, Subject},
    oauth,
    platform::Platform,
    reply::Reply,
    schema::{self, Schema},
    scopes::ScopeSet,
    session::{Session, TIMEOUT},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    Edit, Failure, Grant, Identity, Issue, LimitUsage, Media, MediaKind, Metrics, SelectOption, TargetId,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

/// One platform. A missing ability is `None`.
pub struct Adapter {
    /// The contract's identifier, for example `google_business`.
    pub id: &'static str,
    /// The platform's own name, for messages to people.
    pub name: &'static str,
    /// The content that it accepts.
    pub limits: Limits,
    /// Login of an account: OAuth 2.0, or an app password.
    pub auth: Auth,
    /// The JSON Schema of the platform's `config` block: generated from its settings type.
    pub settings: fn() -> Value,
    /// Publishing and the related calls.
    pub publisher: &'static dyn Publisher,
    /// Engagement of a post.
    pub analytics: Option<&'static dyn Analytics>,
    /// The account's earlier posts.
    pub history: Option<&'static dyn History>,
    /// Removal of a published post.
    pub deletion: Option<&'static dyn Deletion>,
    /// Changes of a published post; else the reason why the platform has none, as a sentence.
    pub editing: Result<&'static dyn Editing, &'static str>,
    /// Values that a setting can have for an account.
    pub options: Option<&'static dyn Options>,
    /// Documented limits of publishing, which are counted from what was published.
    pub caps: &'static [Cap],
    /// Usage of limits, from the platform; replaces the count of a cap with the same name.
    pub usage: Option<&'static dyn Usage>,
}

impl Adapter {
    /// Returns the schema of the platform's `config` block.
    pub(crate) fn schema(&self) -> &'static Schema {
        // Each is made once, and there are as many as adapters.
        static KNOWN: LazyLock<Mutex<HashMap<&'static str, &'static Schema>>> = LazyLock::new(Mutex::default);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(self.id).or_insert_with(|| Box::leak(Box::new(Schema::new((self.settings)()))))
    }

    /// Returns the length of a text on accounts of this type.
    pub fn text_limit(&self, account_type: &str) -> &TextLimit {
        self.publisher.text_limit(account_type).unwrap_or(&self.limits.text)
    }

    /// Returns the length of the text in the container at `position` of a thread as it is sent, on accounts of this type
    /// and in units of their limit; `None` if it is too long to be counted.
    pub fn text_length(
        &self,
        account_type: &str,
        position: usize,
        text: &str,
        settings: &Value,
    ) -> Option<usize> {
        self.text_limit(account_type).measure(&self.publisher.sent_text(position, text, settings))
    }

    /// Returns the limits of the media in the container at `position` of a thread, on accounts of this type, with
    /// these settings.
    pub fn media_limits(
        &self,
        account_type: &str,
        position: usize,
        settings: &Value,
    ) -> &'static [MediaLimit] {
        match (&self.limits.comment, self.publisher.media_limits(account_type, position, settings)) {
            (_, Some(limits)) => limits,
            (Some(comment), None) if position > 0 => comment.media,
            _ => self.limits.media,
        }
    }
}

impl Platform for Adapter {
    fn id(&self) -> &'static str {
        self.id
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn oauth(&self) -> Option<&OAuth2> {
        self.auth.oauth()
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        self.publisher.classify(reply)
    }

    fn is_definite(&self, reply: &Reply) -> bool {
        self.publisher.is_definite(reply)
    }
}

/// Talks to a platform. Implementations are stateless unit structs.
#[async_trait]
pub trait Publisher: Send + Sync {
    /// Checks rules that depend on settings and media together, which no table can express. Called when the
    /// media are within the tables' limits.
    fn validate(&self, _containers: &[ContainerContent<'_>], _settings: &Value) -> Vec<Issue> {
        Vec::new()
    }

    /// Returns the name of the kind of post that is made of a main container with these settings, by which the
    /// annotation `kinds` of a setting names those that use it; `None` for one that [`Self::validate`] refuses. By
    /// default the kind of its media.
    fn post_kind(&self, main: &ContainerContent<'_>, _settings: &Value) -> Option<&'static str> {
        Some(match main.media {
            [] => "text",
            [one] => one.kind.as_str(),
            all => all.iter().find(|medium| medium.kind == MediaKind::Video).map_or("images", |_| "video"),
        })
    }

    /// Returns the setting that a post of this type of account does not use with these settings, which [`Self::post_kind`]
    /// can't tell, and the reason, as the rest of a sentence whose subject is the platform.
    fn unused_setting(&self, _account_type: &str, _settings: &Value) -> Option<(&'static str, &'static str)> {
        None
    }

    /// True if with these settings each container is a post of its own, and not a reply to the one before, such as several
    /// stories. None of them needs a scope for replies, and their number is not limited. Of a post that replies to a live
    /// one all containers are replies nevertheless.
    fn is_series(&self, _settings: &Value) -> bool {
        false
    }

    /// Checks the same of a post that replies to a live one, whose containers are all replies.
    fn validate_replies(&self, _containers: &[ContainerContent<'_>], _settings: &Value) -> Vec<Issue> {
        Vec::new()
    }

    /// Returns true if [`Self::look_up`] has anything to ask for about a post.
    fn looks_up(&self, _subject: &Subject) -> bool {
        false
    }

    /// Asks the platform for what only it knows about a post: whether what the settings name exists and takes the post,
    /// and whether something required is missing. Only reads, and adds what is certain to `found` as an error.
    async fn look_up(&self, _cx: &Session<'_>, _subject: &Subject, _found: &mut Findings) -> Result<()> {
        Ok(())
    }

    /// Returns the setting that decides which scopes a post needs, and the sets of scopes of which it needs one with
    /// these settings, if they differ from those of [`crate::Feature::Publishing`].
    fn scopes(&self, _settings: &Value) -> Option<(&'static str, &'static [ScopeSet])> {
        None
    }

    /// Returns the length of a text on accounts of this type, if it differs from the platform's limit.
    fn text_limit(&self, _account_type: &str) -> Option<&'static TextLimit> {
        None
    }

    /// Returns the text of the container at `position` of a thread as the platform gets it with these settings, which is
    /// what its limit counts.
    fn sent_text<'a>(&self, _position: usize, text: &'a str, _settings: &Value) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }

    /// Returns the limits of the media in the container at `position`, if the type of account or the settings change
    /// them.
    fn media_limits(
        &self,
        _account_type: &str,
        _position: usize,
        _settings: &Value,
    ) -> Option<&'static [MediaLimit]> {
        None
    }

    /// True if a reply's body refuses the call for certain, though its status is a 5xx. Of no other body of a 5xx is taken
    /// that the call had no effect, or that the content or the grant is at fault.
    fn is_definite(&self, _reply: &Reply) -> bool {
        false
    }

    /// Returns the shape that the picture at `index` of a container with these media has to have, if the limits of its
    /// kind do not say it. The setting `fit`, which such a platform has, gives it this shape.
    fn shape(&self, _media: &[Media], _index: usize, _settings: &Value) -> Option<Shape> {
        None
    }

    /// Reads a failure from a reply; `None` if the status alone decides
    /// ([`crate::classify::by_status`]). Also called for a 2xx, because some platforms put errors there.
    fn classify(&self, _reply: &Reply) -> Option<Failure> {
        None
    }

    /// Exchanges an authorization code for a grant, the longest-lived that the platform offers. The
    /// session has an app and no grant yet.
    async fn exchange(&self, cx: &Session<'_>, code: &Code) -> Result<Grant> {
        oauth::exchange(cx, code).await
    }

    /// Lists the accounts, pages, channels or locations that the session's grant covers.
    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>>;

    /// Checks with one call that the account can be used.
    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        self.identities(cx).await.map(drop)
    }

    /// Exchanges the grant for a new one. [`Failure::is_revoked`] distinguishes a revoked grant from a
    /// transient error.
    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        oauth::refresh(cx).await
    }

    /// Revokes the grant, if the platform supports it. Succeeds if the grant is already revoked.
    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        oauth::revoke(cx).await
    }

    /// Makes all calls before the publishing call. May be repeated; resumes at `at`. Called for what
    /// [`crate::check`] has no error for, which is not refused here again.
    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared>;

    /// Makes the one call that publishes. After an ambiguous failure, `locate` is called first.
    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed>;

    /// Returns the time limit of `commit`, at which the engine cancels it. Longer than [`crate::TIMEOUT`] only
    /// if the publishing call itself contains files.
    fn commit_limit(&self, _post: &PublishRequest) -> Duration {
        TIMEOUT
    }

    /// Looks up the result of a commit that was begun. Publishes nothing. May complete a live post with parts
    /// that need its id, such as a thumbnail, if the call can be repeated; a part that is a publication of its own, such as
    /// a crosspost, is noted in the checkpoint before its call, and made only if [`crate::Checkpoints::may_publish`].
    ///
    /// Use [`crate::listing`] to search by content.
    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located>;

    /// Returns the public URL of a published post, as [`crate::Transport::rewrite_url`] returns it: in
    /// test mode it is the post's page in the sandbox.
    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String>;
}

/// Reads a post's engagement.
#[async_trait]
pub trait Analytics: Send + Sync {
    /// Returns when figures are collected.
    fn collection(&self) -> Collection {
        Collection::Scheduled
    }

    /// Returns true if the platform has figures of replies as well.
    fn covers_replies(&self) -> bool {
        true
    }

    /// Returns the current figures of one post.
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics>;
}

/// When figures are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// Regularly.
    Scheduled,
    /// When a caller asks for them, because the platform charges for reading.
    OnRequest,
}

/// Lists the posts that an account published, newest first.
#[async_trait]
pub trait History: Send + Sync {
    /// Reads one page of posts.
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page>;
}

/// Removes a published post.
#[async_trait]
pub trait Deletion: Send + Sync {
    /// Removes the post. Succeeds if it no longer exists.
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()>;
}

/// Changes a published post in place.
///
/// An edit sets values and adds nothing, so that it can be repeated when its result is unknown.
#[async_trait]
pub trait Editing: Send + Sync {
    /// Returns the names of the settings that can be changed beside the text.
    fn settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// Explains why this post can't be changed so, as a sentence; `None` if it can. Texts and settings are within
    /// the platform's limits.
    fn objection(&self, _edit: &Edit) -> Option<String> {
        None
    }

    /// Changes the post or reply ([`Edit::is_reply`]) with this id.
    async fn edit(&self, cx: &Session<'_>, id: &str, edit: &Edit) -> Result<()>;
}

/// Lists the values that a setting can have for an account: its boards, flairs, playlists, locations; or the
/// mentions that a text can contain.
#[async_trait]
pub trait Options: Send + Sync {
    /// Returns the lists that the platform has, by the contract's names, for example `boards`.
    fn kinds(&self) -> &'static [&'static str];

    /// Returns a whole list. `parent` selects one if an account has several: for `flairs`, the subreddit; for
    /// `mentions`, the text to look for.
    ///
    /// # Errors
    ///
    /// `rejected_422` when a required parent is missing or unknown; otherwise the platform's failure.
    async fn options(&self, cx: &Session<'_>, kind: &str, parent: Option<&str>) -> Result<Vec<SelectOption>>;
}

/// A documented limit of publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Name, unique within the platform.
    pub name: &'static str,
    /// Number of publications in a window.
    pub limit: u32,
    /// The window.
    pub window: Window,
    /// The publications that count.
    pub counts: Counted,
}

/// The time in which publications are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// This long before each publication.
    Rolling(Duration),
    /// A calendar day in a time zone (IANA).
    Day(&'static str),
}

/// Publications that count against a [`Cap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Main posts of the account.
    Posts,
    /// Comments and thread entries of the account.
    Replies,
    /// Both.
    All,
    /// Main posts of all accounts that were connected through the same app.
    PostsOfApp,
    /// Main posts of the account for which a setting has a value.
    PostsWith {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        value: &'static str,
    },
}

impl Counted {
    /// Returns true if a post with these settings counts, or a reply.
    pub fn counts(self, settings: &Value, is_reply: bool) -> bool {
        match self {
            Self::Posts | Self::PostsOfApp => !is_reply,
            Self::Replies => is_reply,
            Self::All => true,
            Self::PostsWith { setting, value } => !is_reply && settings[setting] == value,
        }
    }
}

/// Reads how much of the platform's limits an account has used.
#[async_trait]
pub trait Usage: Send + Sync {
    /// Returns the usage of each limit that the platform tells.
    async fn usage(&self, cx: &Session<'_>) -> Result<Vec<LimitUsage>>;
}

/// The state after `prepare`.
#[derive(Clone, Debug, PartialEq)]
pub enum Prepared {
    /// The platform is processing the uploaded content. Call `prepare` again from `at` after the pause.
    Processing {
        /// Checkpoint to resume from.
        at: Checkpoint,
        /// Time until the next poll.
        poll_after: Duration,
    },
    /// Preparation is complete; `commit` may be called.
    Ready(Checkpoint),
}

/// The result of the publishing call.
#[derive(Clone, Debug, PartialEq)]
pub enum Committed {
    /// Live, under this id.
    Live(String),
    /// Accepted, without an id yet. Call `locate` from `at` after the pause.
    Accepted {
        /// Checkpoint to resume from.
        at: Checkpoint,
        /// Time until the first `locate`.
        poll_after: Duration,
    },
}

/// A live post that a look-up found, by what it proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The post of this very commit, under this id: its handle, its idempotent key or a file that only it has led there.
    Certain(String),
    /// A post under this id with the same content, published about then. Another commit may have published it.
    ByText(String),
}

impl Found {
    /// Returns the id.
    pub fn id(&self) -> &str {
        match self {
            Self::Certain(id) | Self::ByText(id) => id,
        }
    }

    /// Returns the id.
    pub fn into_id(self) -> String {
        match self {
            Self::Certain(id) | Self::ByText(id) => id,
        }
    }
}

/// The result of a look-up after a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Located {
    /// A post is live.
    Live(Found),
    /// The platform is still processing it. Repeat the look-up after the pause.
    Processing {
        /// Time until the next look-up.
        poll_after: Duration,
    },
    /// The commit published nothing.
    Absent,
    /// The platform accepted the post, failed to process it, and published nothing. Unless the failure is permanent,
    /// the next attempt prepares the post again, without the checkpoint.
    Failed(Failure),
    /// Unknown: the platform has no look-up that could tell.
    Unknown,
    /// Unknown: the account has published more since the commit than the pages that are read.
    TooMany,
}

impl Located {
    /// Returns the id of the live post that was found.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Live(found) => Some(found.id()),
            _ => None,
        }
    }

    /// The post of this very commit is live: see [`Found::Certain`].
    pub fn certain(id: String) -> Self {
        Self::Live(Found::Certain(id))
    }

    /// A post with the same content is live: see [`Found::ByText`].
    pub fn by_text(id: String) -> Self {
        Self::Live(Found::ByText(id))
    }
}

/// One container of a post for one account: the content of a single `commit`.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishRequest {
    /// The target; with `position` a stable key to derive record keys from.
    pub target: TargetId,
    /// Position in its thread, also in one below a post that was live before: 0 for the first post, and more for a reply
    /// or a later post of a series.
    pub position: u16,
    /// Text.
    pub text: String,
    /// Media, in order.
    pub media: Vec<Media>,
    /// The platform's own `config` block; an empty object if none was given.
    pub settings: Value,
    /// The post that it replies to. Position 0 has none, and neither has a post of a series.
    pub reply_to: Option<ReplyTo>,
    /// When the post was created: fixed, so that a repeated call sends the same bytes.
    pub created_at: DateTime<Utc>,
    /// When its last commit was begun; set when `locate` is called.
    pub commit_begun_at: Option<DateTime<Utc>>,
    /// Ids of the account's recent posts that other targets have captured. A search ignores them, because two
    /// posts may have the same text.
    pub taken: Vec<String>,
    /// True if the checkpoint came from a backup and may lack later steps: a search must not rely on it.
    pub is_restored: bool,
}

impl PublishRequest {
    /// Returns true if another target has captured the post with this id.
    pub fn is_taken(&self, id: &str) -> bool {
        self.taken.iter().any(|taken| taken == id)
    }

    /// Returns the earliest time at which a commit can have published it.
    pub(crate) fn begun(&self) -> DateTime<Utc> {
        self.commit_begun_at.unwrap_or(self.created_at)
    }

    /// Returns the settings as the platform's type.
    ///
    /// # Errors
    ///
    /// When they were stored by a version with another schema.
    pub(crate) fn settings<T: DeserializeOwned>(&self) -> Result<T> {
        schema::read(&self.settings)
    }

    /// Returns a request without content, for tests.
    #[cfg(test)]
    pub(crate) fn of_test() -> Self {
        Self {
            target: TargetId(uuid::Uuid::nil()),
            position: 0,
            text: String::new(),
            media: Vec::new(),
            settings: serde_json::json!({}),
            reply_to: None,
            created_at: DateTime::UNIX_EPOCH,
            commit_begun_at: None,
            taken: Vec::new(),
            is_restored: false,
        }
    }
}

/// The posts that a reply belongs to, by the ids that `commit` returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// The thread's first post.
    pub root: String,
    /// The post that is replied to.
    pub parent: String,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T = RemotePost> {
    /// The entries, in the platform's order.
    pub items: Vec<T>,
    /// Cursor of the next page; `None` after the last.
    pub next: Option<String>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

impl<T> Page<T> {
    /// Converts each entry of the page.
    pub(crate) fn map<U>(self, convert: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(convert).collect(), next: self.next }
    }
}

/// Pages that a whole list may have: a platform could name a next page without end.
const MAX_PAGES: usize = 100;

/// Reads all pages of a list, each from the cursor of the one before.
///
/// # Errors
///
/// When a page can't be read, or there are more than [`MAX_PAGES`].
pub(crate) async fn pages<T, F>(mut page: impl FnMut(Option<String>) -> F) -> Result<Vec<T>>
where
    F: Future<Output = Result<Page<T>>>,
{
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let read = page(cursor).await?;
        all.extend(read.items);
        cursor = read.next;
        if cursor.is_none() {
            return Ok(all);
        }
    }
    Err(Failure::upstream(502, format!("the list has more than {MAX_PAGES} pages")))
}

/// A post on the platform, published by Fanfare or not.
#[derive(Clone, Debug, PartialEq)]
pub struct RemotePost {
    /// The platform's id.
    pub id: String,
    /// Public address.
    pub url: String,
    /// Text.
    pub text: String,
    /// Addresses of the media.
    pub media: Vec<String>,
    /// When it was published.
    pub published_at: DateTime<Utc>,
    /// Engagement, if the list includes it.
    pub metrics: Metrics,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_list_without_an_end_is_cut_off() {
        let page = |cursor: Option<String>| async move {
            let number: usize = cursor.map_or(0, |cursor| cursor.parse().expect("ours"));
            Ok(Page { items: vec![number], next: (number < 7).then(|| (number + 1).to_string()) })
        };
        assert_eq!(pages(page).await.expect("it ends"), (0..8).collect::<Vec<_>>());
        let endless = |_| async { Ok(Page { items: vec![1], next: Some("again".to_owned()) }) };
        assert_eq!(pages(endless).await.expect_err("it does not end").code, domain::ErrorCode::Upstream(502));
    }
}
