//! Waits for events that come soon, without a notification.

use std::time::Duration;

/// The time limit for anything that a test waits for, also with many tests at once on a slow
/// machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Polls until there is something to return.
pub async fn eventually<T, F: Future<Output = Option<T>>>(look: impl FnMut() -> F) -> T {
    eventually_within(PATIENCE, look).await
}

pub async fn eventually_within<T, F: Future<Output = Option<T>>>(
    patience: Duration,
    mut look: impl FnMut() -> F,
) -> T {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(patience, looking).await.expect("the condition holds in time")
}
