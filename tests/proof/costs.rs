//! The cost sweep: no request and no file takes more of the machine than it may, and none slows down others.
//!
//! An organization has as much as one may have ([`scene`]). For each operation a search looks for the accepted input
//! that costs most, from the schemas of the OpenAPI document ([`values`], [`search`]); for the dashboard it sends its forms
//! at their limits ([`forms`]), and for each format it makes the files that take longest ([`files`]). CPU time counts with
//! that of the database, in a build without optimization.

mod files;
mod forms;
mod neighbor;
mod scene;
mod search;
mod values;

use scene::{Call, Measured};
use std::time::Duration;
use tests::{meter::Cost, proof::Section};

/// CPU time that a request may take.
const MAX_CPU: Duration = Duration::from_secs(2);
/// Memory that a request may take, in bytes.
const MAX_MEMORY: u64 = 64 << 20;
/// Size of the longest answer, in bytes: that of a page of posts of 1,000 accounts each.
const MAX_ANSWER: usize = 8 << 20;

/// The most expensive input that was found for an operation or a page.
#[derive(Clone, Debug)]
struct Finding {
    /// Method and path.
    operation: String,
    /// The input in a few words.
    input: String,
    /// Status of the answer.
    status: u16,
    /// Length of the answer in bytes.
    length: usize,
    cost: Cost,
    /// The request, if it can be repeated.
    call: Option<Call>,
}

impl Finding {
    fn of(operation: String, input: &str, call: Call, measured: &Measured) -> Self {
        let is_repeatable = call.method == reqwest::Method::GET || operation.ends_with("/validate");
        Self {
            operation,
            input: input.chars().take(600).collect(),
            status: measured.status,
            length: measured.body.len(),
            cost: measured.cost,
            call: is_repeatable.then_some(call),
        }
    }

    /// Returns the largest part of a limit that it takes.
    fn weight(&self) -> f64 {
        let cpu = self.cost.cpu().as_secs_f64() / MAX_CPU.as_secs_f64();
        cpu.max(self.cost.memory as f64 / MAX_MEMORY as f64).max(self.length as f64 / MAX_ANSWER as f64)
    }

    /// Returns how it exceeds what a request may take; `None` if it doesn't.
    fn excess(&self) -> Option<String> {
        let Self { operation, input, status, length, cost, .. } = self;
        let is_within = cost.cpu() <= MAX_CPU && cost.memory <= MAX_MEMORY && *length <= MAX_ANSWER;
        (!is_within).then(|| {
            format!(
                "{operation}: {status} after {:?} of the service and {:?} of Postgres, {} MiB, {length} bytes: {input}",
                cost.service,
                cost.postgres,
                cost.mebibytes()
            )
        })
    }

    /// Adds it to a section.
    fn write(&self, section: &mut Section) {
        let cost = self.cost;
        section.figure(
            format!("`{}`", self.operation),
            format!(
                "{:.2} s, of which Postgres {:.2} s; {} MiB",
                cost.cpu().as_secs_f64(),
                cost.postgres.as_secs_f64(),
                cost.mebibytes()
            ),
        );
    }
}

#[tokio::test]
async fn no_request_and_no_file_costs_more_than_its_bound() {
    let mut section = Section::new("9a-costs", "Cost of the most expensive inputs");
    let files = files::sweep().await;
    let mut scene = scene::Scene::start().await;
    let mut findings = search::with_a_worker(&mut scene).await;
    scene.fill().await;
    findings.extend(search::over_operations(&mut scene).await);
    findings.extend(forms::over_dashboard(&mut scene).await);
    let latencies = neighbor::beside(&scene, &findings).await;
    findings.extend(search::over_deletions(&mut scene).await);
    scene.end().await;

    let excesses: Vec<_> = findings.iter().filter_map(Finding::excess).collect();
    assert!(excesses.is_empty(), "{} inputs cost too much:\n{}", excesses.len(), excesses.join("\n"));
    section.text(
        "An organization with 1,000 accounts, profiles, members and sets of slots, and 20,000 posts. For each operation \
         of the OpenAPI document and each page and form of the dashboard: CPU time and memory for the most expensive \
         input that a search found, of a build without optimization. None may take more than 2 s and 64 MiB.",
    );
    section.figure("Requests sent", scene.sent);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.cost.cpu()));
    findings.iter().for_each(|finding| finding.write(&mut section));
    section.text(
        "For each format of files: CPU time from the upload to the asset and its thumbnail, for the most expensive file, \
         within the time that its format has.",
    );
    files.iter().for_each(|file| file.write(&mut section));
    latencies.iter().for_each(|latency| latency.write(&mut section));
    section.write();
}
