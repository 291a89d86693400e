//! An import: the pages of an account's history, one activity after the other.
//!
//! The row knows how far it has come, so that an activity needs nothing but its name, and one that is
//! repeated begins where the posts end. A platform that wants to be left alone is waited for with a
//! timer, which outlives every worker; whether to wait at all is decided where the answer is read.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{ImportPageInput, ImportProgress, Imports},
    attributes,
    process_media::crowded,
    publish_target::settling,
};
use domain::outbox::ImportRef;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityOptions, ContinueAsNewOptions, RetryPolicy, TimerOptions, TimerResult, WorkflowCancellationToken,
    WorkflowContext, WorkflowContextView, WorkflowResult, workflow, workflow_methods,
};

/// How long one page may take, with a refresh of the token before it.
const PAGE: Duration = Duration::from_secs(30);

/// What a wait says of itself to operators.
const WAITS: &str = "until the platform answers again";

/// What the workflow is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// The import.
    #[serde(flatten)]
    pub import: ImportRef,
    /// How often the next page was tried already.
    #[serde(default)]
    pub tries: u32,
}

/// The workflow's id: fixed, so that starting it twice does nothing.
pub fn id(import: &ImportRef) -> String {
    format!("import-{}", import.import)
}

/// The search attributes it is started with.
pub fn search_attributes(import: &ImportRef) -> SearchAttributes {
    SearchAttributes::new([
        attributes::ORG.value_set(import.owner.org.to_string()),
        attributes::PLATFORM.value_set(import.platform.clone()),
        attributes::ACCOUNT.value_set(import.account.to_string()),
    ])
}

/// Imports what an account published earlier. See the [module](self).
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
            let turn = ImportPageInput { import: import.clone(), tries };
            match ctx.execute_activity(Imports::import_page, turn, paging()).await {
                Ok(ImportProgress::Over) => return Ok(()),
                Ok(ImportProgress::More) => tries = 0,
                Ok(ImportProgress::Later { wait }) => {
                    tries += 1;
                    let alarm = TimerOptions::builder(wait).summary(WAITS.to_owned()).build();
                    if ctx.timer(alarm).await == TimerResult::Cancelled {
                        return Self::abandon(ctx, import).await;
                    }
                }
                // An operator ended it, or its workers did not get through: its row must not stay open.
                Err(error) => match crowded(&error) {
                    Some(wait) if ctx.timer(wait).await == TimerResult::Fired => {}
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
        let mut options = settling(ctx.task_queue());
        options.cancellation_token = Some(WorkflowCancellationToken::new());
        Ok(ctx.execute_activity(Imports::abandon_import, import, options).await?)
    }
}

/// A platform's refusals are answers; what is repeated here is a fault of ours, such as a database that
/// is away or a worker that died.
fn paging() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(PAGE)
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(Duration::from_secs(1))
                .backoff_coefficient(2.0)
                .maximum_interval(Duration::from_secs(60))
                .maximum_attempts(30)
                .build(),
        )
        .summary("Import a page")
        .build()
}
