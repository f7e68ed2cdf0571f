//! Requests that wait a little for their data.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until `is_ready`, at most for this time. Other requests are served meanwhile.
pub async fn ready_within(limit: Duration, mut is_ready: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !is_ready() && Instant::now() < end {
        sleep(PAUSE).await;
    }
}
