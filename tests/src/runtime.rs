//! What serves tests and outlives each of them.

use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};

/// Serves sandboxes and receivers, and looks at what a test leaves behind. The runtime of a test ends with the
/// test, and stands still while the test blocks.
pub(crate) static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime"));

/// Serves something until the run ends: also while a test is blocked, as it is where its world is dropped.
pub fn serve(serving: impl Future<Output = ()> + Send + 'static) {
    RUNTIME.spawn(serving);
}
