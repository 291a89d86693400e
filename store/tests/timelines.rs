//! Timelines of posts that ended long ago.

use super::{
    live_edits::{LIVE, text_edit},
    *,
};
use ::store::upkeep::retention::{self, Retention};

/// Lets everything have ended two years ago, and deletes old timelines. Returns the number of posts.
async fn delete(db: &Pool) -> u64 {
    tests::sql(db, "update posts set updated_at = now() - interval '2 years'").await;
    let retention = Retention { events: TimeDelta::days(30), timelines: TimeDelta::days(365) };
    retention::delete_timelines(db, retention).await.unwrap()
}

/// Each of these writes an entry into a timeline that was deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_that_goes_on_is_deleted_again() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, NewPost { external_ref: Some("one".into()), ..draft_of(&[&ada]) }).await;
    let target = post.targets[0].id;
    let end = |status: &'static str| {
        format!("update posts set status = '{status}'; update targets set status = '{status}'")
    };
    tests::sql(&db, &end("published")).await;
    for change in ["unpublish", "edit", "revive", "delete"] {
        assert_eq!(delete(&db).await, 1, "before {change}");
        let now = tests::now();
        match change {
            "unpublish" => publishing::record_unpublished(&db, owner, post.id, target, now).await.unwrap(),
            "edit" => {
                tests::sql(&db, &format!("update targets set unpublished_at = null; {LIVE}")).await;
                let edits = [text_edit("Before", "New")];
                let of = (post.id, target);
                let begun = publishing::begin_edit(&db, unbounded(owner), of, &edits, None).await.unwrap();
                let publishing::BeginEdit::Begun { edit, .. } = begun else { panic!("{begun:?}") };
                let taken = publishing::take_edit(&db, owner, of, edit).await.unwrap().unwrap();
                let made = publishing::Changes::of(&edits);
                let result = publishing::EditResult { made, is_whole: true, is_in_doubt: false };
                assert!(publishing::record_edit(&db, owner, of, &taken, &result, now).await.unwrap());
            }
            "revive" => {
                tests::sql(
                    &db,
                    &end("published").replace(
                        "targets set status = 'published'",
                        "targets set status = 'dead', error_message = 'refused'",
                    ),
                )
                .await;
                publishing::revive(&db, unbounded(owner), post.id, None, now).await.unwrap();
                tests::sql(&db, &end("published")).await;
            }
            _ => assert!(posts::delete(&db, unbounded(owner), post.id, None, now).await.unwrap()),
        }
        let kept = timeline::list(&db, unbounded(owner), post.id, WHOLE, None).await.unwrap().items;
        assert!(change == "delete" || !kept.is_empty(), "{change} writes an entry");
        let is_old = retention::delete_timelines(
            &db,
            Retention { events: TimeDelta::days(30), timelines: TimeDelta::days(365) },
        );
        assert_eq!(is_old.await.unwrap(), 0, "the entry of {change} is kept as long as others");
    }
    assert_eq!(delete(&db).await, 1, "after the last change");
}
