//! Team members of an organization.
//!
//! Members belong to the organization, not to a mode: live and test keys see and change the same team. Only a
//! key's scopes decide what it may do.

use crate::{
    app::DASHBOARD_PATH,
    http::{
        body::Json,
        caller::{Call, Caller, TeamRead, TeamWrite},
        plan,
        problem::{Code, Problem},
    },
    openapi::{tag::Tag, validate::Rules},
    types::{deleted::DeletedResource, email::Address, enum_string::EnumString, timestamp::Timestamp},
};
use domain::MemberId;
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use store::team::{self, InviteResult, RemoveResult, Role, Status};
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
    async fn list(&self, caller: Caller<TeamRead>) -> Result<Json<MemberList>, Problem> {
        Ok(Json(list(&caller.call()).await?))
    }

    /// Invite a person
    ///
    /// Only this response contains `invite_url`; send it to the person. The invitation can be accepted for seven
    /// days; after that the person can be invited again. Scope `team:write`.
    #[oai(path = "/team", method = "post", operation_id = "inviteTeamMember")]
    async fn invite(&self, caller: Caller<TeamWrite>, body: Json<NewMember>) -> Result<Invited, Problem> {
        Ok(Invited::New(Json(invite(&caller.call(), body.0).await?)))
    }

    /// Remove a person
    ///
    /// Also revokes an invitation that was not accepted. The last owner can't be removed. Scope `team:write`.
    #[oai(path = "/team/:id", method = "delete", operation_id = "removeTeamMember")]
    async fn remove(
        &self,
        caller: Caller<TeamWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(remove(&caller.call(), &id).await?))
    }
}

/// Lists the team.
pub async fn list(call: &Call<'_>) -> Result<MemberList, Problem> {
    let members = team::list(call.db(), call.owner.org).await?;
    Ok(MemberList { data: members.into_iter().map(Member::from).collect() })
}

/// Invites a person.
pub async fn invite(call: &Call<'_>, body: NewMember) -> Result<Member, Problem> {
    let role = body.role.value();
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

/// Removes a person.
pub async fn remove(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let missing = || Problem::not_found("team member");
    let id: MemberId = id.parse().map_err(|_| missing())?;
    match team::remove(call.db(), call.owner.org, id, call.by, call.now()).await? {
        RemoveResult::Removed => Ok(DeletedResource { id: id.0, deleted: true }),
        RemoveResult::LastOwner => {
            Err(Problem::new(Code::Conflict, "the last owner can't be removed; add another owner first"))
        }
        RemoveResult::NotFound => Err(missing()),
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
            invite_url: None,
        }
    }
}

/// Lists the team.
#[derive(Object)]
#[oai(rename = "Team")]
pub struct MemberList {
    /// The members, in the order they were invited.
    pub data: Vec<Member>,
}

/// The response to an invitation.
#[derive(ApiResponse)]
enum Invited {
    /// The person was invited.
    #[oai(status = 201)]
    New(Json<Member>),
}
