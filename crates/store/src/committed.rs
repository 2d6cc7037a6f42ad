//! The promise that an entry is safe.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::StoreError;

/// Resolves once the entry is safe, or could not be made so. Dropping it does not take the entry
/// back.
#[must_use = "an entry is only known to be safe once this was awaited"]
pub struct Committed(Ready<Result<(), StoreError>>);

impl Committed {
    pub(crate) fn now(result: Result<(), StoreError>) -> Committed {
        Committed(ready(result))
    }
}

impl Future for Committed {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}
