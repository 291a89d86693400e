//! What a platform is to Fanfare.
//!
//! An adapter says how one platform's wire format works and nothing else. It never retries, waits or
//! writes to a database: `prepare` may be repeated, `commit` is the one call that publishes, `locate`
//! answers whether it happened, and the engine in `activities` arranges them so that a post goes out
//! at most once. What a platform lacks is not written down: the `Option` of its impl is `None`.

use crate::{
    check::{Draft, Issue},
    session::{Reply, Session},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{Failure, TargetId};
pub use domain::{Grant, Identity, Media, MediaKind, Metrics, SelectOption};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{ops::RangeInclusive, time::Duration};

/// What comes back from a platform: a value, or a failure named by what to do next.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// One platform. Implementations are stateless unit structs.
#[async_trait]
pub trait Platform: Send + Sync {
    /// The identifier of the contract, for example `google_business`.
    fn id(&self) -> &'static str;

    /// What it accepts.
    fn capabilities(&self) -> &'static Capabilities;

    /// How an account is connected.
    fn connection(&self) -> &'static Connection;

    /// Rules that few platforms have; none unless the adapter says so.
    fn rules(&self) -> &'static Rules {
        &Rules::NONE
    }

    /// What is wrong with a post that no table can tell, since it takes its settings and media together:
    /// asked when the tables have nothing against its media.
    fn objections(&self, _containers: &[Draft<'_>], _settings: &Value) -> Vec<Issue> {
        Vec::new()
    }

    /// Whether a medium of this kind is shown with its alt text.
    fn describes(&self, _kind: MediaKind) -> bool {
        self.capabilities().alt_text.is_some()
    }

    /// How an app names itself at the token endpoint.
    fn credentials(&self) -> Credentials {
        Credentials::Header
    }

    /// What a reply that is no success means, or `None` where the status alone tells
    /// ([`crate::classify::by_status`]). Also asked about a 2xx, for platforms that put errors there.
    fn classify(&self, _reply: &Reply) -> Option<Failure> {
        None
    }

    /// What an authorization request says so that the user has to log in although the platform knows
    /// him; nothing where that can't be asked for.
    fn relogin(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Exchanges the code that an authorization brought for a grant, the longest-lived that the platform
    /// gives. The session has an app and no grant yet.
    async fn exchange(&self, cx: &Session<'_>, code: &Code) -> Result<Grant> {
        crate::oauth::exchange(cx, code).await
    }

    /// The accounts, pages, channels or locations that the session's grant covers.
    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>>;

    /// One call that tells whether the account can be spoken for.
    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        self.identities(cx).await.map(drop)
    }

    /// When [`Platform::refresh`] can bring a fresh grant.
    fn renewal(&self) -> Renewal {
        Renewal::Anytime
    }

    /// Exchanges the grant for a fresh one. [`Failure::revoked`] tells a dead grant from a bad moment.
    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant>;

    /// Tells the platform that the grant is no longer wanted, where it wants to know.
    async fn revoke(&self, _cx: &Session<'_>) -> Result<()> {
        Ok(())
    }

    /// Brings everything up to the publishing call; may be repeated and resumes at `at`.
    async fn prepare(&self, cx: &Session<'_>, post: &Publication, at: Checkpoint) -> Result<Prepared>;

    /// The one call that publishes. A failure with doubt leads to `locate` before anything else.
    async fn commit(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Committed>;

    /// How long `commit` may take at most; the engine ends it then. Longer than [`crate::TIMEOUT`] only
    /// where the publishing call itself carries files.
    fn commit_limit(&self, _post: &Publication) -> Duration {
        crate::TIMEOUT
    }

    /// Whether a commit that was begun has happened. Publishes nothing; what is live may get here what
    /// it could not have any earlier, such as a thumbnail, as long as that may be repeated.
    ///
    /// A search by words passes over [`Publication::taken`], and says [`Located::Absent`] only when it has read
    /// everything since the commit.
    async fn locate(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Located>;

    /// The public address of a published post, as [`crate::Wire::route`] gives it: in test mode it is the
    /// post's page in the sandbox.
    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String>;

    /// Engagement, where the platform tells it.
    fn analytics(&self) -> Option<&dyn Analytics> {
        None
    }

    /// The account's earlier posts, where the platform lists them.
    fn history(&self) -> Option<&dyn History> {
        None
    }

    /// Removal of a published post, where the platform allows it.
    fn deletion(&self) -> Option<&dyn Deletion> {
        None
    }

    /// What a setting can be for an account, where the platform has such lists.
    fn options(&self) -> Option<&dyn Options> {
        None
    }
}

/// Reads a post's engagement.
#[async_trait]
pub trait Analytics: Send + Sync {
    /// The current figures of one post.
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics>;
}

/// Lists what an account published, newest first.
#[async_trait]
pub trait History: Send + Sync {
    /// One page, and where the next begins.
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page>;
}

/// Removes a published post.
#[async_trait]
pub trait Deletion: Send + Sync {
    /// Removes it; a post that is gone already is a success.
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()>;
}

/// Lists what a setting can be for an account: its boards, flairs, playlists, locations.
#[async_trait]
pub trait Options: Send + Sync {
    /// The lists there are, in the words of the contract, for example `boards`.
    fn kinds(&self) -> &'static [&'static str];

    /// One of those lists, whole. `parent` is what it belongs to where one account has several: for
    /// `flairs` the subreddit.
    ///
    /// # Errors
    ///
    /// `rejected_422` when a parent is needed and missing or unknown; else what the platform said.
    async fn options(&self, cx: &Session<'_>, kind: &str, parent: Option<&str>) -> Result<Vec<SelectOption>>;
}

/// How far preparing has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Prepared {
    /// The platform is busy with what it was given; `prepare` again from `at` after the pause.
    Processing {
        /// Where to go on.
        at: Checkpoint,
        /// How long the platform wants to be left alone.
        poll_after: Duration,
    },
    /// All is in place; `commit` may be called.
    Ready(Checkpoint),
}

/// What the publishing call answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Committed {
    /// Live, under this id.
    Live(String),
    /// Taken, but the id comes later: `locate` from `at` after the pause.
    Accepted {
        /// Where to go on.
        at: Checkpoint,
        /// How long the platform wants to be left alone.
        poll_after: Duration,
    },
}

/// What became of a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Located {
    /// It happened, and this is the post's id.
    Live(String),
    /// The platform is still at it; ask again after the pause.
    Processing {
        /// How long the platform wants to be left alone.
        poll_after: Duration,
    },
    /// It did not happen.
    Absent,
    /// Nobody can tell: the platform has no way to, or its lists are longer than what is read of them.
    Unknown,
}

/// How far an adapter has come, in its own words; small JSON without secrets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checkpoint(pub Value);

impl Checkpoint {
    /// The checkpoint that `step` stands for.
    pub fn of(step: &impl Serialize) -> Self {
        Self(serde_json::to_value(step).expect("a step is plain data"))
    }

    /// The step it was made of; the default at the very beginning.
    ///
    /// # Errors
    ///
    /// When another version of the adapter wrote it and this one can't read it.
    pub fn read<T: DeserializeOwned + Default>(&self) -> Result<T> {
        if self.0.is_null() {
            return Ok(T::default());
        }
        serde_json::from_value(self.0.clone()).map_err(|error| {
            Failure::network(format!("the checkpoint can't be read by this version: {error}"), false)
        })
    }
}

/// One container of a post for one account: what a single `commit` publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// The target; with `position` a stable key to derive record keys from.
    pub target: TargetId,
    /// Which container, from 0.
    pub position: u16,
    /// Its text.
    pub text: String,
    /// Its media, in order.
    pub media: Vec<Media>,
    /// The platform's own `config` block; an empty object where none was given.
    pub settings: Value,
    /// What it replies to; set for every container after the first.
    pub reply_to: Option<ReplyTo>,
    /// When the post was created: fixed, so that a repeated call sends the same bytes.
    pub created_at: DateTime<Utc>,
    /// When the last commit of it was begun; set when `locate` is asked.
    pub commit_begun_at: Option<DateTime<Utc>>,
    /// Ids of the account's recent posts that other targets have captured: `locate` passes over them, since
    /// two posts may have the same words.
    pub taken: Vec<String>,
}

impl Publication {
    /// True when another target has captured the post with this id.
    pub fn is_taken(&self, id: &str) -> bool {
        self.taken.iter().any(|taken| taken == id)
    }
}

/// The posts that a reply hangs on, as `commit` returned their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// The thread's first post.
    pub root: String,
    /// The post right above.
    pub parent: String,
}

/// What a platform accepts, as data: `validate`, `capabilities` and the adapters read the same table.
#[derive(Debug)]
pub struct Capabilities {
    /// How long a text may be and how that is counted.
    pub text: TextLimit,
    /// Whether a post needs text, media, or either.
    pub content: Content,
    /// What media a container may hold; a kind that is not listed is not accepted.
    pub media: &'static [MediaLimit],
    /// Whether media of different kinds may stand in one container.
    pub mixed_media: bool,
    /// Longest alt text, in characters; `None` where the platform takes none.
    pub alt_text: Option<usize>,
    /// What may follow the main container.
    pub replies: Replies,
    /// How the platform publishes.
    pub publishing: Publishing,
    /// What repeating a commit does, and so when a look-up's `Absent` can be believed.
    pub repeat: Repeat,
    /// The JSON Schema of the platform's `config` block.
    pub settings: fn() -> Value,
}

/// How long a text may be.
#[derive(Debug)]
pub struct TextLimit {
    /// The most units.
    pub max: usize,
    /// What a unit is: its name for people, for example `weighted characters`.
    pub unit: &'static str,
    /// Counts a text as the platform does.
    pub count: fn(&str) -> usize,
    /// A second limit in UTF-8 bytes, where the platform has one.
    pub max_bytes: Option<usize>,
}

/// Bytes per unit from which on a text is too long whatever its unit is. To some platforms a link is a few
/// units, and it has a few thousand bytes at most.
const BYTES_PER_UNIT: usize = 128;

impl TextLimit {
    /// The length of a text in units; `None` for one with so many bytes that it need not be counted to be
    /// too long.
    pub fn measure(&self, text: &str) -> Option<usize> {
        (text.len() / BYTES_PER_UNIT <= self.max).then(|| (self.count)(text))
    }

    /// So many characters, each Unicode scalar value being one.
    pub(crate) const fn characters(max: usize) -> Self {
        Self { max, unit: "characters", count: |text| text.chars().count(), max_bytes: None }
    }
}

/// What a container must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text or media.
    TextOrMedia,
    /// Text, whatever else there is.
    Text,
    /// Media, whatever else there is.
    Media,
}

/// What media of one kind a container may hold.
#[derive(Debug)]
pub struct MediaLimit {
    /// The kind.
    pub kind: MediaKind,
    /// How many.
    pub count: RangeInclusive<usize>,
    /// Content types that are taken.
    pub mimes: &'static [&'static str],
    /// The largest size.
    pub max_bytes: u64,
    /// How long it may play.
    pub duration: Option<RangeInclusive<Duration>>,
    /// Width and height in pixels, smallest and largest.
    pub pixels: Option<(RangeInclusive<u32>, RangeInclusive<u32>)>,
    /// Width over height.
    pub aspect_ratio: Option<RangeInclusive<f64>>,
}

/// What few platforms demand of a post beside their limits.
#[derive(Debug)]
pub struct Rules {
    /// Characters that no text may hold.
    pub forbidden: &'static [char],
    /// The kind that has to be among a post's media, whatever else there is.
    pub needs: Option<MediaKind>,
    /// What a first comment may be, where it is held to other limits than the post.
    pub comment: Option<Comment>,
}

impl Rules {
    /// No rules.
    pub const NONE: Self = Self { forbidden: &[], needs: None, comment: None };
}

/// What a first comment may be.
#[derive(Debug)]
pub struct Comment {
    /// How long its text may be; without media it needs one.
    pub text: TextLimit,
    /// What media it may hold.
    pub media: &'static [MediaLimit],
}

/// What may follow the main container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// Nothing: further containers are left out.
    None,
    /// One comment below the post; further containers are left out.
    FirstComment,
    /// A thread of any length.
    Thread,
}

impl Replies {
    /// How many containers of a post are published, the main one included.
    pub fn containers(self) -> usize {
        match self {
            Self::None => 1,
            Self::FirstComment => 2,
            Self::Thread => usize::MAX,
        }
    }

    /// Why the last `count` containers of a post are not published, to be said of the platform.
    pub fn left_out(self, count: usize) -> String {
        let takes = if self == Self::None { "takes no replies" } else { "takes one reply" };
        match count {
            1 => format!("{takes}; 1 container is left out"),
            _ => format!("{takes}; {count} containers are left out"),
        }
    }
}

/// How a platform publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publishing {
    /// The call's answer is the outcome.
    Immediate,
    /// Some of it goes on after the answer.
    Asynchronous {
        /// How long it may take before the post is given up.
        window: Duration,
    },
}

/// What repeating a commit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The same post once more at most changes nothing: `Absent` can be believed at once.
    Harmless,
    /// A second post. `Absent` can be believed once the platform's reads have caught up.
    Doubles {
        /// How long its reads may lag behind its writes.
        settling: Duration,
    },
}

/// How an account is connected.
#[derive(Debug)]
pub enum Connection {
    /// OAuth 2.0 authorization code (RFC 6749).
    OAuth2 {
        /// The authorization endpoint.
        authorize: &'static str,
        /// The token endpoint.
        token: &'static str,
        /// The scopes that publishing needs.
        scopes: &'static [&'static str],
        /// What stands between scopes in a request; a space in the standard.
        separator: &'static str,
        /// The parameter that names the app; `client_id` in the standard.
        client_id: &'static str,
        /// What else the authorization request says.
        parameters: &'static [(&'static str, &'static str)],
        /// Whether PKCE (RFC 7636) is sent.
        pkce: bool,
    },
    /// An identifier and a password made for this app.
    AppPassword {
        /// Where a session is made when the account names no other service.
        service: &'static str,
    },
}

/// When a grant can be exchanged for a fresh one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// At any time: a refresh token outlives the access token.
    Anytime,
    /// As long as the access token lives, so well before it ends; what died needs its owner again.
    WhileAlive {
        /// How old a token has to be for it.
        rest: Duration,
    },
    /// Never: it has no end of its own. A refresh only tells whether it still serves.
    Never,
}

/// How an app names itself at the token endpoint (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// In the header, where it has a secret.
    Header,
    /// In the body: its name under the connection's own word, and `client_secret`.
    Body,
}

/// What an authorization brought back, and what it was asked with. It travels sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// The code, good once and for a short time.
    pub code: String,
    /// The address that the platform sent it to, exactly as in the authorization request.
    pub redirect_uri: String,
    /// The PKCE verifier, where one was sent.
    pub verifier: Option<String>,
}

/// A password made for an app, with what it is used with. It travels sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppPassword {
    /// Who logs in: a handle, an address, an id.
    pub identifier: String,
    /// The password.
    pub app_password: String,
    /// Where, when it is not the usual service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

impl AppPassword {
    /// The grant that [`Platform::refresh`] makes the first session of: nothing but what was entrusted.
    pub fn grant(&self) -> Grant {
        Grant {
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
            scopes: Vec::new(),
            extra: serde_json::to_value(self).expect("a password is plain data"),
        }
    }
}

/// One page of an account's history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The posts, newest first.
    pub posts: Vec<RemotePost>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// A post that was published by whatever means.
#[derive(Clone, Debug, PartialEq)]
pub struct RemotePost {
    /// The platform's id of it.
    pub id: String,
    /// Its public address.
    pub url: String,
    /// Its text.
    pub text: String,
    /// Addresses of its media.
    pub media: Vec<String>,
    /// When it was published.
    pub published_at: DateTime<Utc>,
    /// Its engagement, where the list tells it.
    pub metrics: Metrics,
}
