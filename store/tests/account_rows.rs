//! Accounts and their grants.

use super::*;
use domain::AccountProfile;
use store::accounts::{
    oauth_states::Begun,
    pending_logins::{self, Digest, Pending, Selection},
    profiles,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_names_an_account_by_id_handle_or_platform_id() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "100", "ada").await;
    let same = account(&db, owner, "bluesky", "did:plc:1", "same").await;
    account(&db, owner, "threads", "200", "same").await;
    let twice = account(&db, owner, "reddit", "bob", "bob").await;
    let gone = account(&db, owner, "x", "300", "gone").await;
    let stranger = account(&db, Owner { mode: Mode::Live, ..owner }, "x", "400", "stranger").await;
    for transition in [true, false] {
        assert_eq!(
            disconnect::disconnect(&db, unbounded(owner), gone.id, &Actor::OPERATOR, at(5)).await.unwrap(),
            transition
        );
    }
    let expected = [
        (ada.id.to_string(), Some(&ada)),
        (ada.id.to_string().to_uppercase(), Some(&ada)),
        ("ada".to_owned(), Some(&ada)),
        ("100".to_owned(), Some(&ada)),
        ("did:plc:1".to_owned(), Some(&same)),
        ("bob".to_owned(), Some(&twice)),
        ("Ada".to_owned(), None),
        (gone.id.to_string(), None),
        ("gone".to_owned(), None),
        ("300".to_owned(), None),
        (stranger.id.to_string(), None),
        ("stranger".to_owned(), None),
        (String::new(), None),
    ];
    let entries: Vec<_> = expected.iter().map(|(entry, _)| entry.clone()).collect();
    let found = accounts::resolve(&db, unbounded(owner), &entries).await.unwrap();
    for ((entry, expected), found) in expected.iter().zip(found) {
        let expected =
            expected.map_or(Resolution::None, |account| Resolution::One(Box::new(account.clone())));
        assert_eq!(found, expected, "{entry}");
    }
    let found =
        accounts::resolve(&db, unbounded(owner), &["same".to_owned(), "ada".to_owned()]).await.unwrap();
    assert!(matches!(&found[..], [Resolution::Ambiguous, Resolution::One(_)]));
    assert_eq!(accounts::resolve(&db, unbounded(owner), &[]).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnecting_keeps_the_id_and_reactivates_the_account() {
    let db = database().await;
    let owner = owner(&db).await;
    let first = account(&db, owner, "x", "1", "ada").await;
    let read = grants::get(&db, owner, first.id).await.unwrap().unwrap();
    grants::mark_lost(&db, owner, first.id, read.version, &Failure::revoked("Revoked"), at(1)).await.unwrap();
    let lost = accounts::get(&db, unbounded(owner), first.id).await.unwrap().unwrap();
    assert_eq!(lost.status, AccountStatus::ReauthRequired);
    assert_eq!(lost.last_error_code.as_deref(), Some("token_expired"));
    let mut tx = ::store::begin(&db).await.unwrap();
    let renamed = Connect { tenant_id: Some("t".to_owned()), ..connect("x", "1", "lovelace") };
    let seal = |id: AccountId| format!("second:{id}").into_bytes();
    let again = accounts::upsert(&mut tx, owner, renamed, seal, at(2)).await.unwrap();
    let kept = accounts::upsert(&mut tx, owner, connect("x", "1", "lovelace"), seal, at(3)).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!again.is_new);
    assert_eq!((again.account.id, again.account.created_at), (first.id, first.created_at));
    assert_eq!((again.account.status, again.account.last_error_code), (AccountStatus::Active, None));
    assert_eq!(again.account.username, "lovelace");
    assert_eq!(kept.account.tenant_id.as_deref(), Some("t"));
    let grant = grants::get(&db, owner, first.id).await.unwrap().unwrap();
    assert_eq!((grant.sealed, grant.version), (format!("second:{}", first.id).into_bytes(), 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_keeps_its_tenant_until_it_is_disconnected() {
    let db = database().await;
    let owner = owner(&db).await;
    let tenant = async |tenant_id: Option<&str>| {
        let mut tx = ::store::begin(&db).await.unwrap();
        let connect = Connect { tenant_id: tenant_id.map(str::to_owned), ..connect("x", "1", "ada") };
        let connected = accounts::upsert(&mut tx, owner, connect, |_| Vec::new(), at(1)).await.unwrap();
        tx.commit().await.unwrap();
        (connected.account.id, connected.account.tenant_id)
    };
    let of = |tenant: &str| Some(tenant.to_owned());
    assert_eq!(tenant(None).await.1, None);
    assert_eq!(tenant(Some("one")).await.1, of("one"));
    assert_eq!(tenant(Some("two")).await.1, of("one"));
    let (id, kept) = tenant(None).await;
    assert_eq!(kept, of("one"));
    let mut tx = ::store::begin(&db).await.unwrap();
    for (from, to) in [(None, "three"), (Some("three"), "three"), (Some("one"), "two")] {
        let by = &Actor::OPERATOR;
        accounts::connect::move_to_tenant(&mut tx, owner, id, (from, to), by, at(1)).await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(tenant(None).await.1, of("two"));
    // From then on each tenant has an account of its own, and returns to it; no login takes that of another one.
    let leave = async |id| {
        assert!(disconnect::disconnect(&db, unbounded(owner), id, &Actor::OPERATOR, at(2)).await.unwrap())
    };
    leave(id).await;
    let (third, found) = tenant(Some("three")).await;
    assert_eq!((third == id, found), (false, of("three")));
    leave(third).await;
    assert_eq!(tenant(Some("two")).await, (id, of("two")));
    assert_eq!(tenant(Some("three")).await, (id, of("two")));
    leave(id).await;
    let (none, found) = tenant(None).await;
    assert_eq!((none == id || none == third, found), (false, None));
    leave(none).await;
    assert_eq!(tenant(Some("three")).await, (third, of("three")));
    let current: Vec<uuid::Uuid> =
        sqlx::query_scalar("select id from accounts where is_current").fetch_all(&db).await.unwrap();
    assert_eq!(current, [third.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_refreshes_of_a_grant_is_kept() {
    let db = database().await;
    let owner = owner(&db).await;
    let account = account(&db, owner, "x", "1", "ada").await;
    let read = grants::get(&db, owner, account.id).await.unwrap().unwrap();
    let store = async |sealed: &[u8], version| {
        grants::replace(
            &db,
            owner,
            account.id,
            sealed,
            version,
            grants::Ends { token: Some(at(99)), grant: None },
            at(9),
        )
        .await
        .unwrap()
    };
    let (one, other) = tokio::join!(store(b"one", read.version), store(b"other", read.version));
    assert!(one != other, "one is kept");
    let kept = grants::get(&db, owner, account.id).await.unwrap().unwrap();
    assert_eq!(kept.sealed, if one { &b"one"[..] } else { b"other" });
    assert_eq!(kept.version, read.version + 1);
    assert!(
        disconnect::disconnect(&db, unbounded(owner), account.id, &Actor::OPERATOR, at(10)).await.unwrap()
    );
    assert!(!store(b"late", kept.version).await, "the account stays disconnected");
    assert_eq!(grants::get(&db, owner, account.id).await.unwrap(), None);
}

/// An idle grant of some platforms is renewed long after its access token has expired.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_overdue_only_at_the_age_at_which_its_platform_renews_it() {
    let db = database().await;
    let owner = owner(&db).await;
    account(&db, owner, "x", "1", "ada").await;
    let day = Duration::from_secs(24 * 3600);
    tests::sql(
        &db,
        "update accounts set granted_at = now() - interval '3 days', token_expires_at = now() - interval '2 days'",
    )
    .await;
    messages(&db).await;
    for (ages, overdue) in [(&[("x", day * 4)][..], 0), (&[("reddit", day * 4), ("x", day * 2)], 1)] {
        let timing = Timing {
            grace: Duration::ZERO,
            row_interval: Duration::ZERO,
            horizon: Duration::ZERO,
            renewal_ages: ages,
        };
        assert_eq!(sweep::sweep(&db, timing, 10).await.unwrap().overdue, overdue, "{ages:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_listed_by_every_filter_at_once() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let other = account(&db, owner, "bluesky", "did:1", "ada").await;
    let list = async |filter: accounts::Filter, limit| {
        let page =
            accounts::list(&db, unbounded(owner), &filter, Request { after: None, limit }).await.unwrap();
        (page.items, page.next.is_some())
    };
    assert_eq!(list(accounts::Filter::default(), 1).await, (vec![other.clone()], true));
    let username = Some("ada".to_owned());
    let both = accounts::Filter { username: username.clone(), ..Default::default() };
    assert_eq!(list(both, 25).await, (vec![other, ada.clone()], false));
    let one = accounts::Filter {
        id: Some(ada.id),
        platform: Some("x".to_owned()),
        username,
        network_unique_id: Some("1".to_owned()),
        tenant_id: None,
        profile_id: None,
    };
    assert_eq!(list(one.clone(), 25).await, (vec![ada], false));
    assert_eq!(list(accounts::Filter { tenant_id: Some("t".to_owned()), ..one }, 25).await, (vec![], false));
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnecting_an_account_cancels_only_targets_that_have_not_begun() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let bob = account(&db, owner, "x", "2", "bob").await;
    let keyed = |key: &str, of: NewPost| NewPost { external_ref: Some(key.to_owned()), ..of };
    let waiting = create(&db, owner, keyed("waiting", draft_of(&[&ada]))).await;
    let shared = create(&db, owner, keyed("shared", draft_of(&[&ada, &bob]))).await;
    let draft = create(&db, owner, keyed("draft", NewPost { is_draft: true, ..draft_of(&[&ada]) })).await;
    let preparing = create(&db, owner, keyed("preparing", draft_of(&[&ada]))).await;
    let begun = create(&db, owner, keyed("begun", draft_of(&[&ada]))).await;
    let live = create(&db, owner, keyed("live", draft_of(&[&ada]))).await;
    let (_, BeginResult::Attempt(attempt)) = begin(&db, owner, &preparing, 0).await else {
        panic!("it began")
    };
    let (begun_key, BeginResult::Attempt(other)) = begin(&db, owner, &begun, 0).await else {
        panic!("it began")
    };
    assert!(intend(&db, begun.targets[0].id, other.fence).await);
    let (live_key, BeginResult::Attempt(third)) = begin(&db, owner, &live, 0).await else {
        panic!("it began")
    };
    assert!(intend(&db, live.targets[0].id, third.fence).await);
    publishing::capture(&db, live_key, 0, "77").await.unwrap();
    messages(&db).await;

    let stranger = Owner { mode: Mode::Live, ..owner };
    assert!(
        !disconnect::disconnect(&db, unbounded(stranger), ada.id, &Actor::OPERATOR, at(30)).await.unwrap()
    );
    assert!(disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(30)).await.unwrap());
    assert!(
        !disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(31)).await.unwrap(),
        "once"
    );

    for (post, status, targets) in [
        (&waiting, PostStatus::Failed, vec![TargetStatus::Canceled]),
        (&shared, PostStatus::Queued, vec![TargetStatus::Canceled, TargetStatus::Pending]),
        (&draft, PostStatus::Draft, vec![TargetStatus::Canceled]),
        (&preparing, PostStatus::Failed, vec![TargetStatus::Canceled]),
        (&begun, PostStatus::Publishing, vec![TargetStatus::Queued]),
        (&live, PostStatus::Publishing, vec![TargetStatus::Queued]),
    ] {
        let now = now_of(&db, owner, post).await;
        assert_eq!((now.status, statuses(&now)), (status, targets), "{:?}", post.external_ref);
    }
    // The attempt that was preparing can no longer publish; the one in doubt can be looked up.
    assert!(!intend(&db, preparing.targets[0].id, attempt.fence).await);
    // The one in doubt cannot publish either.
    assert!(!intend(&db, begun.targets[0].id, other.fence).await);
    let BeginResult::Attempt(look) = publishing::begin(&db, begun_key, Purpose::Publish).await.unwrap()
    else {
        panic!("it is open")
    };
    assert!(!intend(&db, begun.targets[0].id, look.fence).await);
    assert!(
        look.barred == Some(Barred::Disconnected)
            && look.is_in_doubt()
            && look.account.grant_sealed.is_some()
    );
    let end = End::Live { id: "77".to_owned(), url: None, left_out: None };
    let settled = publishing::settle(&db, live_key, &end, None, at(34)).await.unwrap();
    assert_eq!(settled, Settled::Ended(TargetStatus::Published));

    let left = messages(&db).await;
    let partings: Vec<_> = left
        .iter()
        .filter_map(|left| if let Message::DisconnectAccount(it) = left { Some(it) } else { None })
        .collect();
    let [parting] = partings[..] else { panic!("{left:?}") };
    for (post, reported) in [(&waiting, 1), (&shared, 0), (&draft, 0), (&preparing, 0), (&begun, 0)] {
        let canceled = Message::PostCanceled { post: post.id, owner };
        assert_eq!(
            left.iter().filter(|left| **left == canceled).count(),
            reported,
            "{:?}",
            post.external_ref
        );
    }
    assert!(left.contains(&Message::RetryTarget { target: begun.targets[0].id, post: begun.id, owner }));

    assert!(disconnect::grant_to_revoke(&db, parting).await.unwrap().unwrap().in_doubt);
    let failure = Failure::rejected(400, "no");
    let end = End::Dead { source: failure.code.source(), failure };
    publishing::settle(&db, begun_key, &end, None, at(35)).await.unwrap();
    assert!(!disconnect::grant_to_revoke(&db, parting).await.unwrap().unwrap().in_doubt);
    let outdated =
        domain::outbox::Disconnection { grant_version: parting.grant_version - 1, ..parting.clone() };
    disconnect::erase(&db, &outdated).await.unwrap();
    assert!(disconnect::grant_to_revoke(&db, parting).await.unwrap().is_some(), "it is of an older grant");
    disconnect::erase(&db, parting).await.unwrap();
    assert!(disconnect::grant_to_revoke(&db, parting).await.unwrap().is_none());

    // Reconnecting restores the same account, and the old disconnection does not affect the new grant.
    assert_eq!(account(&db, owner, "x", "1", "ada").await.id, ada.id);
    disconnect::erase(&db, parting).await.unwrap();
    assert!(grants::get(&db, owner, ada.id).await.unwrap().is_some());
}

/// A part of a live thread may be live, too, and only the grant can tell.
#[tokio::test(flavor = "multi_thread")]
async fn disconnecting_an_account_looks_up_a_live_posts_reply_in_doubt() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, first) = begin(&db, owner, &post, 0).await;
    let first = begun(first);
    publish(&db, key, 0, first.fence, "77").await;
    assert!(intend_at(&db, key.target, 1, first.fence).await);
    let (failure, hour) = (Failure::network("no answer", true), Duration::from_secs(3600));
    publishing::record_failure(&db, &first, &failure, hour).await.unwrap().unwrap();
    messages(&db).await;

    let (access, by) = (unbounded(owner), Actor::OPERATOR);
    assert!(disconnect::disconnect(&db, access, ada.id, &by, tests::now()).await.unwrap());
    let left = messages(&db).await;
    assert!(left.contains(&Message::RetryTarget { target: key.target, post: post.id, owner }), "{left:?}");
    let parting = left.iter().find_map(|left| match left {
        Message::DisconnectAccount(parting) => Some(parting),
        _ => None,
    });
    let is_in_doubt = async || {
        disconnect::grant_to_revoke(&db, parting.unwrap()).await.unwrap().expect("it has a grant").in_doubt
    };
    assert!(is_in_doubt().await);
    let look = begun(publishing::begin(&db, key, Purpose::Publish).await.unwrap());
    assert_eq!((look.barred, look.is_in_doubt()), (Some(Barred::Disconnected), true));
    assert!(is_in_doubt().await, "it is being looked up");
    publishing::capture(&db, key, 1, "78").await.unwrap();
    assert!(!is_in_doubt().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_and_a_disconnection_are_serialized() {
    let db = database().await;
    let owner = owner(&db).await;
    for round in 0..20 {
        let (id, name) = (format!("{round}"), format!("ada{round}"));
        let ada = account(&db, owner, "x", &id, &name).await;
        let new = NewPost { external_ref: Some(name), ..draft_of(&[&ada]) };
        let post = create(&db, owner, new).await;
        let (_, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else {
            panic!("it began")
        };
        let (intended, gone) = tokio::join!(
            intend(&db, post.targets[0].id, attempt.fence),
            disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(21))
        );
        assert!(gone.unwrap());
        let status = statuses(&now_of(&db, owner, &post).await)[0];
        let expected = if intended { TargetStatus::Queued } else { TargetStatus::Canceled };
        assert_eq!(status, expected, "round {round}");
    }
}

/// The page for a late visitor shows the branding of the organization that sent them.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_login_keeps_its_owner_for_a_day_and_no_grant() {
    let db = database().await;
    let owner = owner(&db).await;
    let login = |expires_at| Pending {
        owner,
        platform: "facebook".to_owned(),
        network: None,
        tenant_id: None,
        redirect_uri: None,
        offers: vec![AccountProfile {
            network_unique_id: "1".to_owned(),
            username: "ada".to_owned(),
            display_name: "Ada".to_owned(),
            account_type: "page".to_owned(),
            profile_image_url: None,
            profile_url: None,
        }],
        selection: None,
        confirm: false,
        account: None,
        begun: Begun::default(),
        expires_at,
    };
    let (first, next, last) = (Digest::of("first"), Digest::of("next"), Digest::of("last"));
    let is_erased = async |digest: Digest| {
        let query =
            "select offers = '[]' and grants_sealed is null and chosen is null and account_ids is null
                     from pending_logins where encode(token_digest, 'hex') = $1";
        let is_erased: bool =
            sqlx::query_scalar(query).bind(digest.to_string()).fetch_one(&db).await.unwrap();
        is_erased
    };
    pending_logins::store(&db, first, &login(at(13)), b"sealed", at(12)).await.unwrap();
    pending_logins::store(&db, next, &login(at(13)), b"sealed", at(12)).await.unwrap();
    let selection =
        Selection { chosen: vec!["1".to_owned()], accounts: vec![AccountId(uuid::Uuid::now_v7())] };
    pending_logins::settle(&mut db.acquire().await.unwrap(), owner, next, &selection).await.unwrap();
    assert!(!is_erased(first).await && !is_erased(next).await, "they have not expired");
    let day = TimeDelta::days(1);
    pending_logins::store(&db, last, &login(at(15)), b"sealed", at(13)).await.unwrap();
    assert!(is_erased(first).await && is_erased(next).await);
    assert!(pending_logins::find(&db, first, at(13)).await.unwrap().is_none());
    assert_eq!(pending_logins::owner(&db, first).await.unwrap(), Some(owner));
    pending_logins::store(&db, Digest::of("later"), &login(at(15) + day), b"sealed", at(13) + day)
        .await
        .unwrap();
    assert_eq!(pending_logins::owner(&db, first).await.unwrap(), None);
    assert_eq!(pending_logins::owner(&db, last).await.unwrap(), Some(owner));
}

/// A number such as 1e300 has hundreds of digits when Postgres writes it.
#[tokio::test(flavor = "multi_thread")]
async fn settings_of_profiles_are_counted_as_they_are_read() {
    let db = database().await;
    let owner = owner(&db).await;
    let settings = json!({ "x": { "numbers": vec![1e300; 10] } });
    assert!(settings.to_string().len() < 100, "{settings}");
    let new = profiles::NewProfile {
        name: "One".to_owned(),
        tenant_id: None,
        description: None,
        timezone: "UTC".to_owned(),
        default_config: settings,
        accounts: Vec::new(),
    };
    let created = profiles::create(&db, owner, new, None, &Actor::OPERATOR, at(0)).await.unwrap();
    let profiles::Created::Stored(profile) = created else { panic!("it is there: {created:?}") };
    let wanted = [(profile.id.0, "x"), (profile.id.0, "reddit")].into();
    assert_eq!(profiles::blocks(&db, owner, &wanted, 3_000).await.unwrap(), None);
    let blocks = profiles::blocks(&db, owner, &wanted, 4_000).await.unwrap().unwrap();
    let lengths: Vec<_> = blocks.into_iter().map(|((_, platform), block)| (platform, block.len())).collect();
    assert!(matches!(&lengths[..], [(platform, 3_001..4_000)] if platform == "x"), "{lengths:?}");
}
