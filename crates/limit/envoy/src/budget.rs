//! How many bytes of requests may be in memory at once, whoever sends them.
//!
//! A connection may have many requests open, and many connections many more. What one request may
//! hold is bounded, but not small; so what all hold together is bounded, too: their bytes while
//! they are read, and what was read of them for as long as they are answered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

/// Longest request. A hundred descriptors of ten kilobytes each; Envoy sends some hundred bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Bytes of requests that are read or answered, of all connections. A hundred thousand usual ones.
const IN_FLIGHT_BYTES_MAX: usize = 64 << 20;

/// Any error.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Nothing is left for one more.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many bytes of requests are being read or answered already")]
pub(crate) struct OverBudget;

/// What is left of the bytes for all.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

impl Default for Budget {
    fn default() -> Self {
        Self::of(IN_FLIGHT_BYTES_MAX)
    }
}

impl Budget {
    pub(crate) fn of(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// A part of it, until that is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> Result<OwnedSemaphorePermit, OverBudget> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let held = Arc::clone(&self.0).try_acquire_many_owned(bytes);
        held.map_err(|_| OverBudget)
    }

    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.0.available_permits()
    }

    /// A body whose bytes count for as long as it is there.
    pub(crate) fn count<B>(&self, body: B) -> Counted<B> {
        Counted {
            body,
            budget: self.clone(),
            held: None,
        }
    }
}

/// A body that holds a part of the budget.
#[derive(Debug)]
pub(crate) struct Counted<B> {
    body: B,
    budget: Budget,
    held: Option<OwnedSemaphorePermit>,
}

impl<B> Counted<B> {
    fn hold(&mut self, bytes: usize) -> Result<(), Status> {
        let more = self.budget.hold(bytes);
        let more = more.map_err(|crowded| Status::resource_exhausted(crowded.to_string()))?;
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        Ok(())
    }
}

impl<B> Body for Counted<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, |data| data.remaining());
                Some(match self.hold(bytes) {
                    Ok(()) => Ok(frame),
                    Err(status) => Err(status.into()),
                })
            }
            Some(Err(error)) => Some(Err(error.into())),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    #[tokio::test]
    async fn what_all_hold_together_is_bounded_and_comes_back() {
        let budget = Budget::of(10);
        let body = |bytes: usize| budget.count(Full::new(Bytes::from(vec![0; bytes])));
        let mut first = body(7);
        assert!(first.frame().await.unwrap().is_ok());
        let refused = body(4).frame().await.unwrap().unwrap_err();
        assert!(refused.downcast_ref::<Status>().is_some(), "{refused}");
        drop(first);
        assert!(body(4).frame().await.unwrap().is_ok());
    }
}
