//! Edits of live targets' posts.

use super::*;

/// Gives the main container of each target an id on its platform.
pub(super) const LIVE: &str = "
    insert into publications (target_id, position, org_id, mode, platform_id)
    select id, 0, org_id, mode, '1' from targets";

/// A change of a main post's text.
pub(super) fn text_edit(before: &str, text: &str) -> domain::Edit {
    domain::Edit {
        position: 0,
        of_reply: false,
        has_media: false,
        kinds: Vec::new(),
        before: before.to_owned(),
        text: Some(text.to_owned()),
        settings: json!({}),
        names: Vec::new(),
    }
}

/// The API begins an edit, and a worker that is late must not make it in the place of another.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_taken_by_its_id_until_another_one_begins() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let of = (post.id, post.targets[0].id);
    let begin = async |text: &str| {
        let edits = [text_edit("Before", text)];
        publishing::begin_edit(&db, unbounded(owner), of, &edits, None).await.unwrap()
    };
    assert_eq!(begin("One").await, publishing::BeginEdit::NotLive(TargetStatus::Pending));
    tests::sql(&db, "update posts set status = 'published'; update targets set status = 'published'").await;
    assert_eq!(begin("One").await, publishing::BeginEdit::NoReply(0));
    tests::sql(&db, LIVE).await;
    let publishing::BeginEdit::Begun { edit: one, is_first: true } = begin("One").await else {
        panic!("it is live")
    };
    let first = publishing::take_edit(&db, owner, of, one).await.unwrap().unwrap();
    assert_eq!(first.edits, [text_edit("Before", "One")]);
    assert_eq!(first.platform_ids, [(0, "1".to_owned())].into());
    assert_eq!(begin("Two").await, publishing::BeginEdit::Busy);
    assert_eq!(
        begin("One").await,
        publishing::BeginEdit::Begun { edit: one, is_first: false },
        "the same one"
    );
    // As if nobody had taken it in time.
    tests::sql(&db, "update targets set edit_until = now() - interval '1 second'").await;
    let publishing::BeginEdit::Begun { edit: two, .. } = begin("Two").await else {
        panic!("its time is over")
    };
    assert_eq!(publishing::take_edit(&db, owner, of, one).await.unwrap(), None);
    let none =
        publishing::EditResult { made: publishing::Changes::default(), is_whole: false, is_in_doubt: false };
    assert!(!publishing::record_edit(&db, owner, of, &first, &none, tests::now()).await.unwrap());
    let taken = publishing::take_edit(&db, owner, of, two).await.unwrap().unwrap();
    assert_eq!(taken.edits, [text_edit("Before", "Two")]);
    tests::sql(&db, "update targets set unpublished_at = now()").await;
    assert_eq!(publishing::take_edit(&db, owner, of, two).await.unwrap(), None);
    assert_eq!(begin("Two").await, publishing::BeginEdit::Unpublished);
}

/// A double click, or a repetition after a 503 while the first worker still calls.
#[tokio::test(flavor = "multi_thread")]
async fn two_equal_edits_hold_the_target_until_both_have_ended() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, NewPost { external_ref: Some("a".to_owned()), ..draft_of(&[&ada]) }).await;
    let of = (post.id, post.targets[0].id);
    tests::sql(&db, "update posts set status = 'published'; update targets set status = 'published'").await;
    tests::sql(&db, LIVE).await;
    let begin = async |text: &str| {
        let (edits, seen) =
            ([text_edit("Before", text)], now_of(&db, owner, &post).await.targets[0].edited_at);
        publishing::begin_edit(&db, unbounded(owner), of, &edits, seen).await.unwrap()
    };
    let publishing::BeginEdit::Begun { edit, .. } = begin("One").await else { panic!("it is live") };
    let first = publishing::take_edit(&db, owner, of, edit).await.unwrap().unwrap();
    assert_eq!(begin("One").await, publishing::BeginEdit::Begun { edit, is_first: false });
    let second = publishing::take_edit(&db, owner, of, edit).await.unwrap().unwrap();
    let result = publishing::EditResult {
        made: publishing::Changes::of(&first.edits),
        is_whole: true,
        is_in_doubt: false,
    };
    let record = async |taken| {
        assert!(publishing::record_edit(&db, owner, of, taken, &result, tests::now()).await.unwrap());
    };
    record(&first).await;
    assert_eq!(begin("Two").await, publishing::BeginEdit::Busy, "the second call may still be under way");
    record(&second).await;
    let again = publishing::take_edit(&db, owner, of, edit).await.unwrap().unwrap();
    assert_eq!(again.edits, [], "its changes are made, and kept no longer");
    record(&again).await;
    let publishing::BeginEdit::Begun { edit: two, .. } = begin("Two").await else {
        panic!("nothing holds it")
    };
    assert_ne!(two, edit);
    assert_eq!(begin("Three").await, publishing::BeginEdit::Busy);
    publishing::give_up_edit(&db, owner, of.1, two).await.unwrap();
    assert!(
        matches!(begin("Three").await, publishing::BeginEdit::Begun { .. }),
        "no worker was asked for it"
    );
}
