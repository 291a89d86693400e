//! Imports of an account's earlier posts, page by page.
//!
//! The row says where the page begins, and the page is stored together with the beginning of the next one. A
//! transient failure is retried after the pause that the platform asks for; a permanent one ends the import, and
//! the posts imported so far stay.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{
    Deps,
    share::{self, Shares},
};
use chrono::{DateTime, Utc};
use domain::{
    ErrorCode, Failure,
    outbox::ImportRef,
    retry::{self, Spent},
};
use platforms::{Page, RemotePost};
use std::sync::Arc;
use store::accounts::imports::{FoundPost, ImportPage, Progress};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::info;
use workflows::activities::{AccountRef, ImportPageInput, ImportProgress, definition};

/// The activities of imports.
pub(crate) struct Imports {
    pub(crate) deps: Arc<Deps>,
    pub(crate) shares: Arc<Shares>,
}

#[activities]
impl Imports {
    #[activity(definition = definition::ImportPage)]
    pub(crate) async fn import_page(
        self: Arc<Self>,
        _cx: ActivityContext,
        input: ImportPageInput,
    ) -> Result<ImportProgress, ActivityError> {
        let deps = &self.deps;
        let ImportRef { import, owner, account, platform } = input.import.clone();
        let _share = self.shares.take(owner.org, (deps.engine.jitter)()).map_err(share::crowded)?;
        let Some(progress) =
            store::accounts::imports::resume(&deps.engine.db, owner, import, (deps.engine.now)()).await?
        else {
            return Ok(ImportProgress::Over);
        };
        let account_ref = AccountRef { account, owner, platform };
        let outcome = deps
            .call(&account_ref, |platform, cx| {
                let cursor = progress.cursor.clone();
                Box::pin(async move {
                    match platform.history {
                        Some(history) => history.page(cx, cursor.as_deref()).await,
                        None => Err(Failure::rejected(501, format!("{} lists no posts", platform.id))),
                    }
                })
            })
            .await?;
        let failure = match outcome.answer {
            Ok(page) => {
                let import_page = import_page(page, &progress);
                let more = store::accounts::imports::store_page(
                    &deps.engine.db,
                    owner,
                    import,
                    progress.pages,
                    &import_page,
                    (deps.engine.now)(),
                )
                .await?;
                return Ok(if more { ImportProgress::More } else { ImportProgress::Over });
            }
            Err(failure) => failure,
        };
        // A fresh token was refused, or there is none: no pause helps.
        let spent = Spent { attempts: input.tries + 1, token_attempts: retry::TOKEN_ATTEMPTS };
        match deps.engine.next_attempt(&failure, spent) {
            Some(wait) => {
                info!(import.id = %import, error.code = %failure.code, "Import {import} waits: {failure}");
                Ok(ImportProgress::Later { wait })
            }
            None => {
                if let (ErrorCode::TokenExpired, Some(version)) = (failure.code, outcome.version) {
                    deps.mark_lost(&account_ref, version, &failure).await?;
                }
                info!(import.id = %import, error.code = %failure.code, "Import {import} failed: {failure}");
                store::accounts::imports::fail(
                    &deps.engine.db,
                    owner,
                    import,
                    &failure.to_string(),
                    (deps.engine.now)(),
                )
                .await?;
                Ok(ImportProgress::Over)
            }
        }
    }

    #[activity(definition = definition::AbandonImport)]
    pub(crate) async fn abandon_import(
        self: Arc<Self>,
        _cx: ActivityContext,
        import: ImportRef,
    ) -> Result<(), ActivityError> {
        let (deps, reason) = (&self.deps, "the import was stopped before it was done");
        Ok(store::accounts::imports::fail(
            &deps.engine.db,
            import.owner,
            import.import,
            reason,
            (deps.engine.now)(),
        )
        .await?)
    }
}

/// The part of a page that the import asked for.
fn import_page(page: Page, progress: &Progress) -> ImportPage {
    let is_early = |at: DateTime<Utc>| progress.from_date.is_some_and(|from| at < from);
    let is_late = |at: DateTime<Utc>| progress.to_date.is_some_and(|to| at >= to);
    // Pages are newest first, except for pinned posts: one early post does not end the list, a whole page of
    // them does.
    let is_past = !page.items.is_empty() && page.items.iter().all(|post| is_early(post.published_at));
    // A cursor that does not advance would never end.
    let next = page.next.filter(|next| !is_past && progress.cursor.as_ref() != Some(next));
    let posts =
        page.items.into_iter().filter(|post| !is_early(post.published_at) && !is_late(post.published_at));
    ImportPage { posts: posts.take(progress.remaining).map(found).collect(), next }
}

fn found(post: RemotePost) -> FoundPost {
    FoundPost {
        platform_post_id: post.id,
        platform_post_url: post.url,
        content: post.text,
        media: post.media,
        metrics: post.metrics,
        published_at: post.published_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Metrics;

    fn page(days: &[i64], next: Option<&str>) -> Page {
        let post = |day: &i64| RemotePost {
            id: day.to_string(),
            url: String::new(),
            text: String::new(),
            media: Vec::new(),
            published_at: at(*day),
            metrics: Metrics::default(),
        };
        Page { items: days.iter().map(post).collect(), next: next.map(str::to_owned) }
    }

    fn at(day: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(day * 86_400, 0).unwrap()
    }

    #[test]
    fn of_a_page_what_is_asked_for_is_kept_and_the_list_ends_with_the_range() {
        let progress = Progress {
            from_date: Some(at(10)),
            to_date: Some(at(20)),
            remaining: 3,
            cursor: Some("here".to_owned()),
            pages: 1,
        };
        for (days, next, kept, goes_on) in [
            (&[22, 21, 20][..], Some("there"), &[][..], true),
            (&[21, 20, 19, 10], Some("there"), &[19, 10], true),
            // The pinned post stands first, whenever it was published.
            (&[2, 19, 18], Some("there"), &[19, 18], true),
            (&[19, 18, 17, 16], Some("there"), &[19, 18, 17], true),
            (&[11, 10, 9], Some("there"), &[11, 10], true),
            (&[9, 8], Some("there"), &[], false),
            (&[], Some("there"), &[], true),
            (&[19], None, &[19], false),
            (&[19], Some("here"), &[19], false),
        ] {
            let import_page = import_page(page(days, next), &progress);
            let ids: Vec<i64> =
                import_page.posts.iter().map(|post| post.platform_post_id.parse().unwrap()).collect();
            assert_eq!((&ids[..], import_page.next.is_some()), (kept, goes_on), "{days:?} {next:?}");
        }
    }
}
