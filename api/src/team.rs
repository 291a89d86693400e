//! Team members of an organization.
//!
//! Members belong to the organization, not to a mode: live and test keys see the same team. A role is a set of scopes
//! ([`domain::member`]), and a caller decides only about roles whose scopes they have. With a test key, a member gets
//! access to test data only: a test key must not lead to live data.

use crate::{
    app::DASHBOARD_PATH,
    http::{
        body::Json,
        caller::{Call, Caller, TeamRead, TeamWrite},
        page::{List, Paging},
        plan,
        problem::{Code, Problem},
        query::Query,
    },
    keys::hold,
    openapi::{
        tag::Tag,
        validate::{Null, Rules},
    },
    types::{deleted::DeletedResource, email::Address, enum_string::EnumString, timestamp::Timestamp},
};
use domain::{MemberId, member::Role, scope::Scope};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use store::people::team::{self, InviteResult, Refused, Status};
use uuid::Uuid;

/// The operations on the team.
pub struct Team;

#[OpenApi(tag = "Tag::Team")]
impl Team {
    /// List the team
    ///
    /// Lists the members in the order they were invited. Live and test keys see the same team. Scope
    /// `team:read`.
    #[oai(path = "/team", method = "get", operation_id = "listTeam")]
    async fn list(
        &self,
        caller: Caller<TeamRead>,
        query: Query<Paging>,
    ) -> Result<Json<MemberList>, Problem> {
        Ok(Json(list(&caller.call(), &query.0).await?))
    }

    /// Invite a person
    ///
    /// Only this response contains `invite_url`; send it to the person, who creates a passkey there and signs in to the
    /// dashboard with it. The invitation can be accepted for seven days; after that the person can be invited again.
    /// The calling key must have all scopes of the role. A person who is invited with a test key gets access to test
    /// data only. Scope `team:write`.
    #[oai(path = "/team", method = "post", operation_id = "inviteTeamMember")]
    async fn invite(&self, caller: Caller<TeamWrite>, body: Json<NewMember>) -> Result<Invited, Problem> {
        Ok(Invited::New(Json(invite(&caller.call(), caller.scopes(), body.0).await?)))
    }

    /// Change a role
    ///
    /// Takes effect with the person's next request. The last owner stays one. The calling key must have all scopes of
    /// both roles. A test key changes only members with access to test data only. Scope `team:write`.
    #[oai(path = "/team/:id", method = "patch", operation_id = "updateTeamMember")]
    async fn update(
        &self,
        caller: Caller<TeamWrite>,
        id: Path<String>,
        body: Json<MemberPatch>,
    ) -> Result<Json<Member>, Problem> {
        Ok(Json(set_role(&caller.call(), caller.scopes(), &id, body.0).await?))
    }

    /// Remove a person
    ///
    /// Ends the person's sessions; also revokes an invitation that was not accepted. The last owner can't be removed.
    /// The calling key must have all scopes of the person's role. A test key removes only members with access to test
    /// data only. Scope `team:write`.
    #[oai(path = "/team/:id", method = "delete", operation_id = "removeTeamMember")]
    async fn remove(
        &self,
        caller: Caller<TeamWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(remove(&caller.call(), caller.scopes(), &id).await?))
    }
}

/// Lists the team.
pub async fn list(call: &Call<'_>, paging: &Paging) -> Result<MemberList, Problem> {
    let page = List::Team.paged(call, paging)?;
    let found = team::list(call.db(), call.owner.org, page).await?;
    let next_cursor = List::Team.next(call, found.next);
    Ok(MemberList { data: found.items.into_iter().map(Member::from).collect(), next_cursor })
}

/// Invites a person and returns the URL for accepting.
pub async fn invite(call: &Call<'_>, granted: &[Scope], body: NewMember) -> Result<Member, Problem> {
    let role = body.role.value();
    hold(granted, role.scopes(), "give a role with")?;
    let email = body.email.0;
    let plan = plan::of(call).await?;
    let (db, limit, email) = (call.db(), plan.team_members, email.as_str());
    let (member, token) = match team::invite(db, call.owner, email, role, limit, call.by, call.now()).await? {
        InviteResult::Invited(member, token) => (member, token),
        InviteResult::IsMember => {
            return Err(Problem::new(Code::Conflict, "the person is in the team already"));
        }
        InviteResult::Exceeded(exceeded) => return Err(plan.refuse_more("team members", exceeded)),
    };
    let root = call.app.config.root();
    Ok(Member { invite_url: Some(format!("{root}{}/invite/{token}", DASHBOARD_PATH)), ..member.into() })
}

/// Changes the role of a person.
pub async fn set_role(
    call: &Call<'_>,
    granted: &[Scope],
    id: &str,
    body: MemberPatch,
) -> Result<Member, Problem> {
    let role = body.role.value();
    let id = decide(call, granted, id).await?;
    hold(granted, role.scopes(), "give a role with")?;
    match team::set_role(call.db(), call.owner, id, role, call.by, call.now()).await? {
        Ok(member) => Ok(member.into()),
        Err(refused) => Err(refusal(refused)),
    }
}

/// Removes a person.
pub async fn remove(call: &Call<'_>, granted: &[Scope], id: &str) -> Result<DeletedResource, Problem> {
    let id = decide(call, granted, id).await?;
    match team::remove(call.db(), call.owner, id, call.by, call.now()).await? {
        Ok(()) => Ok(DeletedResource { id: id.0, deleted: true }),
        Err(refused) => Err(refusal(refused)),
    }
}

/// Returns the id of a member that the caller may decide about: a key with few scopes must not lock owners out.
async fn decide(call: &Call<'_>, granted: &[Scope], id: &str) -> Result<MemberId, Problem> {
    let id = id.parse().map_err(|_| refusal(Refused::NotFound))?;
    let member = team::get(call.db(), call.owner.org, id).await?;
    let member = member.ok_or_else(|| refusal(Refused::NotFound))?;
    hold(granted, member.role.scopes(), "decide about a member with")?;
    Ok(id)
}

fn refusal(refused: Refused) -> Problem {
    match refused {
        Refused::NotFound => Problem::not_found("team member"),
        Refused::Live => Problem::new(
            Code::Forbidden,
            "the member has access to live data, which takes a live key to change",
        ),
        Refused::LastOwner => Problem::new(
            Code::Conflict,
            "the last owner stays one and can't be removed; add another owner first",
        ),
    }
}

/// A person to invite.
#[derive(Debug, Object)]
#[oai(rename = "NewTeamMember")]
pub struct NewMember {
    /// E-mail address, compared without case.
    pub email: Address,
    /// Role.
    pub role: EnumString<Role>,
}

impl Rules for NewMember {}

/// A change of a team member.
#[derive(Debug, Object)]
#[oai(rename = "TeamMemberPatch")]
pub struct MemberPatch {
    /// Role.
    pub role: EnumString<Role>,
}

impl Rules for MemberPatch {
    const NULL: Null = Null::Clears;
}

/// A team member.
#[derive(Object)]
#[oai(rename = "TeamMember")]
pub struct Member {
    /// The member's id.
    pub id: Uuid,
    /// E-mail address.
    pub email: String,
    /// Name, given when accepting the invitation.
    #[oai(nullable)]
    pub name: Option<String>,
    /// Role.
    pub role: EnumString<Role>,
    /// `invited` until the invitation is accepted, then `active`.
    pub status: EnumString<Status>,
    /// Time of the invitation.
    pub invited_at: Timestamp,
    /// Time the invitation was accepted.
    #[oai(nullable)]
    pub joined_at: Option<Timestamp>,
    /// True if the person was invited with a test key and has access to test data only.
    pub is_test_only: bool,
    /// URL for accepting the invitation within seven days. Only in the response that created it.
    #[oai(skip_serializing_if_is_none)]
    pub invite_url: Option<String>,
}

impl From<team::Member> for Member {
    fn from(member: team::Member) -> Self {
        Self {
            id: member.id.0,
            email: member.email,
            name: member.name,
            role: EnumString::of(member.role.as_str()),
            status: EnumString::of(member.status.as_str()),
            invited_at: member.invited_at.into(),
            joined_at: member.joined_at.map(Timestamp),
            is_test_only: member.is_test_only,
            invite_url: None,
        }
    }
}

/// A page of the team.
#[derive(Object)]
#[oai(rename = "Team")]
pub struct MemberList {
    /// The members, in the order they were invited.
    pub data: Vec<Member>,
    /// Cursor of the next page; absent on the last page.
    #[oai(skip_serializing_if_is_none)]
    pub next_cursor: Option<String>,
}

/// The response to an invitation.
#[derive(ApiResponse)]
enum Invited {
    /// The person was invited.
    #[oai(status = 201)]
    New(Json<Member>),
}
