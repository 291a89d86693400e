//! Operations of users and operators.

use super::{
    connection, create,
    flows::cancel_all,
    new_post,
    platform::{Answer, Shape},
    seal_grant,
};
use domain::{
    AccountId, Edit, TargetStatus,
    outbox::Disconnection,
    publish::{EditOutcome, SettleReason, UnpublishResult},
};
use futures::future::LocalBoxFuture;
use publishing::{Engine, LiveTarget, edit_live, unpublish};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::{
    accounts::{connect, disconnect},
    bounds::{Access, unbounded},
    people::audit::Actor,
    posts::{self, Container, Deviations, EditResult, NewPost, Post, Target},
    publishing::{
        BeginEdit, NoParent, Revived, Rewrite, Rewritten, TargetKey, begin_edit, freezes, retry_now, revive,
        rewrite,
    },
};
use strum::{Display, EnumIter};
use tests::now;
use workflows::worker_request::CALL_TIMEOUT;

/// The text of what was edited.
pub(super) const EDITED: &str = "edited";
/// The end tenant that an account is handed over to.
const TENANT: &str = "another";

/// An operation.
#[derive(Clone, Copy, Debug, Display, EnumIter, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// Edit of a post before its first attempt.
    #[strum(to_string = "edit")]
    Edit,
    /// Edit of a live post, or of a part of it that is missing.
    #[strum(to_string = "edit of what is live")]
    EditLive,
    /// Deletion of a live post from its platform.
    #[strum(to_string = "unpublish")]
    Unpublish,
    /// The same, and the platform fails.
    #[strum(to_string = "unpublish, in vain")]
    UnpublishInVain,
    /// Freeze of the account, which is released an hour later, and then unpublish.
    #[strum(to_string = "freeze and unpublish")]
    FreezeAndUnpublish,
    /// Retry of a dead target, or of missing parts.
    #[strum(to_string = "retry of what is dead")]
    Retry,
    /// An operator ends the target, and its user retries it.
    #[strum(to_string = "end by an operator, and retry")]
    StopAndRetry,
    /// Retry of a failed target before its time.
    #[strum(to_string = "retry now")]
    RetryNow,
    /// Freeze of the account, which is released an hour later.
    #[strum(to_string = "freeze")]
    Freeze,
    /// Release of the account, which was frozen before the post was created.
    #[strum(to_string = "release")]
    Release,
    /// Disconnection of the account.
    #[strum(to_string = "disconnect")]
    Disconnect,
    /// Disconnection of the account, which is connected again for the same end tenant.
    #[strum(to_string = "reconnect")]
    Reconnect,
    /// Disconnection of the account, which is connected again for another end tenant.
    #[strum(to_string = "hand over to another tenant")]
    HandOver,
    /// Deletion of the post.
    #[strum(to_string = "delete")]
    Delete,
    /// A post that replies to the post.
    #[strum(to_string = "reply")]
    Reply,
}

impl Operation {
    /// Returns the platform's answers that make a difference for it. The short form has the last.
    pub(super) fn answers(self, shape: Shape) -> Vec<Vec<Answer>> {
        use Answer::{Heard, Lost, Processing, Refused, ServerError, Throttled, TokenRefused};
        let has_replies = matches!(shape, Shape::FirstComment | Shape::Thread);
        let answers = match self {
            Self::Edit
            | Self::EditLive
            | Self::Unpublish
            | Self::UnpublishInVain
            | Self::FreezeAndUnpublish => vec![Heard],
            Self::Retry => vec![Refused],
            Self::RetryNow => vec![Throttled, ServerError],
            Self::StopAndRetry | Self::Release => vec![Heard, Lost],
            Self::Freeze => vec![Processing, Heard, Lost],
            Self::Reply => vec![Refused, Heard, Lost],
            Self::Disconnect | Self::Reconnect | Self::HandOver | Self::Delete => {
                vec![TokenRefused, Processing, Heard, Lost]
            }
        };
        let mut answers: Vec<_> = answers.into_iter().map(|answer| vec![answer]).collect();
        if has_replies {
            answers.push(vec![Heard, Refused]);
            if !matches!(self, Self::Edit | Self::Retry) {
                answers.push(vec![Heard, ServerError]);
            }
        }
        answers
    }
}

/// The result of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// False if the product refused it, as the API does with 409 or 422.
    pub(super) is_accepted: bool,
    /// The reply that it created.
    pub(super) reply: Option<TargetKey>,
    /// The account that it connected.
    pub(super) connected: Option<AccountId>,
}

impl Done {
    pub(super) const REFUSED: Self = Self { is_accepted: false, reply: None, connected: None };
    const ACCEPTED: Self = Self { is_accepted: true, ..Self::REFUSED };

    fn when(is_accepted: bool) -> Self {
        Self { is_accepted, ..Self::REFUSED }
    }
}

/// Resources that an operation works with.
pub(super) struct Tools {
    pub(super) engine: Arc<Engine>,
    pub(super) key: TargetKey,
    pub(super) account: AccountId,
    pub(super) network_id: String,
}

impl Tools {
    /// Performs an operation with the functions that the API and its workers call.
    pub(super) fn perform(self, operation: Operation) -> LocalBoxFuture<'static, Done> {
        Box::pin(async move {
            match operation {
                Operation::Edit => self.edit().await,
                Operation::EditLive => self.edit_live().await,
                Operation::Unpublish | Operation::UnpublishInVain => self.unpublish().await,
                Operation::Retry => self.retry().await,
                Operation::StopAndRetry => {
                    self.engine.settle(self.key, &SettleReason::Stopped).await.unwrap();
                    self.retry().await
                }
                Operation::RetryNow => {
                    let TargetKey { post, target, .. } = self.key;
                    let retried = retry_now(&self.engine.db, self.access(), post, target, None, now());
                    Done::when(retried.await.unwrap())
                }
                Operation::Freeze => self.freeze().await,
                Operation::FreezeAndUnpublish => {
                    self.freeze().await;
                    self.unpublish().await
                }
                Operation::Release => {
                    let (scope, by) = (freezes::Scope::Account(self.account), &Actor::OPERATOR);
                    let released = freezes::release(&self.engine.db, &scope, None, Duration::ZERO, by, now());
                    Done::when(released.await.unwrap().is_some())
                }
                Operation::Disconnect => self.disconnect().await,
                Operation::Reconnect => self.reconnect(None).await,
                Operation::HandOver => self.reconnect(Some(TENANT)).await,
                Operation::Delete => {
                    let deleted =
                        posts::delete(&self.engine.db, self.access(), self.key.post, None, now()).await;
                    Done::when(deleted.unwrap())
                }
                Operation::Reply => self.reply().await,
            }
        })
    }

    fn access(&self) -> Access<'static> {
        unbounded(self.key.owner)
    }

    /// Reads the post, as the API does before most operations.
    async fn read(&self) -> Option<(Post, Target)> {
        let post = posts::get(&self.engine.db, self.access(), self.key.post).await.unwrap()?;
        let target = post.targets.iter().find(|target| target.id == self.key.target)?.clone();
        Some((post, target))
    }

    async fn edit(&self) -> Done {
        let Some((post, _)) = self.read().await else { return Done::REFUSED };
        let containers = post.containers.into_iter();
        let containers = containers.map(|old| Container::new(old.position, EDITED.to_owned(), old.media));
        let edit = posts::Edit {
            version: post.version,
            is_draft: false,
            scheduled_at: None,
            default_config: post.default_config,
            metadata: post.metadata,
            containers: Some(containers.collect()),
            accounts: None,
            deviations: Deviations::default(),
            imports: Vec::new(),
            request_id: None,
            horizon: Duration::ZERO,
        };
        match posts::edit(&self.engine.db, self.access(), self.key.post, edit, now()).await.unwrap() {
            EditResult::Updated(_) => Done::ACCEPTED,
            EditResult::Begun(_) | EditResult::Outdated => Done::REFUSED,
            other => panic!("{other:?}"),
        }
    }

    async fn edit_live(&self) -> Done {
        let Some((post, target)) = self.read().await else { return Done::REFUSED };
        if target.status != TargetStatus::Published || target.unpublished_at.is_some() {
            return Done::REFUSED;
        }
        let (of, seen) = ((post.id, target.id), target.edited_at);
        if let Some(part) = target.missing.first() {
            let texts = BTreeMap::from([(part.position, EDITED.to_owned())]);
            let new = Rewrite { texts, media: BTreeMap::new() };
            let rewritten = rewrite(&self.engine.db, self.access(), of, &new, seen, now()).await.unwrap();
            return Done::when(rewritten == Rewritten::Done);
        }
        let main = &post.containers_of(&target)[0];
        let edit = Edit {
            position: 0,
            of_reply: false,
            has_media: !main.media.is_empty(),
            kinds: Vec::new(),
            before: main.content.clone(),
            text: Some(EDITED.to_owned()),
            settings: json!({}),
            names: Vec::new(),
        };
        match begin_edit(&self.engine.db, self.access(), of, &[edit], seen).await.unwrap() {
            BeginEdit::Begun { edit, .. } => {
                let edited = edit_live(&self.engine, &self.live(), edit, true, CALL_TIMEOUT).await;
                Done::when(edited.unwrap() == EditOutcome::Edited)
            }
            _ => Done::REFUSED,
        }
    }

    async fn unpublish(&self) -> Done {
        let Some((_, target)) = self.read().await else { return Done::REFUSED };
        if target.status != TargetStatus::Published {
            return Done::REFUSED;
        }
        let unpublished = unpublish(&self.engine, &self.live(), CALL_TIMEOUT).await.unwrap();
        Done::when(unpublished == UnpublishResult::Unpublished)
    }

    fn live(&self) -> LiveTarget {
        LiveTarget {
            owner: self.key.owner,
            account: self.account,
            platform: "scripted".to_owned(),
            post: self.key.post,
            target: self.key.target,
        }
    }

    async fn freeze(&self) -> Done {
        let (scope, by) = (freezes::Scope::Account(self.account), &Actor::OPERATOR);
        let frozen = freezes::freeze(&self.engine.db, &scope, None, "an incident", by, now()).await.unwrap();
        Done::when(frozen == freezes::FreezeResult::Frozen)
    }

    async fn retry(&self) -> Done {
        let revived = revive(&self.engine.db, self.access(), self.key.post, None, now()).await.unwrap();
        Done::when(matches!(revived, Revived::Targets(_)))
    }

    /// Disconnects the account, and makes the first try of its workflow to erase the grant.
    async fn disconnect(&self) -> Done {
        let (db, owner, account) = (&self.engine.db, self.key.owner, self.account);
        let by = &Actor::OPERATOR;
        let grant_version = "select grant_version from accounts where id = $1";
        let grant_version = sqlx::query_scalar(grant_version).bind(account.0).fetch_one(db).await.unwrap();
        if !disconnect::disconnect(db, self.access(), account, by, now()).await.unwrap() {
            return Done::REFUSED;
        }
        let disconnection = Disconnection { account, owner, platform: "scripted".to_owned(), grant_version };
        cancel_all(db, &disconnection).await;
        let leaving = disconnect::grant_to_revoke(db, &disconnection).await.unwrap();
        if leaving.is_none_or(|leaving| !leaving.in_doubt) {
            disconnect::erase(db, &disconnection).await.unwrap();
        }
        Done::ACCEPTED
    }

    async fn reconnect(&self, tenant: Option<&str>) -> Done {
        let (db, owner) = (&self.engine.db, self.key.owner);
        if !disconnect::disconnect(db, self.access(), self.account, &Actor::OPERATOR, now()).await.unwrap() {
            return Done::REFUSED;
        }
        let login = connect::Login { shared: None, by: &Actor::LOGIN, begun_with: None };
        let seal = |account| seal_grant(&self.engine.sealer, owner, account);
        let mut tx = store::begin(db).await.unwrap();
        let new = connection(&self.network_id, tenant);
        let connected = connect::connect(&mut tx, owner, new, &login, seal, now()).await.unwrap();
        tx.commit().await.unwrap();
        Done { connected: Some(connected.account.id), ..Done::ACCEPTED }
    }

    async fn reply(&self) -> Done {
        let Some((post, target)) = self.read().await else { return Done::REFUSED };
        if NoParent::of(post.status, target.status, target.unpublished_at.is_some()).is_some() {
            return Done::REFUSED;
        }
        let text = Container::new(0, "a reply".to_owned(), Vec::new());
        let new = NewPost { reply_to: Some(post.id), ..new_post(self.account, vec![text]) };
        let reply = create(&self.engine.db, self.key.owner, new).await;
        Done { reply: Some(reply), ..Done::ACCEPTED }
    }
}
