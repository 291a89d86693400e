//! The Pages that a person's login covers.
//!
//! `me/accounts` lists the Pages on which the person has a role of their own. It omits those that they reach
//! through a business portfolio, even if they chose them in the login dialog. The portfolio's edges list these
//! Pages with `business_management`; the token itself names the chosen Pages, which needs no further permission.
//! A Page that can't be posted to is left out, and its reason is reported.
//! <https://developers.facebook.com/docs/graph-api/reference/user/accounts>,
//! <https://developers.facebook.com/docs/graph-api/reference/debug_token>

use super::{API, SITE, get, node};
use crate::{
    AccountProfile, Grant, Identity, Result, Session,
    adapter::pages,
    graph::{self, Made},
    required,
};
use chrono::{DateTime, Utc};
use domain::{ErrorCode, Failure};
use futures::future::try_join_all;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::HashSet;
use tracing::info;

/// Permission that opens the portfolio's edges.
const PORTFOLIOS: &str = "business_management";
/// Edges of a portfolio that list Pages.
const PORTFOLIO_EDGES: [&str; 2] = ["owned_pages", "client_pages"];
/// Fields of a Page in any list. Only the list of the person's own Pages has their tasks.
const FIELDS: &str = "id,name,username,access_token,link,picture.type(large)";
/// Permissions that are granted for chosen Pages.
const CHOSEN_BY: [&str; 2] = ["pages_manage_posts", "pages_show_list"];
/// Tasks that allow publishing; those of the new Pages experience have other names.
const PUBLISHING_TASKS: [&str; 5] = [
    "CREATE_CONTENT",
    "MANAGE",
    "PROFILE_PLUS_CREATE_CONTENT",
    "PROFILE_PLUS_MANAGE",
    "PROFILE_PLUS_FULL_CONTROL",
];
/// Calls that are made at the same time: an agency has many Pages, and a login has little time.
const CONCURRENT_CALLS: usize = 8;
/// Number of Pages that a message names.
const MAX_NAMED: usize = 5;

/// Returns the Pages that the grant covers, each with its own token; the Page itself for a Page's token.
///
/// # Errors
///
/// `rejected_404` with the reasons when there are Pages and none of them can be posted to; the failure of a
/// call.
pub(super) async fn identities(cx: &Session<'_>) -> Result<Vec<Identity>> {
    let fields = format!("{FIELDS},tasks");
    let mut found = match list(cx, "me/accounts", &fields).await {
        Ok(found) => found,
        // A Page has no Pages.
        Err(failure) if failure.code == ErrorCode::Rejected(400) => {
            let me: Page = node(cx, "me", "id,name,username,link,picture.type(large)").await?;
            return Ok(vec![me.identity(&[], None)]);
        }
        Err(failure) => return Err(failure),
    };
    if cx.grant.scopes.iter().any(|scope| scope == PORTFOLIOS) {
        found.extend(of_portfolios(cx).await?);
    }
    let inspection = inspection(cx).await?;
    let chosen = inspection.as_ref().and_then(Inspection::chosen);
    found.extend(chosen.iter().flatten().map(|id| Page::unread(id)));
    let mut seen = HashSet::new();
    found.retain(|page| seen.insert(page.id.clone()));
    let is_missing =
        |page: &Page| !page.has_token() && chosen.as_ref().is_none_or(|chosen| chosen.contains(&page.id));
    let missing: Vec<String> =
        found.iter().filter(|page| is_missing(page)).map(|page| page.id.clone()).collect();
    for ids in missing.chunks(CONCURRENT_CALLS) {
        for read in try_join_all(ids.iter().map(|id| read(cx, id))).await?.into_iter().flatten() {
            let known = found.iter_mut().find(|page| page.id == read.id);
            if let Some(known) = known {
                *known = Page { tasks: known.tasks.take(), ..read };
            }
        }
    }
    let ends_at = inspection.and_then(|inspection| inspection.ends_at());
    usable(found, &cx.grant.scopes, ends_at)
}

/// Returns the Pages that can be posted to, and reports the others.
fn usable(found: Vec<Page>, scopes: &[String], ends_at: Option<DateTime<Utc>>) -> Result<Vec<Identity>> {
    let (mut usable, mut left_out) = (Vec::new(), Vec::new());
    for page in found {
        match page.objection() {
            None => usable.push(page.identity(scopes, ends_at)),
            Some(reason) => {
                let name = page.name.as_deref().unwrap_or("without a name");
                info!(platform = "facebook", page = page.id, "Left the Page {name} out of a login: {reason}");
                left_out.push(format!("{name} ({}): {reason}", page.id));
            }
        }
    }
    if usable.is_empty() && !left_out.is_empty() {
        let more = left_out.len().saturating_sub(MAX_NAMED);
        left_out.truncate(MAX_NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let message = format!("no Page can be posted to: {}{more}", left_out.join("; "));
        return Err(Failure::rejected(404, message));
    }
    Ok(usable)
}

/// Returns the Pages of the person's business portfolios. A portfolio that can't be read is passed over.
async fn of_portfolios(cx: &Session<'_>) -> Result<Vec<Page>> {
    let portfolios: Vec<Made> = optional(list(cx, "me/businesses", "id").await)?.unwrap_or_default();
    let edges: Vec<String> = portfolios
        .iter()
        .flat_map(|portfolio| PORTFOLIO_EDGES.map(|edge| format!("{}/{edge}", portfolio.id)))
        .collect();
    let mut found = Vec::new();
    for edges in edges.chunks(CONCURRENT_CALLS) {
        let lists = edges.iter().map(async |edge| optional(list::<Page>(cx, edge, FIELDS).await));
        found.extend(try_join_all(lists).await?.into_iter().flatten().flatten());
    }
    Ok(found)
}

/// Returns what Facebook knows of the person's grant.
async fn inspection(cx: &Session<'_>) -> Result<Option<Inspection>> {
    let app = cx.app.and_then(|app| Some((&app.client_id, app.client_secret.as_deref()?)));
    let Some((id, secret)) = app.filter(|(_, secret)| !secret.is_empty()) else { return Ok(None) };
    let call = cx
        .get(format!("{API}/debug_token"))
        .without_grant()
        .query(&[("input_token", &cx.grant.access_token), ("access_token", &format!("{id}|{secret}"))]);
    Ok(optional(call.send::<Inspected>().await)?.map(|token| token.data))
}

/// Reads a Page by its id; `None` if the person has no access to it.
async fn read(cx: &Session<'_>, id: &str) -> Result<Option<Page>> {
    let call = get(cx, id).query(&[("fields", FIELDS)]);
    let page: Option<Page> = optional(call.send_for_secrets().await)?;
    Ok(page.filter(|page| page.id == id))
}

/// Returns `None` for a refusal: a source of Pages that is closed must not hide those of the others.
fn optional<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(failure) if failure.code.is_permanent() => {
            info!(platform = "facebook", "A list of Pages could not be read: {failure}");
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Reads all pages of a list.
async fn list<T: DeserializeOwned>(cx: &Session<'_>, path: &str, fields: &str) -> Result<Vec<T>> {
    pages(|cursor: Option<String>| async move {
        let call = get(cx, path).query(&[("fields", fields), ("limit", "100")]);
        graph::page_with_secrets::<T>(call, cursor.as_deref()).await
    })
    .await
}

#[derive(Deserialize)]
struct Inspected {
    data: Inspection,
}

#[derive(Deserialize)]
struct Inspection {
    #[serde(default)]
    granular_scopes: Vec<GranularScope>,
    /// Unix time, 90 days after the login, at which the app's access to the person's data ends; 0 for never. A new login
    /// extends it.
    /// <https://developers.facebook.com/docs/facebook-login/auth-vs-data#data-access-expiration>
    #[serde(default)]
    data_access_expires_at: i64,
}

impl Inspection {
    /// Returns the ids of the Pages that the person chose in the dialog; `None` if they were not asked to choose.
    fn chosen(&self) -> Option<Vec<String>> {
        let scopes = self.granular_scopes.iter();
        let lists =
            scopes.filter(|one| CHOSEN_BY.contains(&&*one.scope)).filter_map(|one| one.target_ids.clone());
        let ids = lists.reduce(|mut all, more| {
            all.extend(more);
            all
        });
        ids.map(|ids| ids.into_iter().filter(|id| required::is_id(id)).collect())
    }

    /// Returns the time at which the access ends.
    fn ends_at(&self) -> Option<DateTime<Utc>> {
        let seconds = Some(self.data_access_expires_at).filter(|seconds| *seconds > 0)?;
        DateTime::from_timestamp(seconds, 0)
    }
}

/// A permission for some objects; for all, without ids.
#[derive(Deserialize)]
struct GranularScope {
    scope: String,
    target_ids: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(deserialize_with = "required::id")]
    id: String,
    name: Option<String>,
    username: Option<String>,
    link: Option<String>,
    access_token: Option<String>,
    tasks: Option<Vec<String>>,
    picture: Option<Value>,
}

impl Page {
    /// Returns a Page of which only the id is known.
    fn unread(id: &str) -> Self {
        let id = id.to_owned();
        Self { id, name: None, username: None, link: None, access_token: None, tasks: None, picture: None }
    }

    fn has_token(&self) -> bool {
        self.access_token.as_ref().is_some_and(|token| !token.is_empty())
    }

    /// Returns the reason why the person can't publish to it.
    fn objection(&self) -> Option<&'static str> {
        let is_publishing = |task: &String| PUBLISHING_TASKS.contains(&task.as_str());
        if self.tasks.as_ref().is_some_and(|tasks| !tasks.iter().any(is_publishing)) {
            return Some("the person has no task on it that allows creating content");
        }
        (!self.has_token()).then_some("it was not chosen in the login, or the person has no role on it")
    }

    fn identity(self, scopes: &[String], ends_at: Option<DateTime<Utc>>) -> Identity {
        let username = self.username.filter(|name| !name.is_empty()).unwrap_or_else(|| self.id.clone());
        Identity {
            profile: AccountProfile {
                display_name: self.name.filter(|name| !name.is_empty()).unwrap_or_else(|| username.clone()),
                account_type: "page".to_owned(),
                profile_image_url: self
                    .picture
                    .and_then(|picture| Some(picture.pointer("/data/url")?.as_str()?.to_owned())),
                profile_url: Some(self.link.unwrap_or_else(|| format!("{SITE}/{}", self.id))),
                network_unique_id: self.id,
                username,
            },
            // A Page's token that is derived from a long-lived token does not expire.
            grant: self.access_token.map(|access_token| Grant {
                access_token,
                refresh_token: None,
                expires_at: None,
                ends_at,
                scopes: scopes.to_vec(),
                extra: Value::Null,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_is_usable_with_a_publishing_task_of_either_kind() {
        for (tasks, is_usable) in [
            (json!(null), true),
            (json!(["ANALYZE", "CREATE_CONTENT"]), true),
            (json!(["MANAGE"]), true),
            (json!(["PROFILE_PLUS_ANALYZE", "PROFILE_PLUS_CREATE_CONTENT"]), true),
            (json!(["PROFILE_PLUS_MANAGE"]), true),
            (json!(["PROFILE_PLUS_FULL_CONTROL"]), true),
            (json!(["ANALYZE", "MODERATE", "PROFILE_PLUS_ANALYZE"]), false),
            (json!([]), false),
        ] {
            let page = json!({ "id": "1", "access_token": "token", "tasks": tasks });
            let page: Page = serde_json::from_value(page).unwrap();
            assert_eq!(page.objection().is_none(), is_usable, "{tasks}");
        }
        assert!(Page::unread("1").objection().is_some());
    }

    #[test]
    fn pages_that_can_t_be_posted_to_are_reported_with_their_reasons() {
        let page = |id: &str, task: &str| -> Page {
            let page = json!({ "id": id, "name": "Ours", "access_token": "token", "tasks": [task] });
            serde_json::from_value(page).unwrap()
        };
        assert_eq!(usable(Vec::new(), &[], None).unwrap(), []);
        let found = usable(vec![page("1", "ANALYZE"), page("2", "MANAGE")], &[], None).unwrap();
        assert_eq!(found.iter().map(|one| &*one.profile.network_unique_id).collect::<Vec<_>>(), ["2"]);
        let failure = usable(vec![page("1", "ANALYZE"), Page::unread("3")], &[], None).unwrap_err();
        assert_eq!(failure.code, ErrorCode::Rejected(404));
        for part in ["Ours (1): the person has no task", "(3): it was not chosen"] {
            assert!(failure.message.contains(part), "{failure}");
        }
        let many = (1..=9).map(|id| Page::unread(&id.to_string())).collect();
        assert!(usable(many, &[], None).unwrap_err().message.ends_with("; and 4 more"));
    }
}
