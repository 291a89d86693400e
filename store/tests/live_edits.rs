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
async fn an_edit_is_taken_by_its_digest_until_another_one_begins() {
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
    let publishing::BeginEdit::Begun { digest: one } = begin("One").await else { panic!("it is live") };
    let taken = publishing::take_edit(&db, owner, of, &one).await.unwrap().unwrap();
    assert_eq!(taken.edits, [text_edit("Before", "One")]);
    assert_eq!(taken.platform_ids, [(0, "1".to_owned())].into());
    assert_eq!(begin("Two").await, publishing::BeginEdit::Busy);
    assert_eq!(begin("One").await, publishing::BeginEdit::Begun { digest: one.clone() }, "the same one");
    // As if nobody had taken it in time.
    tests::sql(&db, "update targets set edit_until = now() - interval '1 second'").await;
    let publishing::BeginEdit::Begun { digest: two } = begin("Two").await else { panic!("its time is over") };
    assert_eq!(publishing::take_edit(&db, owner, of, &one).await.unwrap(), None);
    let none = publishing::EditResult { made: publishing::Changes::default(), is_in_doubt: false };
    assert!(!publishing::record_edit(&db, owner, of, &one, &none, tests::now()).await.unwrap());
    let taken = publishing::take_edit(&db, owner, of, &two).await.unwrap().unwrap();
    assert_eq!(taken.edits, [text_edit("Before", "Two")]);
    tests::sql(&db, "update targets set unpublished_at = now()").await;
    assert_eq!(publishing::take_edit(&db, owner, of, &two).await.unwrap(), None);
    assert_eq!(begin("Two").await, publishing::BeginEdit::Unpublished);
}
