//! How long may the origin take until the head of its answer?
//!
//! Without a request body: `origin_response` from the moment it was sent off, connecting included.
//! With one, the time runs from the last piece that the origin took, and stands still while the
//! client has nothing to send; the body's own idle time-out watches the client. So an upload may
//! take hours, and a dead origin is noticed after one time-out, at most two.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::upstream::{Answer, Failure};
use tokio::time::timeout;

use super::expect::{self, Permission};
use crate::body::Progress;

/// Why there is no answer.
pub(super) enum NoAnswer {
    TimedOut,
    Failed(Failure),
}

/// What is waited for.
pub(super) struct Waiting<'a> {
    pub(super) limit: Duration,
    pub(super) progress: Option<&'a Arc<Progress>>,
    /// The origin has been asked whether the body may come.
    pub(super) permission: Option<&'a Permission>,
}

impl Waiting<'_> {
    /// Waits for the head of the answer, where it is: taken over, a request on its way would be
    /// held, and moved, twice.
    pub(super) async fn for_head(
        self,
        mut answer: Pin<&mut impl Future<Output = Result<Answer, Failure>>>,
    ) -> Result<Answer, NoAnswer> {
        if let Some(permission) = self.permission {
            let patience = expect::PATIENCE.min(self.limit);
            if let Ok(answered) = timeout(patience, answer.as_mut()).await {
                return answered.map_err(NoAnswer::Failed);
            }
            permission.grant();
        }
        let mut seen = 0;
        loop {
            if let Ok(answered) = timeout(self.limit, answer.as_mut()).await {
                return answered.map_err(NoAnswer::Failed);
            }
            let Some(progress) = self.progress else {
                return Err(NoAnswer::TimedOut);
            };
            if !progress.is_waiting() && progress.pieces() == seen {
                return Err(NoAnswer::TimedOut);
            }
            seen = progress.pieces();
        }
    }
}
