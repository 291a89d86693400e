//! The list of what is stuck, and actions on several targets at once.

use super::{
    Operator,
    outcome::Outcome,
    overview::{Line, PATIENCE},
};
use crate::{
    choice::Choice,
    fields::{self, Fields},
    labels::{self, RelativeTime},
    layout::{Layout, PageError, render},
};
use api::http::problem::{Code, Problem};
use askama::Template;
use chrono::{DateTime, TimeDelta, Utc};
use domain::TargetId;
use poem::{Response, http::header};
use std::{collections::BTreeSet, time::Duration};
use store::operators::{self, EndResult, Filter, Item, Kind, Reconciled, Retried};
use uuid::Uuid;
use workflows::{publish_post, publish_target};

/// Maximum rows of each kind.
const LIMIT: i64 = 100;
/// Maximum targets that one action changes.
const AT_ONCE: i64 = 1_000;
/// Maximum rows of each kind in a file.
const EXPORTED: i64 = 10_000;
/// Age up to which targets are listed that may be live.
const MAY_BE_LIVE_SINCE: TimeDelta = TimeDelta::days(7);
/// Names of the filters.
const FILTERS: [&str; 7] = ["show", "kind", "platform", "org", "account", "code", "after"];
/// Codes that targets wait with; those that are found are added.
const CODES: [&str; 7] =
    ["app_refused", "frozen", "network_error", "poll_timeout", "rate_limited", "stopped", "token_expired"];

#[derive(Template)]
#[template(path = "operators/stuck.html")]
struct Stuck<'a> {
    layout: Layout,
    filters: &'a Fields,
    kept: Vec<(&'a str, &'a str)>,
    kinds: Vec<Choice>,
    platforms: Vec<Choice>,
    codes: Vec<Choice>,
    /// Numbers of the targets that the filter finds, more than are listed.
    counts: Option<(Line, Vec<Line>)>,
    rows: Vec<Row>,
    is_may_be_live: bool,
    reason: &'a str,
    chosen: Vec<&'a str>,
}

struct Row {
    item: Item,
    platform: String,
    org: String,
    since: RelativeTime,
    next: Option<RelativeTime>,
    temporal: Option<String>,
}

impl Row {
    fn of(item: Item, operator: &Operator<'_>, now: DateTime<Utc>) -> Self {
        // A target that waits for another attempt has a workflow of its own; its first attempt is the post's.
        let workflow = match (item.kind == Kind::Target.as_str(), item.post) {
            (true, Some(post)) if item.code.is_none() || item.next_at.is_none() => {
                Some(publish_post::id(post))
            }
            (true, _) => item.id.parse().ok().map(publish_target::id),
            (false, _) => None,
        };
        Self {
            platform: item
                .platform
                .as_deref()
                .map(|id| platforms::display_name(id).to_owned())
                .unwrap_or_default(),
            org: item.org.map(|org| org.to_string()).unwrap_or_default(),
            since: RelativeTime::of(item.since, now),
            next: item.next_at.map(|at| RelativeTime::of(at, now)),
            temporal: workflow.and_then(|id| operator.workflow(&id)),
            item,
        }
    }

    fn is_target(&self) -> bool {
        self.item.kind == Kind::Target.as_str()
    }

    /// Its status in the words of the other pages.
    fn status(&self) -> &str {
        let status = self.item.status.parse().ok().filter(|_| self.is_target());
        status.map_or(&self.item.status, |status| labels::target(status).name())
    }
}

impl Stuck<'_> {
    fn is_chosen(&self, id: &str) -> bool {
        self.chosen.contains(&id)
    }

    /// Query of a file with what the filter finds.
    fn exported(&self, format: &str) -> String {
        fields::write(self.kept.iter().copied().chain([("format", format)]))
    }

    fn has_targets(&self) -> bool {
        self.rows.iter().any(Row::is_target)
    }
}

/// Shows the page. After an action, the filters are those of its form.
pub(super) async fn show(operator: &Operator<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let now = operator.now();
    let filters = if error.is_some() { operator.form } else { &operator.query };
    let (filter, error) = match read(filters) {
        Ok(filter) => (Some(filter), error),
        Err(problem) => (None, Some(PageError::of("filter", problem))),
    };
    let is_may_be_live = filters.get("show") == "may_be_live";
    let (mut rows, mut counts) = (Vec::new(), None);
    if let Some(filter) = &filter {
        let items = if is_may_be_live {
            operators::may_be_live(operator.db(), filter, MAY_BE_LIVE_SINCE).await?
        } else {
            if filter.kind.is_none_or(|kind| kind == Kind::Target) {
                let summary = operators::summary(operator.db(), filter).await?;
                let causes = summary.causes.into_iter().map(|load| Line::of(load, "code", now)).collect();
                counts = Some((Line::of(summary.all, "", now), causes));
            }
            operators::stuck(operator.db(), filter, &platforms::renewals()).await?
        };
        rows = items.into_iter().map(|item| Row::of(item, operator, now)).collect();
    }
    let mut codes = BTreeSet::from(CODES);
    codes.extend(rows.iter().filter_map(|row| row.item.code.as_deref()));
    codes.extend(filters.given("code"));
    let codes = codes.into_iter().map(|code| Choice::word(code, filters.get("code"))).collect();
    let page = Stuck {
        layout: operator.layout("Stuck", "/stuck", error),
        filters,
        kept: filters.only(&FILTERS).collect(),
        kinds: Kind::ALL.iter().map(|kind| Choice::word(kind.as_str(), filters.get("kind"))).collect(),
        platforms: Choice::platforms(filters),
        codes,
        counts,
        rows,
        is_may_be_live,
        reason: operator.form.get("reason"),
        chosen: operator.form.all("id").collect(),
    };
    Ok(render(page.layout.status(), &page))
}

/// Reads the filters.
fn read(filters: &Fields) -> Result<Filter, Problem> {
    fn parsed<T: std::str::FromStr>(filters: &Fields, name: &str, what: &str) -> Result<Option<T>, Problem> {
        let Some(text) = filters.given(name) else { return Ok(None) };
        let wrong = || Problem::new(Code::InvalidRequest, format!("{text} is not {what}"));
        text.parse().map(Some).map_err(|_| wrong())
    }
    let after: Option<u32> = parsed(filters, "after", "a number of seconds")?;
    Ok(Filter {
        kind: parsed(filters, "kind", "a kind")?,
        org: parsed::<Uuid>(filters, "org", "the id of an organization")?.map(Into::into),
        platform: filters.given("platform").map(str::to_owned),
        account: parsed::<Uuid>(filters, "account", "the id of an account")?.map(Into::into),
        code: filters.given("code").map(str::to_owned),
        is_failing: false,
        patience: after.map_or(PATIENCE, |seconds| Duration::from_secs(seconds.into())),
        limit: LIMIT,
    })
}

/// Retries or ends the targets that were selected.
pub(super) async fn act(operator: &Operator<'_>) -> Result<Response, Problem> {
    match perform(operator).await {
        Ok(outcome) => Ok(outcome.see("/stuck", operator.form.only(&FILTERS))),
        Err(problem) if problem.code.status().is_server_error() => Err(problem),
        Err(problem) => show(operator, Some(PageError::of("act", problem))).await,
    }
}

/// Does to the targets in the form what its button says.
pub(super) async fn perform(operator: &Operator<'_>) -> Result<Outcome, Problem> {
    let form = operator.form;
    let ids: Vec<Uuid> = match form.given("all") {
        Some(_) => all(operator).await?,
        None => form.all("id").filter_map(|id| id.parse().ok()).collect(),
    };
    if ids.is_empty() {
        return Err(Problem::new(Code::InvalidRequest, "select at least one target"));
    }
    let reason = operator.reason()?;
    let mut outcome = Outcome::default();
    for id in ids {
        match form.get("act") {
            "retry" => retry(operator, id, reason, &mut outcome).await?,
            "end" => end(operator, id.into(), reason, &mut outcome).await?,
            _ => return Err(Problem::new(Code::InvalidRequest, "there is no such action")),
        }
    }
    Ok(outcome)
}

/// The oldest targets that the filter in the form finds, those beyond the page included.
async fn all(operator: &Operator<'_>) -> Result<Vec<Uuid>, Problem> {
    let filter = Filter { kind: Some(Kind::Target), limit: AT_ONCE, ..read(operator.form)? };
    let found = if operator.form.get("show") == "may_be_live" {
        operators::may_be_live(operator.db(), &filter, MAY_BE_LIVE_SINCE).await?
    } else {
        operators::stuck(operator.db(), &filter, &platforms::renewals()).await?
    };
    Ok(found.iter().filter_map(|item| item.id.parse().ok()).collect())
}

/// Names of the columns of a file.
const COLUMNS: [&str; 13] = [
    "kind",
    "id",
    "org",
    "mode",
    "platform",
    "account",
    "post",
    "status",
    "code",
    "why",
    "since",
    "next_at",
    "is_overdue",
];

/// Sends what the filter finds as a file, of CSV or JSON.
pub(super) async fn export(operator: &Operator<'_>) -> Result<Response, Problem> {
    let query = &operator.query;
    let filter = Filter { limit: EXPORTED, ..read(query)? };
    let items = if query.get("show") == "may_be_live" {
        operators::may_be_live(operator.db(), &filter, MAY_BE_LIVE_SINCE).await?
    } else {
        operators::stuck(operator.db(), &filter, &platforms::renewals()).await?
    };
    let (kind, ending, text) = match query.get("format") {
        "json" => ("application/json", "json", serde_json::to_string_pretty(&items).unwrap_or_default()),
        _ => ("text/csv; charset=utf-8", "csv", csv(&items)),
    };
    Ok(Response::builder()
        .content_type(kind)
        .header(header::CONTENT_DISPOSITION, format!("attachment; filename=\"stuck.{ending}\""))
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .body(text))
}

/// Writes items as CSV. <https://www.rfc-editor.org/rfc/rfc4180>
fn csv(items: &[Item]) -> String {
    let mut text = COLUMNS.join(",") + "\r\n";
    for item in items {
        let row = serde_json::to_value(item).unwrap_or_default();
        let cells = COLUMNS.map(|column| match &row[column] {
            serde_json::Value::String(value) => cell(value),
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        });
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    text
}

/// Writes a text as a cell that a spreadsheet takes for no formula.
fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

async fn retry(
    operator: &Operator<'_>,
    id: Uuid,
    reason: &str,
    outcome: &mut Outcome,
) -> Result<(), Problem> {
    let results = operators::retry(operator.db(), id, Some(reason), &operator.by, operator.now()).await?;
    for (_, result) in &results {
        outcome.add(match result {
            Retried::BroughtForward => "retried",
            Retried::Revived => "restarted",
            Retried::Frozen | Retried::RevivedFrozen => "held",
            Retried::Unchanged(_) | Retried::Disconnected => "unchanged",
        });
    }
    if results.is_empty() {
        outcome.add("unchanged");
    }
    Ok(())
}

async fn end(
    operator: &Operator<'_>,
    target: TargetId,
    reason: &str,
    outcome: &mut Outcome,
) -> Result<(), Problem> {
    let may_be_live = operator.form.given("may_be_live").is_some();
    let ended =
        operators::end(operator.db(), target, reason, may_be_live, &operator.by, operator.now()).await?;
    outcome.add(match ended {
        EndResult::Ended(_) => "ended",
        EndResult::LookingUp => "looked_up",
        EndResult::Already(_) | EndResult::Draft | EndResult::Missing => "unchanged",
    });
    Ok(())
}

/// Resumes everything that is overdue.
pub(super) async fn reconcile(operator: &Operator<'_>) -> Result<Response, Problem> {
    let reason = match operator.reason() {
        Ok(reason) => reason,
        Err(problem) => return show(operator, Some(PageError::of("reconcile", problem))).await,
    };
    let parked = operator.form.given("parked").is_some();
    let Reconciled { resumed, unparked } = operators::reconcile(
        operator.db(),
        &platforms::renewals(),
        parked,
        Some(reason),
        &operator.by,
        operator.now(),
    )
    .await?;
    let mut outcome = Outcome::of("resumed", resumed as u64);
    if parked {
        outcome.set("unparked", unparked);
    }
    Ok(outcome.see("/stuck", operator.form.only(&FILTERS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        assert_eq!(cell("attempt 2: say \"no\",\nplease"), "\"attempt 2: say \"\"no\"\",\nplease\"");
        assert_eq!(cell("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
    }

    #[test]
    fn a_file_has_every_member() {
        let item = Item {
            kind: Kind::Target.as_str(),
            id: "7".into(),
            org: None,
            mode: Some("test".into()),
            platform: Some("x".into()),
            account: None,
            post: None,
            status: "failed".into(),
            code: None,
            why: "attempt 1".into(),
            since: "2026-01-01T00:00:00Z".parse().unwrap(),
            next_at: None,
            is_overdue: true,
        };
        let text = csv(std::slice::from_ref(&item));
        let row =
            "\"target\",\"7\",,\"test\",\"x\",,,\"failed\",,\"attempt 1\",\"2026-01-01T00:00:00Z\",,true";
        assert_eq!(text, format!("{}\r\n{row}\r\n", COLUMNS.join(",")));
        let members = serde_json::to_value(&item).unwrap();
        let members: BTreeSet<_> = members.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, BTreeSet::from(COLUMNS));
    }
}
