//! Wait for the head of the origin's response.
//!
//! Without a request body, the timeout is `origin_response` from the moment the request was sent,
//! connecting included. With one, the timeout restarts with each piece that the origin reads, and
//! pauses while the client has nothing to send; the body's own idle timeout watches the client. So
//! an upload may take hours, and an unavailable origin is noticed after one timeout, at most two.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::upstream::{Failure, UpstreamResponse};
use tokio::time::timeout;

use super::expect::{self, Permission};
use crate::body::Progress;

/// Reason for a missing response.
pub(super) enum NoResponse {
    TimedOut,
    Failed(Failure),
}

/// Parameters of the wait.
pub(super) struct Waiting<'a> {
    pub(super) limit: Duration,
    pub(super) progress: Option<&'a Arc<Progress>>,
    /// Permission for the body, if the origin was asked with `Expect`.
    pub(super) permission: Option<&'a Permission>,
}

impl Waiting<'_> {
    /// Waits for the head of the response. The future is pinned by the caller, because moving it
    /// here would store and copy the request twice.
    pub(super) async fn for_head(
        self,
        mut response: Pin<&mut impl Future<Output = Result<UpstreamResponse, Failure>>>,
    ) -> Result<UpstreamResponse, NoResponse> {
        if let Some(permission) = self.permission {
            let wait = expect::CONTINUE_TIMEOUT.min(self.limit);
            if let Ok(result) = timeout(wait, response.as_mut()).await {
                return result.map_err(NoResponse::Failed);
            }
            permission.grant();
        }
        let mut seen = 0;
        loop {
            if let Ok(result) = timeout(self.limit, response.as_mut()).await {
                return result.map_err(NoResponse::Failed);
            }
            let Some(progress) = self.progress else {
                return Err(NoResponse::TimedOut);
            };
            if !progress.is_waiting() && progress.pieces() == seen {
                return Err(NoResponse::TimedOut);
            }
            seen = progress.pieces();
        }
    }
}
