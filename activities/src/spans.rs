//! Spans of activities, which name the work in each log line.

use temporalio_sdk::interceptors::{
    ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next,
};
use tracing::{Instrument, error_span};

/// Runs each activity in a span with its workflow.
pub(crate) struct ActivitySpans;

impl ActivityInboundInterceptor for ActivitySpans {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        let info = input.activity_info();
        let workflow = info.workflow_id.as_deref();
        // At the level of errors, so that no filter removes it from a line that is logged.
        let span = error_span!(
            "activity",
            activity = info.activity_type,
            workflow.id = workflow,
            activity.attempt = info.attempt
        );
        Box::pin(next.run(input).instrument(span))
    }
}
