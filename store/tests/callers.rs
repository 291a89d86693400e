//! Keys, and what is counted of their calls.

use super::*;

const GLOBAL: Bucket = Bucket { name: "global", ceiling: 5, seconds: 60 };
const POSTS: Bucket = Bucket { name: "posts", ceiling: 3, seconds: 60 };

#[tokio::test(flavor = "multi_thread")]
async fn a_key_authenticates_until_it_expires_or_is_revoked() {
    let db = database().await;
    let owner = owner(&db).await;
    let new =
        |expires_at| NewKey { owner, name: "CI".to_owned(), scopes: vec![Scope::PostsWrite], expires_at };
    let (key, text) = keys::create(&db, new(Some(at(100))), at(0)).await.unwrap();
    let random = text.strip_prefix("sk_test_").unwrap();
    assert!(random.len() == 40 && random.chars().all(|c| c.is_ascii_alphanumeric()));
    assert!(text.ends_with(&key.last_four));
    let open = async |text: &str, now| {
        let opened = usage::authenticate_and_count(&db, text, &[], None, now).await.unwrap();
        opened.and_then(Authenticated::counted).map(|admission| admission.key)
    };
    assert_eq!(open(&text, at(1)).await, Some(key.clone()));
    // The first use is recorded; others within the same minute are not.
    let first = open(&text, at(60)).await.unwrap().last_used_at;
    assert_eq!(first.unwrap().timestamp(), at(1).timestamp());
    assert_eq!(open(&text, at(62)).await.unwrap().last_used_at, first);
    assert_eq!(open(&text, at(63)).await.unwrap().last_used_at.unwrap().timestamp(), at(62).timestamp());
    assert_eq!(open(&text, at(100)).await, None);
    assert_eq!(open(&text.replace("test", "live"), at(1)).await, None);
    assert_eq!(open("", at(1)).await, None);
    let (other, text) = keys::create(&db, new(None), at(1)).await.unwrap();
    assert!(
        !keys::revoke(&db, Owner { mode: Mode::Live, ..owner }, other.id, &Actor::OPERATOR, at(50))
            .await
            .unwrap()
    );
    assert!(keys::revoke(&db, owner, other.id, &Actor::OPERATOR, at(50)).await.unwrap());
    assert!(open(&text, at(49)).await.is_some());
    assert_eq!(open(&text, at(50)).await, None);
    assert_eq!(keys::list(&db, owner, at(49), WHOLE).await.unwrap().items.len(), 2);
    assert_eq!(
        keys::list(&db, owner, at(50), WHOLE).await.unwrap().items,
        [keys::get(&db, owner, key.id, at(50)).await.unwrap().unwrap()]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_rotations_creates_a_key() {
    let db = database().await;
    let owner = owner(&db).await;
    let new = NewKey { owner, name: "CI".to_owned(), scopes: vec![Scope::All], expires_at: Some(at(500)) };
    let (old, _) = keys::create(&db, new, at(0)).await.unwrap();
    let stranger = Owner { mode: Mode::Live, ..owner };
    assert!(keys::rotate(&db, stranger, old.id, at(10), &Actor::OPERATOR, at(10)).await.unwrap().is_none());
    assert!(keys::rotate(&db, owner, old.id, at(500), &Actor::OPERATOR, at(500)).await.unwrap().is_none());
    let rotated =
        join_all((0..16).map(|_| keys::rotate(&db, owner, old.id, at(100), &Actor::OPERATOR, at(10)))).await;
    let mut made = rotated.into_iter().filter_map(Result::unwrap);
    let ((new, _), None) = (made.next().unwrap(), made.next()) else { panic!("rotated twice") };
    assert_eq!((new.name, new.scopes, new.expires_at), (old.name, old.scopes, old.expires_at));
    assert_eq!(keys::list(&db, owner, at(99), WHOLE).await.unwrap().items.len(), 2);
    assert_eq!(keys::list(&db, owner, at(100), WHOLE).await.unwrap().items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_counts_in_all_its_buckets_or_in_none() {
    let db = database().await;
    let owner = owner(&db).await;
    let text = key(&db, owner).await;
    let live = key(&db, Owner { mode: Mode::Live, ..owner }).await;
    let quotas: Quotas = [("default".to_owned(), 6), ("other".to_owned(), 1)].into_iter().collect();
    let call = async |text: &str, buckets: &[Bucket], second: i64| {
        let admitted = usage::authenticate_and_count(&db, text, buckets, Some(&quotas), at(second)).await;
        let admission = admitted.unwrap().and_then(Authenticated::counted).unwrap();
        let calls: Vec<_> = admission.levels.iter().map(|level| level.calls).collect();
        let refused = admission.levels.iter().any(usage::Level::is_exceeded);
        (calls, refused, admission.requests, admission.is_over_quota)
    };
    for (text, buckets, second, expected) in [
        (&text, &[GLOBAL, POSTS][..], 0, (vec![1, 1], false, 1, false)),
        (&text, &[POSTS, GLOBAL], 1, (vec![2, 2], false, 2, false)),
        (&text, &[GLOBAL, POSTS], 59, (vec![3, 3], false, 3, false)),
        // The bucket of posts is full: the other bucket and the month stay unchanged.
        (&text, &[GLOBAL, POSTS], 59, (vec![3, 4], true, 3, false)),
        (&text, &[GLOBAL, POSTS], 59, (vec![3, 4], true, 3, false)),
        // The organization's other mode has buckets and a month of its own.
        (&live, &[GLOBAL], 59, (vec![1], false, 1, false)),
        (&text, &[GLOBAL], 59, (vec![4], false, 4, false)),
        (&text, &[GLOBAL], 59, (vec![5], false, 5, false)),
        (&text, &[GLOBAL], 59, (vec![6], true, 5, false)),
        // The next window. A process whose clock is slightly behind counts in it as well.
        (&text, &[GLOBAL, POSTS], 60, (vec![1, 1], false, 6, false)),
        (&text, &[GLOBAL, POSTS], 59, (vec![2, 2], false, 6, true)),
        // The quota is used up, but calls still count in the buckets.
        (&text, &[GLOBAL, POSTS], 61, (vec![3, 3], false, 6, true)),
        (&text, &[GLOBAL, POSTS], 61, (vec![3, 4], true, 6, false)),
        // Next month.
        (&text, &[GLOBAL], 40 * 86_400, (vec![1], false, 1, false)),
    ] {
        assert_eq!(call(text, buckets, second).await, expected, "at {second}");
    }
    // Another organization is counted separately, and a call without quotas is not counted in the month.
    let other = key(&db, self::owner(&db).await).await;
    assert_eq!(call(&other, &[GLOBAL], 61).await, (vec![1], false, 1, false));
    let free = usage::authenticate_and_count(&db, &other, &[GLOBAL], None, at(61)).await.unwrap();
    let free = free.and_then(Authenticated::counted).unwrap();
    assert_eq!((free.levels[0].calls, free.requests), (2, 1));
    // A plan without a limit is never exceeded.
    assert!(organizations::set_plan(&db, owner.org, "gone").await.unwrap());
    let (_, _, requests, is_over) = call(&text, &[], 40 * 86_400).await;
    assert_eq!((requests, is_over), (2, false));
    assert!(!organizations::set_plan(&db, OrgId(uuid::Uuid::now_v7()), "gone").await.unwrap());
}

/// Keys with a bound and client tokens share buckets and a part of the quota, and leave the organization's alone.
#[tokio::test(flavor = "multi_thread")]
async fn limited_callers_count_beside_the_organizations_keys() {
    let db = database().await;
    let owner = owner(&db).await;
    let own = key(&db, owner).await;
    let limited = async |tenant: &str| {
        let new = NewKey { owner, name: "CI".to_owned(), scopes: vec![Scope::All], expires_at: None };
        let bound = Bound::Tenant(tenant.to_owned());
        keys::create_within(&db, new, bound, None, &Actor::OPERATOR, at(0)).await.unwrap().unwrap().1
    };
    let limited = [limited("one").await, limited("other").await];
    let quotas: Quotas = [("default".to_owned(), 6)].into_iter().collect();
    let call = async |text: &str, second: i64| {
        let admitted = usage::authenticate_and_count(&db, text, &[GLOBAL], Some(&quotas), at(second)).await;
        let admission = match admitted.unwrap().unwrap() {
            Authenticated::Counted(admission) => admission,
            Authenticated::Limited(found) => {
                assert!(found.bound.is_limited());
                let counted = usage::count_limited(&db, text, &[GLOBAL], Some(&quotas), at(second)).await;
                counted.unwrap().unwrap()
            }
        };
        (admission.levels[0].calls, admission.requests, admission.is_over_quota)
    };
    for (text, second, expected) in [
        (&limited[0], 0, (1, 1, false)),
        (&limited[1], 0, (2, 2, false)),
        (&limited[0], 0, (3, 3, false)),
        (&own, 0, (1, 1, false)),
        (&own, 0, (2, 2, false)),
        (&limited[0], 0, (4, 4, false)),
        // Both together have used the quota up: limited callers are refused, the organization is not.
        (&limited[1], 0, (5, 4, true)),
        (&limited[1], 0, (6, 4, false)),
        (&own, 0, (3, 3, false)),
        (&own, 60, (1, 4, false)),
    ] {
        assert_eq!(call(text, second).await, expected, "at {second}");
    }
    let month = usage::Month::of(at(0));
    assert_eq!(usage::read(&db, owner, month).await.unwrap().unwrap().requests, 8);
    assert!(usage::count_limited(&db, &own, &[GLOBAL], None, at(0)).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_exceed_no_limit() {
    let db = database().await;
    let owner = owner(&db).await;
    let keys = [key(&db, owner).await, key(&db, owner).await];
    let buckets = [Bucket { ceiling: 100, ..GLOBAL }, Bucket { ceiling: 30, ..POSTS }];
    let quotas: Quotas = [("default".to_owned(), 80)].into_iter().collect();
    // Every other call is a write, and every other write lists the buckets in reverse.
    let calls = (0..240).map(|number: usize| {
        let buckets = match number % 4 {
            0 => vec![buckets[0], buckets[1]],
            2 => vec![buckets[1], buckets[0]],
            _ => vec![buckets[0]],
        };
        let (db, quotas, key) = (&db, &quotas, &keys[number / 4 % 2]);
        async move {
            let admitted = usage::authenticate_and_count(db, key, &buckets, Some(quotas), at(0)).await;
            (number % 2, admitted.unwrap().and_then(Authenticated::counted).unwrap())
        }
    });
    let (mut passed, mut writes, mut over) = (0, 0, 0);
    for (odd, admission) in join_all(calls).await {
        if !admission.levels.iter().any(usage::Level::is_exceeded) {
            passed += 1;
            writes += usize::from(odd == 0);
            over += usize::from(admission.is_over_quota);
        }
    }
    assert_eq!((passed, over), (100, 20));
    assert!(writes <= 30, "{writes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn address_counts_are_deleted_after_their_window() {
    let db = database().await;
    let count = async |address: &str, second| {
        usage::count(&db, GLOBAL, address.parse().unwrap(), at(second)).await.unwrap().calls
    };
    for (address, second, calls) in [
        ("192.0.2.1", 0, 1),
        ("192.0.2.1", 1, 2),
        ("::ffff:192.0.2.1", 2, 3),
        ("192.0.2.2", 3, 1),
        ("2001:db8::1", 4, 1),
        ("2001:db8::2:3:4:5", 5, 2),
        ("2001:db8:0:1::1", 5, 1),
        ("192.0.2.1", 60, 1),
    ] {
        assert_eq!(count(address, second).await, calls, "{address} at {second}");
    }
    let addresses: Vec<_> = (0..50).map(|number| format!("192.0.3.{}", number % 5)).collect();
    let counted = join_all(addresses.iter().map(|address| count(address, 120))).await;
    assert_eq!(counted.iter().sum::<u64>(), 5 * (1..=10).sum::<u64>());
    // Counts of windows that have ended are deleted.
    assert_eq!(usage::address_count(&db).await.unwrap(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_log_is_bounded_in_time_and_number() {
    let db = database().await;
    let (owner, other) = (owner(&db).await, owner(&db).await);
    let entry = |at| requests::Entry {
        id: uuid::Uuid::now_v7(),
        method: "GET".to_owned(),
        path: "/api/v1/posts".to_owned(),
        status: 200,
        duration_ms: 7,
        last_four: "abcd".to_owned(),
        at,
    };
    let count = async |owner: Owner| {
        let query = sqlx::query_scalar::<_, i64>("select count(*) from request_log where org_id = $1");
        query.bind(owner.org.0).fetch_one(&db).await.unwrap()
    };
    let now = tests::now();
    let owners = [owner, other].into();
    requests::append(&db, &[(other, entry(now)), (other, entry(now - TimeDelta::days(8)))]).await.unwrap();
    requests::prune(&db, &owners).await.unwrap();
    assert_eq!(count(other).await, 1, "seven days");
    let many: Vec<_> =
        (0..requests::KEPT + 3).map(|second| (owner, entry(now - TimeDelta::seconds(second)))).collect();
    requests::append(&db, &many).await.unwrap();
    requests::prune(&db, &owners).await.unwrap();
    assert_eq!((count(owner).await, count(other).await), (requests::KEPT, 1));
    let newest =
        requests::list(&db, owner, &Default::default(), Request { after: None, limit: 1 }).await.unwrap();
    assert_eq!(newest.items[0].id, many[0].1.id);
    assert!(newest.next.is_some());
}
