//! Finding the accounts that a request names by id, username or platform-side id.

use crate::http::{
    caller::Call,
    problem::{Code, Issue, Problem, Segment},
};
use domain::AccountId;
use store::accounts::{self, Account, Resolution};

/// The field of a post that names the account whose posting slots it takes.
pub(crate) const QUEUED_FROM_ACCOUNT: &str = "queued_from_account";

const UNKNOWN: &str = "There is no such account";
const AMBIGUOUS: &str = "Matches several accounts; use the id of one of them";

/// The accounts that the entries stand for, each once, and the one of them that `queued` stands for.
pub(crate) async fn accounts(
    call: &Call<'_>,
    entries: &[String],
    queued: Option<&str>,
) -> Result<(Vec<Account>, Option<AccountId>), Problem> {
    // The slot's account may be named in another way than in the list, so it is resolved with it.
    let asked: Vec<_> = entries.iter().cloned().chain(queued.map(str::to_owned)).collect();
    let mut found = accounts::resolve(call.db(), call.owner, &asked).await?;
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
        // Of both faults, the missing account is told: it can't be helped by choosing.
        code = if code == Some(Code::AccountNotFound) { code } else { Some(fault) };
        issues.push(Issue::custom([Segment::from("accounts"), index.into()], message));
    }
    if let Some(code) = code {
        let detail = match code {
            Code::AccountNotFound => "one or more target accounts were not found",
            _ => "one or more account handles stand for several accounts",
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

/// The account that a field stands for, which names it in any way that a post can.
pub(crate) async fn account(call: &Call<'_>, entry: &str, field: &str) -> Result<Account, Problem> {
    let mut found = accounts::resolve(call.db(), call.owner, &[entry.to_owned()]).await?;
    match found.pop().expect("one resolution per entry") {
        Resolution::One(account) => Ok(*account),
        Resolution::None => Err(no_account(field)),
        Resolution::Ambiguous => {
            let problem =
                Problem::new(Code::AmbiguousAccount, "the account handle stands for several accounts");
            Err(problem.with_issues(vec![Issue::custom([field], AMBIGUOUS)]))
        }
    }
}

/// A field names an account that is not there.
pub(crate) fn no_account(field: &str) -> Problem {
    let problem = Problem::new(Code::AccountNotFound, "the account was not found");
    problem.with_issues(vec![Issue::custom([field], UNKNOWN)])
}
