//! The latency of another organization beside the most expensive requests.

use super::{
    Finding,
    scene::{Call, Scene},
};
use reqwest::Method;
use std::{
    cmp::Reverse,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use tests::proof::{Section, is_full};

/// Latency that is never too long: on a busy machine a request that does nothing may take as long.
const FLOOR: Duration = Duration::from_millis(20);
/// Number of requests of the other organization whose median counts.
const SAMPLES: usize = 21;

/// The latency of another organization beside a request that is repeated all the time.
pub(super) struct Latency {
    operation: String,
    idle: Duration,
    beside: Duration,
}

impl Latency {
    /// Adds it to a section.
    pub(super) fn write(&self, section: &mut Section) {
        let name = format!("Latency of another organization beside `{}`", self.operation);
        let value = format!("{:.1} ms, idle {:.1} ms", millis(self.beside), millis(self.idle));
        section.figure(name, value);
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Compares the latency of another organization with its idle latency, beside each of the most expensive requests.
pub(super) async fn beside(scene: &Scene, findings: &[Finding]) -> Vec<Latency> {
    let mut repeatable: Vec<_> = findings.iter().filter(|finding| finding.call.is_some()).collect();
    repeatable.sort_by_key(|finding| Reverse(finding.cost.cpu()));
    repeatable.truncate(if is_full() { usize::MAX } else { 6 });
    let mut latencies = Vec::new();
    for finding in repeatable {
        let Some(call) = &finding.call else { continue };
        let idle = median(scene).await;
        let is_over = AtomicBool::new(false);
        let attack = async {
            while !is_over.load(Ordering::Relaxed) {
                let answer = call.build(&scene.http).send().await.unwrap();
                answer.bytes().await.unwrap();
            }
        };
        let measure = async {
            let median = median(scene).await;
            is_over.store(true, Ordering::Relaxed);
            median
        };
        let (_, beside) = tokio::join!(attack, measure);
        let limit = (2 * idle).max(FLOOR);
        let Finding { operation, input, .. } = finding;
        assert!(
            beside <= limit,
            "{operation}: another organization waits {beside:?}, idle {idle:?}: {input}"
        );
        latencies.push(Latency { operation: operation.clone(), idle, beside });
    }
    latencies
}

/// Returns the median of the times in which the other organization is answered.
async fn median(scene: &Scene) -> Duration {
    let call = Call {
        method: Method::GET,
        url: format!("{}/posts?limit=1", scene.world.base),
        headers: vec![("authorization", format!("Bearer {}", scene.neighbor.key))],
        body: Vec::new(),
    };
    let mut times = Vec::new();
    for _ in 0..SAMPLES {
        let began = Instant::now();
        let answer = call.build(&scene.http).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        answer.bytes().await.unwrap();
        times.push(began.elapsed());
    }
    times.sort();
    times[SAMPLES / 2]
}
