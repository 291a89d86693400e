//! The state of workflows, for operators: what Temporal knows of them.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::time::Duration;
use temporalio_client::{Client, WorkflowDescribeOptions};
use temporalio_common::UntypedWorkflow;

/// Time that Temporal has to answer for one workflow.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the states of workflows, each with the activities that are under way or wait for their next try.
pub async fn workflows(client: &Client, ids: &[String]) -> Vec<Value> {
    let mut states = Vec::with_capacity(ids.len());
    for id in ids {
        states.push(workflow(client, id).await);
    }
    states
}

/// Returns what is said of workflows whose state is not known.
pub fn unknown(ids: &[String], reason: &str) -> Vec<Value> {
    ids.iter().map(|id| without_state(id, reason)).collect()
}

fn without_state(id: &str, reason: &str) -> Value {
    json!({ "id": id, "state": null, "error": reason })
}

async fn workflow(client: &Client, id: &str) -> Value {
    let handle = client.get_workflow_handle::<UntypedWorkflow>(id);
    let described = tokio::time::timeout(TIMEOUT, handle.describe(WorkflowDescribeOptions::default())).await;
    let description = match described {
        Ok(Ok(description)) => description.raw_description,
        Ok(Err(error)) => return without_state(id, &error.to_string()),
        Err(_) => return without_state(id, "Temporal does not answer"),
    };
    let pending: Vec<_> = description
        .pending_activities
        .iter()
        .map(|activity| {
            let state =
                activity.state().as_str_name().trim_start_matches("PENDING_ACTIVITY_STATE_").to_lowercase();
            json!({
                "activity": activity.activity_type.as_ref().map(|of| &of.name),
                "state": state,
                // Of this run of the activity: it begins again with each wait and each retry by hand, and counts
                // attempts that cost the target nothing, so that it may differ from the target's `attempts`.
                "temporal_attempt": activity.attempt,
                "next_try_at": activity.next_attempt_schedule_time.and_then(|at| time(at.seconds, at.nanos)),
                "last_failure": activity.last_failure.as_ref().map(|failure| &failure.message),
            })
        })
        .collect();
    let task = description.pending_workflow_task.as_ref().map(|task| json!({ "attempt": task.attempt }));
    let info = description.workflow_execution_info.unwrap_or_default();
    let status = info.status().as_str_name().trim_start_matches("WORKFLOW_EXECUTION_STATUS_").to_lowercase();
    json!({
        "id": id,
        "run": info.execution.map(|execution| execution.run_id),
        "state": status,
        "started_at": info.start_time.and_then(|at| time(at.seconds, at.nanos)),
        "ended_at": info.close_time.and_then(|at| time(at.seconds, at.nanos)),
        "history_events": info.history_length,
        "pending_workflow_task": task,
        "pending_activities": pending,
    })
}

fn time(seconds: i64, nanos: i32) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(seconds, u32::try_from(nanos).ok()?)
}
