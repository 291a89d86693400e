//! Posts that reply to a live one.
//!
//! A reply is a post of the same owner, whose targets are published below the live targets of another post. What is said
//! here about that other post is checked again when the reply is about to be published.

use crate::{
    accounts::resolve::is_named,
    http::{
        caller::Call,
        problem::{Code, Issue, Problem, Segment},
    },
};
use domain::{AccountId, PostId, PostStatus};
use store::{
    accounts::Account,
    posts::{self, Post},
    publishing::NoParent,
};

/// The field of a post that names the one to reply to.
pub(crate) const REPLY_TO: &str = "reply_to";

/// The post that another one replies to.
#[derive(Debug)]
pub(crate) struct Parent(Post);

impl Parent {
    /// Finds the post, which must be within the bound of the caller's key.
    ///
    /// # Errors
    ///
    /// If there is no such post.
    pub(crate) async fn find(call: &Call<'_>, id: PostId) -> Result<Self, Problem> {
        posts::get(call.db(), call.access(), id).await?.map(Self).ok_or_else(|| {
            let issue = Issue::custom([REPLY_TO], "The post does not exist");
            Problem::new(Code::Unprocessable, "the post to reply to was not found").with_issues(vec![issue])
        })
    }

    /// Returns the post's id.
    pub(crate) fn id(&self) -> PostId {
        self.0.id
    }

    /// Returns the ids of the accounts on which the post is live, or may still be.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(crate) fn accounts(&self) -> Result<Vec<String>, Problem> {
        let ids: Vec<_> = (self.0.targets.iter())
            .filter(|target| matches!(self.objection(target.account_id), None | Some(NoParent::Draft)))
            .map(|target| target.account_id.to_string())
            .collect();
        if ids.is_empty() {
            let message = "The post is live on no account, and will not be";
            return Err(unanswerable(vec![Issue::custom([REPLY_TO], message)]));
        }
        Ok(ids)
    }

    /// Checks that the post has a target that can be replied to on each of the accounts. `entries` named them, if the
    /// request did. For a draft, the post need not be on its way yet.
    ///
    /// # Errors
    ///
    /// With an issue for each of the others.
    pub(crate) fn check(
        &self,
        accounts: &[Account],
        entries: Option<&[String]>,
        is_draft: bool,
    ) -> Result<(), Problem> {
        if self.0.status == PostStatus::Draft && !is_draft {
            let message = "Is a draft: release it first, or make the reply a draft as well";
            return Err(unanswerable(vec![Issue::custom([REPLY_TO], message)]));
        }
        let issues: Vec<_> = (accounts.iter())
            .filter_map(|account| {
                let reason = self.objection(account.id)?;
                let message = match reason {
                    NoParent::Draft => return None,
                    NoParent::NoTarget => "The post in reply_to is not published to this account",
                    NoParent::Dead | NoParent::Deleted => {
                        "The post in reply_to was not published to this account"
                    }
                    NoParent::Canceled => "The post in reply_to was canceled for this account",
                    NoParent::Unpublished => {
                        "The post in reply_to was deleted from the platform of this account"
                    }
                };
                let index = entries.and_then(|all| all.iter().position(|entry| is_named(account, entry)));
                let path = match index {
                    Some(index) => vec![Segment::from("accounts"), index.into()],
                    None => vec![REPLY_TO.into()],
                };
                Some(Issue::custom(path, message))
            })
            .collect();
        if issues.is_empty() { Ok(()) } else { Err(unanswerable(issues)) }
    }

    /// Returns the positions of the parts that are missing on an account; a reply follows the last part that is live.
    pub(crate) fn missing(&self, account: AccountId) -> Vec<u16> {
        let target = self.0.targets.iter().find(|target| target.account_id == account);
        target.into_iter().flat_map(|target| &target.missing).map(|part| part.position).collect()
    }

    /// Returns why the post can't be replied to on an account.
    fn objection(&self, account: AccountId) -> Option<NoParent> {
        let target = self.0.targets.iter().find(|target| target.account_id == account);
        let Some(target) = target else { return Some(NoParent::NoTarget) };
        NoParent::of(self.0.status, target.status, target.unpublished_at.is_some())
    }
}

fn unanswerable(issues: Vec<Issue>) -> Problem {
    Problem::new(Code::Unprocessable, "the post can't be replied to").with_issues(issues)
}
