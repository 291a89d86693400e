//! The audit trail of an organization.

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, TeamRead},
        page::List,
        problem::Problem,
        query::Query,
    },
    openapi::{tag::Tag, validate::Rules},
    types::{
        enum_string::EnumString,
        timestamp::{TimeBound, Timestamp},
    },
};
use poem_openapi::{Object, OpenApi};
use serde_json::Value;
use store::people::audit::{self, Action, ActorKind};
use uuid::Uuid;

/// The operation on the audit trail.
pub struct Audit;

#[OpenApi(tag = "Tag::Team")]
impl Audit {
    /// List audit entries
    ///
    /// Lists who changed what concerns the organization's security, newest first: API keys, client tokens, sessions
    /// of the dashboard, the team, webhook endpoints and their secrets, OAuth apps, profiles, accounts that are
    /// connected, moved to another tenant or profile and disconnected, and the branding. Contains the changes in the mode of the caller's key and those of what both modes share. Entries
    /// are kept for 400 days. Scope `team:read`.
    #[oai(path = "/account/audit", method = "get", operation_id = "listAuditEntries")]
    async fn list(&self, caller: Caller<TeamRead>, query: Query<Filter>) -> Result<Json<AuditPage>, Problem> {
        Ok(Json(list(&caller.call(), query.0).await?))
    }
}

/// Lists the audit trail of the caller's organization.
pub async fn list(call: &Call<'_>, filter: Filter) -> Result<AuditPage, Problem> {
    let page = List::Audit.request(call, filter.limit, filter.cursor.as_deref())?;
    let Filter { action, member_id, key_id, object_id, since, until, .. } = filter;
    let filter = audit::Filter {
        action: action.map(|action| action.as_str().to_owned()),
        member: member_id,
        key: key_id,
        object: object_id,
        from: since.map(|TimeBound(at)| at),
        to: until.map(|TimeBound(at)| at),
    };
    let found = audit::list(call.db(), call.owner, filter, page).await?;
    let next_cursor = List::Audit.next(call, found.next);
    Ok(AuditPage { data: found.items.into_iter().map(AuditEntry::from).collect(), next_cursor })
}

/// Filter for audit entries.
#[derive(Debug, Default, Object)]
#[oai(rename = "AuditFilter")]
pub struct Filter {
    /// Page size, 1 to 100; values outside are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Only this action.
    pub action: Option<EnumString<Action>>,
    /// Only what this member did.
    pub member_id: Option<Uuid>,
    /// Only what was done with this API key.
    pub key_id: Option<Uuid>,
    /// Only what was done to this.
    pub object_id: Option<Uuid>,
    /// Not before this time.
    pub since: Option<TimeBound>,
    /// Before this time.
    pub until: Option<TimeBound>,
}

impl Rules for Filter {}

/// A page of audit entries.
#[derive(Debug, Object)]
pub struct AuditPage {
    /// The entries, newest first.
    pub data: Vec<AuditEntry>,
    /// Cursor of the next page; null on the last page.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}

/// A change that concerns the organization's security.
#[derive(Debug, Object)]
pub struct AuditEntry {
    /// The entry's id.
    pub id: Uuid,
    /// Time of the change.
    pub at: Timestamp,
    /// How the one who made the change was authorized. `operator` is a command of the service's operator.
    pub actor: EnumString<ActorKind>,
    /// Id of the API key or client token of the call, or of the key that the session was started with.
    #[oai(nullable)]
    pub key_id: Option<Uuid>,
    /// Last four characters of that key.
    #[oai(nullable)]
    pub last_four: Option<String>,
    /// Id of the team member who was signed in.
    #[oai(nullable)]
    pub member_id: Option<Uuid>,
    /// E-mail address of that member at that time.
    #[oai(nullable)]
    pub member: Option<String>,
    /// The client's IP address; null if it is not known.
    #[oai(nullable)]
    pub address: Option<String>,
    /// The client's `User-Agent`, at most 200 characters; null if it sent none.
    #[oai(nullable)]
    pub user_agent: Option<String>,
    /// Id of the request, as in the response's `X-Request-Id`.
    #[oai(nullable)]
    pub request_id: Option<String>,
    /// Action that was done.
    pub action: EnumString<Action>,
    /// Id of what was changed; for a session its key or member, for a sign-in by a passkey that was refused the
    /// person, for the branding the organization.
    pub object_id: Uuid,
    /// Further details, depending on the action. Of changed members only the names.
    pub details: Value,
}

impl From<audit::Entry> for AuditEntry {
    fn from(entry: audit::Entry) -> Self {
        Self {
            id: entry.id,
            at: entry.at.into(),
            actor: EnumString::of(&entry.actor),
            key_id: entry.key_id,
            last_four: entry.last_four,
            member_id: entry.member_id,
            member: entry.member,
            address: entry.address,
            user_agent: entry.user_agent,
            request_id: entry.request_id,
            action: EnumString::of(&entry.action),
            object_id: entry.object_id,
            details: entry.details,
        }
    }
}
