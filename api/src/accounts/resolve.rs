//! Resolves accounts that a request names by id, username or platform-side id.

use crate::http::{
    caller::Call,
    problem::{Code, Issue, Problem, Segment},
};
use domain::AccountId;
use store::accounts::{self, Account, Resolution};

/// The field of a post that names the account whose posting slots it takes.
pub(crate) const QUEUED_FROM_ACCOUNT: &str = "queued_from_account";

const UNKNOWN: &str = "The account does not exist";
const AMBIGUOUS: &str = "Matches several accounts; use the id of one of them";

/// Resolves entries to accounts, without duplicates, and `queued` to one of them.
pub(crate) async fn accounts(
    call: &Call<'_>,
    entries: &[String],
    queued: Option<&str>,
) -> Result<(Vec<Account>, Option<AccountId>), Problem> {
    // The queue's account may be named differently than in the list, so it is resolved as well.
    let asked: Vec<_> = entries.iter().cloned().chain(queued.map(str::to_owned)).collect();
    let mut found = accounts::resolve(call.db(), call.access(), &asked).await?;
    let queued = queued.map(|_| found.pop().expect("one resolution per entry"));
    let mut accounts: Vec<Account> = Vec::new();
    let (mut issues, mut code) = (Vec::new(), None);
    for (index, resolution) in found.into_iter().enumerate() {
        let (fault, message) = match resolution {
            Resolution::One(account) if accounts.iter().any(|known| known.id == account.id) => continue,
            Resolution::One(account) => {
                accounts.push(*account);
                continue;
            }
            Resolution::None => (Code::AccountNotFound, UNKNOWN),
            Resolution::Ambiguous => (Code::AmbiguousAccount, AMBIGUOUS),
        };
        // If both errors occur, a missing account takes precedence.
        code = if code == Some(Code::AccountNotFound) { code } else { Some(fault) };
        issues.push(Issue::custom([Segment::from("accounts"), index.into()], message));
    }
    if let Some(code) = code {
        let detail = match code {
            Code::AccountNotFound => "one or more target accounts were not found",
            _ => "one or more account handles match several accounts",
        };
        return Err(Problem::new(code, detail).with_issues(issues));
    }
    match queued {
        Some(Resolution::One(queued)) if accounts.iter().any(|account| account.id == queued.id) => {
            Ok((accounts, Some(queued.id)))
        }
        None => Ok((accounts, None)),
        Some(_) => {
            let issue = Issue::custom([QUEUED_FROM_ACCOUNT], "Must be one of the accounts");
            let problem = Problem::new(Code::Unprocessable, "queued_from_account is not one of the accounts");
            Err(problem.with_issues(vec![issue]))
        }
    }
}

/// Resolves one entry to an account; `field` named it.
pub(crate) async fn account(call: &Call<'_>, entry: &str, field: &str) -> Result<Account, Problem> {
    let mut found = accounts::resolve(call.db(), call.access(), &[entry.to_owned()]).await?;
    match found.pop().expect("one resolution per entry") {
        Resolution::One(account) => Ok(*account),
        Resolution::None => Err(no_account(field)),
        Resolution::Ambiguous => {
            let problem = Problem::new(Code::AmbiguousAccount, "the account handle matches several accounts");
            Err(problem.with_issues(vec![Issue::custom([field], AMBIGUOUS)]))
        }
    }
}

/// Returns true if a request means the account by this text.
pub(crate) fn is_named(account: &Account, key: &str) -> bool {
    account.id.to_string() == key.to_lowercase()
        || account.username == key
        || account.network_unique_id == key
}

/// 422: the account that `field` names does not exist.
pub(crate) fn no_account(field: &str) -> Problem {
    let problem = Problem::new(Code::AccountNotFound, "the account was not found");
    problem.with_issues(vec![Issue::custom([field], UNKNOWN)])
}
