//! Metrics of live posts.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_collected_in_turns_of_organizations() {
    let db = database().await;
    let (greedy, other) = (owner(&db).await, owner(&db).await);
    for number in 0..5 {
        let ada = account(&db, greedy, "x", &number.to_string(), "ada").await;
        live(&db, greedy, &[&ada], &format!("greedy-{number}"), 0).await;
    }
    let bob = account(&db, other, "x", "9", "bob").await;
    live(&db, other, &[&bob], "other", 10).await;
    let schedule = CollectionSchedule {
        max_age: TimeDelta::days(30),
        min_interval: Duration::from_secs(3600),
        per_hour: Duration::from_secs(600),
        per_account: 2,
        per_platform: 2,
    };
    let due = metrics::due(&db, "x", true, schedule, at(7200)).await.unwrap();
    let owners: Vec<_> = due.iter().map(|due| due.owner).collect();
    assert_eq!(owners, [greedy, other], "one each, although five waited longer");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_collected_less_often_as_a_post_ages() {
    let db = database().await;
    let owner = owner(&db).await;
    let (one, other) =
        (account(&db, owner, "x", "1", "one").await, account(&db, owner, "x", "2", "other").await);
    let post = live(&db, owner, &[&one, &other], "a", 0).await;
    let rhythm = CollectionSchedule {
        max_age: TimeDelta::days(30),
        min_interval: Duration::from_secs(3600),
        per_hour: Duration::from_secs(600),
        per_account: 2,
        per_platform: 3,
    };
    let (hour, day) = (3600, 86_400);
    let due = async |when: i64| -> Vec<String> {
        let due = metrics::due(&db, "x", true, rhythm, at(when)).await.unwrap();
        assert!(due.iter().all(|due| due.owner == owner));
        due.into_iter().map(|due| due.platform_post_id).collect()
    };
    let ask = async |target: usize, when: i64| {
        metrics::mark_requested(&db, owner, post.targets[target].id, rhythm, at(when)).await.unwrap();
    };
    assert_eq!(due(hour - 1).await, [""; 0]);
    assert_eq!(due(hour).await.len(), 2);
    ask(0, hour).await;
    assert_eq!(due(hour).await, ["a-1"]);
    // Hourly while it is younger than six hours, then after a sixth of its age.
    ask(1, hour).await;
    assert_eq!((due(2 * hour - 1).await.len(), due(2 * hour).await.len()), (0, 2));
    for target in [0, 1] {
        ask(target, 10 * day).await;
    }
    assert_eq!((due(12 * day - 1).await.len(), due(12 * day).await.len()), (0, 2));
    // After a month nothing is due, and nothing is due on another platform.
    assert_eq!(due(30 * day).await, [""; 0]);
    assert_eq!(metrics::due(&db, "bluesky", true, rhythm, at(12 * day)).await.unwrap(), []);

    // A round is limited per account and per platform, and takes those first that waited longest.
    for (name, when) in [("b", 3), ("c", 2), ("d", 1)] {
        live(&db, owner, &[&one, &other], name, when).await;
    }
    let round = due(12 * day).await;
    assert_eq!((round.len(), &round[2][..1]), (3, "c"));
    assert!(round[..2].iter().all(|id| id.starts_with('d')), "{round:?}");

    // Targets of deleted posts and of accounts with a lost grant are not due.
    assert!(posts::delete(&db, unbounded(owner), post.id, None, at(20)).await.unwrap());
    let failure = Failure::revoked("gone");
    grants::mark_lost(&db, owner, other.id, 1, &failure, at(30)).await.unwrap();
    assert_eq!(due(12 * day).await, ["d-0", "c-0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_snapshots_are_downsampled_and_then_deleted() {
    let db = database().await;
    let owner = owner(&db).await;
    let one = account(&db, owner, "x", "1", "one").await;
    let (post, other) = (live(&db, owner, &[&one], "a", 0).await, live(&db, owner, &[&one], "b", 0).await);
    let target = post.targets[0].id;
    // From midnight on, so that hours and days align with their buckets.
    let midnight = at(0).date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
    let hour = |hours: i64, minutes: i64| midnight + TimeDelta::hours(hours) + TimeDelta::minutes(minutes);
    let times = [hour(0, 0), hour(0, 10), hour(0, 50), hour(1, 0), hour(23, 59), hour(24, 0), hour(24, 30)];
    for (likes, captured_at) in (1..).zip(times) {
        for target in [target, other.targets[0].id] {
            let snapshot = Snapshot { target, metrics: Metrics { likes, ..Metrics::default() }, captured_at };
            assert!(metrics::record(&db, owner, &snapshot).await.unwrap());
        }
    }
    let likes = async |post: &Post| -> Vec<u64> {
        let series = metrics::series(&db, unbounded(owner), post.id, 10).await.unwrap();
        series.into_iter().map(|snapshot| snapshot.metrics.likes).collect()
    };
    let thin = async |now| metrics::downsample(&db, owner, target, now).await.unwrap();
    assert_eq!((thin(hour(24, 0)).await, likes(&post).await), (0, vec![1, 2, 3, 4, 5, 6, 7]));
    assert_eq!((thin(hour(25, 0)).await, likes(&post).await), (2, vec![3, 4, 5, 6, 7]));
    assert_eq!((thin(hour(48, 15)).await, likes(&post).await), (1, vec![3, 4, 5, 7]));
    assert_eq!((thin(hour(32 * 24, 0)).await, likes(&post).await), (2, vec![5, 7]));
    assert_eq!(likes(&other).await, [1, 2, 3, 4, 5, 6, 7], "others are unchanged");
    let latest = metrics::series(&db, unbounded(owner), other.id, 2).await.unwrap();
    assert_eq!(latest.iter().map(|snapshot| snapshot.metrics.likes).collect::<Vec<_>>(), [6, 7]);
    let stranger = Owner { mode: Mode::Live, ..owner };
    assert_eq!(metrics::series(&db, unbounded(stranger), post.id, 10).await.unwrap(), []);
    assert_eq!(metrics::downsample(&db, stranger, other.targets[0].id, hour(900, 0)).await.unwrap(), 0);

    let late = hour(24, 15) + TimeDelta::days(730);
    assert_eq!(metrics::prune(&db, 2, late).await.unwrap(), 2);
    assert_eq!(metrics::prune(&db, 100, late).await.unwrap(), 5);
    assert_eq!((likes(&post).await, likes(&other).await), (vec![7], vec![7]));
}
