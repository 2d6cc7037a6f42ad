//! Requests of the other side while they run, and the size of responses that are not sent yet.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Core, MessageRoute};
use crate::id::Id;
use crate::message::Response;

/// A response that waits for the outbox.
pub(super) struct UnsentResponse<'a> {
    pub(super) core: &'a Core,
    pub(super) bytes: usize,
}

impl Drop for UnsentResponse<'_> {
    fn drop(&mut self) {
        self.core.unsent.send_modify(|unsent| *unsent -= self.bytes);
    }
}

/// A request of the other side that runs while it is awaited. If dropped early, it continues as a
/// task and responds through the outbox: only a cancellation stops it.
pub(crate) struct RunningRequest {
    pub(super) core: Arc<Core>,
    pub(super) id: Id,
    pub(super) answer: Option<BoxFuture<'static, Option<Response>>>,
    pub(super) counted: Option<TaskTrackerToken>,
}

impl Future for RunningRequest {
    /// `None` if the response to a cancelled request is withheld.
    type Output = Option<Response>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.answer.as_mut().expect("not awaited again after its end");
        let response = ready!(answer.poll_unpin(cx));
        self.answer = None;
        Poll::Ready(response)
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let (Some(answer), Ok(runtime)) = (self.answer.take(), Handle::try_current()) else {
            return;
        };
        let (core, id, counted) = (self.core.clone(), self.id.clone(), self.counted.take());
        runtime.spawn(async move {
            match answer.await {
                Some(response) => {
                    let _unsent = core.count_unsent(response.size_about());
                    let _ = core.outbox.send(response.into(), MessageRoute::Within(id)).await;
                }
                None => core.outbox.withheld(id).await,
            }
            drop(counted);
        });
    }
}
