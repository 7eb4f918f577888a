//! Limit on the bytes of all requests in memory.
//!
//! A connection may have many requests open, and there may be many connections. One request is
//! bounded, but not small. So all requests together are bounded, too: their bytes while they are
//! read, and the decoded request until its response is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

/// Longest request. A hundred descriptors of ten kilobytes each; Envoy sends some hundred bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Most bytes of requests that are read or handled, over all connections. A hundred thousand usual
/// ones.
const IN_FLIGHT_BYTES_MAX: usize = 64 << 20;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The budget has no room for another request.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many bytes of requests in flight; try again later")]
pub(crate) struct OverBudget;

/// Remaining bytes, shared by all requests.
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

    /// Takes a part of the budget, until the permit is dropped.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, OverBudget> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).try_acquire_many_owned(bytes);
        permit.map_err(|_| OverBudget)
    }

    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.0.available_permits()
    }

    /// Wraps a body whose bytes count as long as it exists.
    pub(crate) fn count<B>(&self, body: B) -> Counted<B> {
        Counted {
            body,
            budget: self.clone(),
            permit: None,
        }
    }
}

/// Body that takes its bytes from the budget.
#[derive(Debug)]
pub(crate) struct Counted<B> {
    body: B,
    budget: Budget,
    permit: Option<OwnedSemaphorePermit>,
}

impl<B> Counted<B> {
    fn reserve(&mut self, bytes: usize) -> Result<(), Status> {
        let more = self.budget.reserve(bytes);
        let more = more.map_err(|error| Status::resource_exhausted(error.to_string()))?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
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
                Some(match self.reserve(bytes) {
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
    async fn all_bodies_together_are_bounded_and_return_their_bytes() {
        let budget = Budget::of(10);
        let body = |bytes: usize| budget.count(Full::new(Bytes::from(vec![0; bytes])));
        let mut first = body(7);
        assert!(first.frame().await.unwrap().is_ok());
        let error = body(4).frame().await.unwrap().unwrap_err();
        assert!(error.downcast_ref::<Status>().is_some(), "{error}");
        drop(first);
        assert!(body(4).frame().await.unwrap().is_ok());
    }
}
