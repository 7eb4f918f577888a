//! How long may the origin take until the head of its answer?
//!
//! Without a request body: `origin_response` from the moment it was sent off, connecting included.
//! With one, the time runs from the last piece that the origin took, and stands still while the
//! client has nothing to send; the body's own idle time-out watches the client. So an upload may
//! take hours, and a dead origin is noticed after one time-out, at most two.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Response;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Error as ClientError, ResponseFuture};
use tokio::time::timeout;

use crate::body::Progress;

/// Why there is no answer.
pub(super) enum NoAnswer {
    TimedOut,
    Failed(ClientError),
}

/// Waits for the head of the answer.
pub(super) async fn for_head(
    answer: ResponseFuture,
    limit: Duration,
    progress: Option<&Arc<Progress>>,
) -> Result<Response<Incoming>, NoAnswer> {
    let mut answer = pin!(answer);
    let mut seen = 0;
    loop {
        if let Ok(answered) = timeout(limit, answer.as_mut()).await {
            return answered.map_err(NoAnswer::Failed);
        }
        let Some(progress) = progress else {
            return Err(NoAnswer::TimedOut);
        };
        if !progress.is_waiting() && progress.pieces() == seen {
            return Err(NoAnswer::TimedOut);
        }
        seen = progress.pieces();
    }
}
