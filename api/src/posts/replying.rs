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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posts::samples::{account, path, post};
    use chrono::DateTime;
    use domain::{Missing, TargetStatus};

    /// Returns a post to two accounts, of which the first has this target.
    fn parent(status: TargetStatus, is_unpublished: bool) -> Parent {
        let mut post = post(&["a", "b"], &[account(1, "x"), account(2, "x")]);
        post.status = PostStatus::Publishing;
        post.targets[0].status = status;
        post.targets[0].unpublished_at = is_unpublished.then_some(DateTime::UNIX_EPOCH);
        Parent(post)
    }

    #[test]
    fn what_is_not_live_and_will_not_be_is_no_place_for_a_reply() {
        let accounts = [account(1, "x"), account(2, "x")];
        for (status, is_unpublished, message) in [
            (TargetStatus::Published, false, None),
            (TargetStatus::Pending, false, None),
            (TargetStatus::Failed, false, None),
            (TargetStatus::Dead, false, Some("The post in reply_to was not published to this account")),
            (TargetStatus::Canceled, false, Some("The post in reply_to was canceled for this account")),
            (
                TargetStatus::Published,
                true,
                Some("The post in reply_to was deleted from the platform of this account"),
            ),
        ] {
            let parent = parent(status, is_unpublished);
            let ids = |accounts: &[Account]| -> Vec<_> {
                accounts.iter().map(|account| account.id.to_string()).collect()
            };
            let live = if message.is_some() { &accounts[1..] } else { &accounts[..] };
            assert_eq!(parent.accounts().unwrap(), ids(live), "{status}");
            // Named by the request, or taken from the post.
            let entries = ["name-2".to_owned(), "network-1".to_owned()];
            for (entries, at) in [(Some(&entries[..]), "accounts.1"), (None, REPLY_TO)] {
                let refused = parent.check(&accounts, entries, false).err();
                let issues = refused.map_or_else(Vec::new, |problem| problem.issues);
                let expected: Vec<_> =
                    message.iter().map(|message| Issue::custom(path(at), *message)).collect();
                assert_eq!(issues, expected, "{status}");
            }
        }
        let other = parent(TargetStatus::Published, false).check(&[account(3, "x")], None, false);
        let expected = Issue::custom([REPLY_TO], "The post in reply_to is not published to this account");
        assert_eq!(other.unwrap_err().issues, [expected]);
    }

    #[test]
    fn only_a_draft_replies_to_a_draft() {
        let mut parent = parent(TargetStatus::Pending, false);
        parent.0.status = PostStatus::Draft;
        assert_eq!(parent.accounts().unwrap().len(), 2);
        for is_draft in [true, false] {
            assert_eq!(parent.check(&[account(1, "x")], None, is_draft).is_ok(), is_draft);
        }
        parent.0.status = PostStatus::Canceled;
        assert!(parent.accounts().is_err());
    }

    #[test]
    fn missing_parts_are_of_one_account() {
        let mut parent = parent(TargetStatus::Published, false);
        let part =
            Missing { position: 1, error_code: None, error_message: "a".to_owned(), is_left_out: false };
        parent.0.targets[0].missing = vec![part];
        let missing = [1, 2, 3].map(|number| parent.missing(account(number, "x").id));
        assert_eq!(missing, [vec![1], vec![], vec![]]);
    }
}
