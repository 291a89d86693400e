//! The team members of an organization.

use crate::{
    WHOLE,
    api::{fail, key, request},
    database, world,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    Mode, OrgId, Owner, PersonId,
    member::{INVITATION_TTL, Role},
    scope::Scope,
};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{collections::HashSet, process::Command};
use store::{
    Pool,
    people::{
        self, Acceptance, Invitee,
        audit::Actor,
        organizations,
        passkeys::NewPasskey,
        team::{self, InviteResult, Refused},
    },
};
use tests::World;
use uuid::Uuid;

async fn invite(world: &World, email: &str, role: &str) -> Value {
    let body = json!({ "email": email, "role": role });
    let (status, member) = world.call(Method::POST, "/team", Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{member}");
    member
}

fn path(member: &Value) -> String {
    format!("/team/{}", member["id"].as_str().unwrap())
}

fn live(org: OrgId) -> Owner {
    Owner { org, mode: Mode::Live }
}

/// Accepts an invitation as a new person.
async fn accept(db: &Pool, token: &str, at: DateTime<Utc>) -> bool {
    let passkey = NewPasskey {
        credential_id: Uuid::new_v4().as_bytes().to_vec(),
        static_state: Vec::new(),
        dynamic_state: Vec::new(),
        name: "Passkey".to_owned(),
    };
    let bob = Invitee::New(PersonId(Uuid::now_v7()), passkey);
    let accepted = people::accept(db, token, bob, "Bob", &Actor::OPERATOR, at).await.unwrap();
    assert!(matches!(accepted, Acceptance::Joined(_) | Acceptance::Gone), "{accepted:?}");
    accepted != Acceptance::Gone
}

#[tokio::test]
async fn members_are_invited_and_removed_except_the_last_owner() {
    let world = world().start().await;
    assert_eq!(world.get("/team").await, json!({ "data": [] }));
    let mut ada = invite(&world, "Ada@Example.com", "owner").await;
    let url = ada.as_object_mut().unwrap().remove("invite_url").unwrap();
    let root = world.base.trim_end_matches("/api/v1");
    let token = url.as_str().unwrap().strip_prefix(&format!("{root}/dashboard/invite/")).unwrap();
    assert!(token.len() == 43 && token.chars().all(|char| char.is_ascii_alphanumeric()), "{url}");
    let expected = json!({
        "id": ada["id"], "email": "Ada@Example.com", "name": null, "role": "owner", "status": "invited",
        "invited_at": ada["invited_at"], "joined_at": null, "is_test_only": true,
    });
    assert_eq!(ada, expected);
    assert_eq!(world.get("/team").await, json!({ "data": [ada] }), "the URL is returned once");

    for email in ["ada@example.com", "ADA@EXAMPLE.COM", "Ada@Example.com"] {
        let body = json!({ "email": email, "role": "viewer" });
        fail(request(&world, Method::POST, "/team").json(&body), 409, "conflict").await;
    }
    let bob = invite(&world, "bob@example.com", "publisher").await;
    for role in ["admin", "viewer"] {
        invite(&world, &format!("{role}@example.com"), role).await;
    }
    fail(request(&world, Method::DELETE, &path(&ada)), 409, "conflict").await;
    let (status, removed) = world.call(Method::DELETE, &path(&bob), None).await;
    assert_eq!((status, removed), (StatusCode::OK, json!({ "id": bob["id"], "deleted": true })));
    fail(request(&world, Method::DELETE, &path(&bob)), 404, "not_found").await;
    fail(request(&world, Method::DELETE, "/team/7"), 404, "not_found").await;
    let eve = invite(&world, "eve@example.com", "owner").await;
    assert_eq!(world.call(Method::DELETE, &path(&ada), None).await.0, StatusCode::OK);
    fail(request(&world, Method::DELETE, &path(&eve)), 409, "conflict").await;
    invite(&world, "ada@example.com", "viewer").await;
    let emails = world.get("/team").await["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["email"].clone())
        .collect::<Vec<_>>();
    assert_eq!(emails, ["admin@example.com", "viewer@example.com", "eve@example.com", "ada@example.com"]);
}

#[tokio::test]
async fn invalid_fields_of_an_invitation_are_reported() {
    let world = world().start().await;
    for (body, expected) in [
        (json!({}), json!([[["email"], "invalid_type"], [["role"], "invalid_type"]])),
        (
            json!({ "email": null, "role": null }),
            json!([[["email"], "invalid_type"], [["role"], "invalid_type"]]),
        ),
        (json!({ "email": 7, "role": [] }), json!([[["email"], "invalid_type"], [["role"], "invalid_type"]])),
        (json!({ "email": "", "role": "owner" }), json!([[["email"], "invalid_string"]])),
        (json!({ "email": "ada", "role": "owner" }), json!([[["email"], "invalid_string"]])),
        (
            json!({ "email": "a@localhost", "role": "boss" }),
            json!([[["email"], "invalid_string"], [["role"], "invalid_enum_value"]]),
        ),
        (
            json!({ "email": format!("{}@example.com", "a".repeat(300)), "role": "owner" }),
            json!([[["email"], "invalid_string"]]),
        ),
        (
            json!({ "email": "a@example.com\u{0}", "role": "owner" }),
            json!([[["email"], "invalid_string"], [["email"], "custom"]]),
        ),
        (json!([]), json!([[[], "invalid_type"]])),
    ] {
        let (_, problem) =
            fail(request(&world, Method::POST, "/team").json(&body), 400, "invalid_request").await;
        let reported = problem["errors"].as_array().unwrap().iter();
        let reported: Value = reported.map(|issue| json!([issue["path"], issue["code"]])).collect();
        assert_eq!(reported, expected, "{body}");
    }
    let body = json!({ "email": "ada", "role": "owner" });
    let (_, problem) = fail(request(&world, Method::POST, "/team").json(&body), 400, "invalid_request").await;
    assert_eq!(problem["errors"][0]["validation"], "email");
    assert_eq!(world.get("/team").await, json!({ "data": [] }));
}

#[tokio::test]
async fn a_team_is_shared_by_both_modes_of_its_organization() {
    let world = world().start().await;
    let ada = invite(&world, "ada@example.com", "admin").await;
    let call = |key: String, method, path: &str| {
        world.http.request(method, format!("{}{path}", world.base)).bearer_auth(key)
    };
    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let list: Value = call(live.clone(), Method::GET, "/team").send().await.unwrap().json().await.unwrap();
    assert_eq!(list["data"][0]["id"], ada["id"]);
    let body = json!({ "email": "ada@example.com", "role": "viewer" });
    fail(call(live, Method::POST, "/team").json(&body), 409, "conflict").await;

    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    let other = key(&world, Owner { org: stranger, ..world.owner }, &[Scope::All]).await;
    let list: Value = call(other.clone(), Method::GET, "/team").send().await.unwrap().json().await.unwrap();
    assert_eq!(list, json!({ "data": [] }));
    fail(call(other.clone(), Method::DELETE, &path(&ada)), 404, "not_found").await;
    assert_eq!(
        call(other, Method::POST, "/team").json(&body).send().await.unwrap().status(),
        StatusCode::CREATED
    );

    let reader = key(&world, world.owner, &[Scope::TeamRead]).await;
    assert_eq!(call(reader.clone(), Method::GET, "/team").send().await.unwrap().status(), StatusCode::OK);
    for (method, path) in [(Method::POST, "/team".to_owned()), (Method::DELETE, path(&ada))] {
        let (_, problem) =
            fail(call(reader.clone(), method, &path).body("{"), 403, "insufficient_scope").await;
        assert!(problem["detail"].as_str().unwrap().contains("team:write"), "{problem}");
    }
}

/// Invites a person without a limit; `None` if they are in the team.
async fn stored(
    db: &Pool,
    org: OrgId,
    email: &str,
    role: Role,
    now: DateTime<Utc>,
) -> Option<(team::Member, String)> {
    match team::invite(db, live(org), email, role, None, &Actor::OPERATOR, now).await.unwrap() {
        InviteResult::Invited(member, token) => Some((member, token)),
        InviteResult::IsMember => None,
        InviteResult::Exceeded(exceeded) => panic!("{exceeded:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_removals_keep_one_owner() {
    let db = database().await;
    let org = organizations::create(&db, "Acme").await.unwrap();
    let mut owners = Vec::new();
    for index in 0..6 {
        let email = format!("owner-{index}@example.com");
        owners.push(stored(&db, org, &email, Role::Owner, Utc::now()).await.unwrap().0.id);
    }
    let removals =
        join_all(owners.iter().map(|id| team::remove(&db, live(org), *id, &Actor::OPERATOR, Utc::now())))
            .await;
    let count = |wanted| removals.iter().filter(|removal| *removal.as_ref().unwrap() == wanted).count();
    assert_eq!((count(Ok(())), count(Err(Refused::LastOwner))), (5, 1));

    let bob = |_| stored(&db, org, "Bob@example.com", Role::Viewer, Utc::now());
    let invited = join_all((0..8).map(bob)).await;
    assert_eq!(invited.iter().flatten().count(), 1);
    let emails: HashSet<_> =
        team::list(&db, org, WHOLE).await.unwrap().items.into_iter().map(|one| one.email).collect();
    assert_eq!(emails.len(), 2);
}

#[tokio::test]
async fn an_organization_is_created_with_an_owner() {
    let url = tests::database_url(&crate::PROGRAM).await;
    let db = ::store::connect(&url, 4).await.unwrap();
    let create = |owner: &str| {
        let command = ["org", "create", "Acme", "--owner", owner, "--database-url", &url];
        Command::new(*crate::PROGRAM).args(command).output().unwrap()
    };
    let refused = create("nobody");
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("ada@example.com")
    );
    let created = create("ada@example.com");
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let [org] = &organizations::list(&db).await.unwrap()[..] else { panic!("one organization") };
    let [ada] = &team::list(&db, org.id, WHOLE).await.unwrap().items[..] else { panic!("one owner") };
    assert_eq!(
        (ada.email.as_str(), ada.role, ada.status),
        ("ada@example.com", Role::Owner, team::Status::Invited)
    );
    let printed = String::from_utf8(created.stdout).unwrap();
    let token = printed.split_once("/dashboard/invite/").unwrap().1.trim();
    assert!(accept(&db, token, Utc::now()).await);
    // An invited owner who has not joined does not count as another owner.
    let invite = async |email: &str| stored(&db, org.id, email, Role::Owner, Utc::now()).await.unwrap();
    let ((bob, token), (eve, _)) = (invite("bob@example.com").await, invite("eve@example.com").await);
    assert_eq!(
        team::remove(&db, live(org.id), ada.id, &Actor::OPERATOR, Utc::now()).await.unwrap(),
        Err(Refused::LastOwner)
    );
    assert_eq!(team::remove(&db, live(org.id), eve.id, &Actor::OPERATOR, Utc::now()).await.unwrap(), Ok(()));
    assert!(accept(&db, &token, Utc::now()).await);
    assert_eq!(team::remove(&db, live(org.id), ada.id, &Actor::OPERATOR, Utc::now()).await.unwrap(), Ok(()));
    assert_eq!(
        team::remove(&db, live(org.id), bob.id, &Actor::OPERATOR, Utc::now()).await.unwrap(),
        Err(Refused::LastOwner)
    );
}

#[tokio::test]
async fn an_invitation_expires_after_seven_days_and_can_be_repeated() {
    let db = database().await;
    let org = organizations::create(&db, "Acme").await.unwrap();
    let begin = Utc::now();
    let invite = async |role, at| stored(&db, org, "bob@example.com", role, at).await;
    let (before, after) = (begin + INVITATION_TTL - TimeDelta::seconds(1), begin + INVITATION_TTL);
    let accept = async |token: &str, at| accept(&db, token, at).await;

    let (bob, first) = invite(Role::Viewer, begin).await.unwrap();
    assert!(team::invitation(&db, &first, before).await.unwrap().is_some());
    assert!(invite(Role::Admin, before).await.is_none(), "the first one can be accepted");
    assert!(team::invitation(&db, &first, after).await.unwrap().is_none());
    assert!(!accept(&first, after).await);

    let (again, second) = invite(Role::Admin, after).await.unwrap();
    assert_eq!(
        (again.id, again.role, team::list(&db, org, WHOLE).await.unwrap().items.len()),
        (bob.id, Role::Admin, 1)
    );
    assert!(!accept(&first, after).await, "replaced");
    assert!(accept(&second, after).await);
    assert!(invite(Role::Owner, after + INVITATION_TTL).await.is_none(), "a member");
}
