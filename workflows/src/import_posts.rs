//! Imports an account's earlier posts, one page per activity.
//!
//! The row says where the next page begins, so that an activity needs nothing but the import's id. A platform
//! that asks for a pause is waited for with a timer, which outlives every worker.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{ImportPageInput, ImportProgress, Imports},
    attributes, options,
    process_media::crowded,
    queue,
    start::Start,
    timer,
};
use domain::{Owner, outbox::ImportRef};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityOptions, ContinueAsNewOptions, TimerOptions, TimerResult, WorkflowCancellationToken,
    WorkflowContext, WorkflowContextView, WorkflowResult, workflow, workflow_methods,
};

/// Time limit of importing a page, with a token refresh before it.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Summary of a wait, for operators.
const WAIT_SUMMARY: &str = "until the platform answers again";

/// Input of the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Import.
    #[serde(flatten)]
    pub import: ImportRef,
    /// Number of failed tries for the next page.
    #[serde(default)]
    pub tries: u32,
}

impl Start for Input {
    fn owner(&self) -> Owner {
        self.import.owner
    }

    fn id(&self) -> String {
        format!("import-{}", self.import.import)
    }

    fn queue(&self, base: &str) -> String {
        queue::platform(base, &self.import.platform, self.import.owner.mode)
    }

    fn search_attributes(&self) -> SearchAttributes {
        attributes::of_account(self.import.owner, &self.import.platform, self.import.account)
    }

    fn summary(&self) -> String {
        format!("Import posts of an account of {}", self.import.platform)
    }
}

/// Imports an account's earlier posts. See the [module](self).
#[workflow]
pub struct ImportPosts {
    input: Input,
}

#[workflow_methods]
impl ImportPosts {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { input }
    }

    /// Runs until the import is over.
    #[run(name = "ImportPosts")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Input { import, mut tries } = ctx.state(|import| import.input.clone());
        loop {
            let page = ImportPageInput { import: import.clone(), tries };
            match ctx.execute_activity(Imports::import_page, page, page_options()).await {
                Ok(ImportProgress::Over) => return Ok(()),
                Ok(ImportProgress::More) => tries = 0,
                Ok(ImportProgress::Later { wait }) => {
                    tries += 1;
                    let timer = TimerOptions::builder(wait).summary(WAIT_SUMMARY.to_owned()).build();
                    if timer::sleep(ctx, timer).await == TimerResult::Cancelled {
                        return Self::abandon(ctx, import).await;
                    }
                }
                // An operator canceled it, or the retries are exhausted: its row must not stay open.
                Err(error) => match crowded(&error) {
                    Some(wait) if timer::sleep(ctx, wait).await == TimerResult::Fired => {}
                    _ => return Self::abandon(ctx, import).await,
                },
            }
            if ctx.continue_as_new_suggested() {
                let input = Input { import: import.clone(), tries };
                ctx.continue_as_new(input, ContinueAsNewOptions::default())?;
            }
        }
    }

    async fn abandon(ctx: &WorkflowContext<Self>, import: ImportRef) -> WorkflowResult<()> {
        let mut options = options::settle(ctx.task_queue());
        options.cancellation_token = Some(WorkflowCancellationToken::new());
        Ok(ctx.execute_activity(Imports::abandon_import, import, options).await?)
    }
}

/// Returns the options for importing a page. A platform's refusals are results; what is retried here is a failure of
/// Fanfare, such as an unavailable database or a dead worker.
fn page_options() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(PAGE_TIMEOUT)
        .retry_policy(options::backoff(Duration::from_secs(1), Duration::from_secs(60), 30))
        .summary("Import a page")
        .build()
}
