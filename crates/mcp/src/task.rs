//! Tasks of the runtime. Tokio compiles its task code again for every kind of future that it is
//! given, 1,400 lines of intermediate code each; here a future is boxed first, so that one copy
//! serves all of them.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::task::TaskTracker;

/// Starts a task. It runs on if the handle is dropped.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future.boxed())
}

/// Starts a task that `tracker` waits for.
pub fn spawn_tracked(tracker: &TaskTracker, future: impl Future<Output = ()> + Send + 'static) {
    tracker.spawn(future.boxed());
}

/// Starts work that blocks, on a thread meant for that. The future returns the work's value; the
/// work is done even if the future is not awaited.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, JoinError>> + Send + 'static {
    let value = Arc::new(Mutex::new(None));
    let slot = value.clone();
    let working = spawn_job(Box::new(move || {
        let made = work();
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    }));
    async move {
        working.await?;
        let made = value.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(made.expect("work that has ended left its value"))
    }
}

fn spawn_job(job: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
    tokio::task::spawn_blocking(job)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn the_value_of_blocking_work_is_returned() {
        assert_eq!(spawn_blocking(|| "made".to_owned()).await.unwrap(), "made");
    }

    #[tokio::test]
    async fn a_panic_in_blocking_work_is_an_error() {
        let failed = spawn_blocking(|| -> u8 { panic!("on purpose") }).await;
        assert!(failed.unwrap_err().is_panic());
    }

    #[tokio::test]
    async fn blocking_work_is_done_even_if_nobody_waits() {
        let (sender, made) = mpsc::channel();
        drop(spawn_blocking(move || sender.send(7)));
        assert_eq!(spawn_blocking(move || made.recv()).await.unwrap(), Ok(7));
    }

    #[tokio::test]
    async fn a_tracker_waits_for_its_tasks() {
        let (tracker, (sender, made)) = (TaskTracker::new(), mpsc::channel());
        spawn_tracked(&tracker, async move {
            tokio::task::yield_now().await;
            let _ = sender.send(7);
        });
        tracker.close();
        tracker.wait().await;
        assert_eq!(made.try_recv(), Ok(7));
    }
}
