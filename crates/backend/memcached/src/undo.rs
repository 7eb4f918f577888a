//! Undo of acquires whose requests are not admitted.
//!
//! Counts that stay would reject other requests, so the undo must not depend on the caller: callers
//! leave, and replies come late. A task of its own undoes an acquire, once, unless it is kept.
//!
//! Deliberately absent: requests that may or may not have been counted, because the connection
//! broke. They stay: undoing one that was not counted would admit one too many.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::protocol::Reply;

/// Counter of acquires that could not be undone. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NotRefunded(Arc<AtomicU64>);

impl NotRefunded {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Undo of an acquire, if it took place.
pub(crate) struct Undo {
    due_after: DueAfter,
    step: Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>,
    runtime: Handle,
    not_refunded: NotRefunded,
}

/// Reply of a server that has acquired. After any other there is nothing to undo.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DueAfter {
    /// The new number.
    Value,
    /// The state was written.
    Done,
}

impl fmt::Debug for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Undo({:?})", self.due_after)
    }
}

impl Undo {
    /// Creates an undo that runs `step` on the current runtime.
    pub(crate) fn new(
        due_after: DueAfter,
        not_refunded: &NotRefunded,
        step: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Self {
        Self {
            due_after,
            step: Box::pin(step),
            runtime: Handle::current(),
            not_refunded: not_refunded.clone(),
        }
    }

    /// Returns whether the reply shows that the server has acquired.
    pub(crate) const fn is_due_after(&self, reply: Option<&Reply>) -> bool {
        match self.due_after {
            DueAfter::Value => matches!(reply, Some(Reply::Value { .. })),
            DueAfter::Done => matches!(reply, Some(Reply::Done)),
        }
    }

    fn start(self) -> JoinHandle<()> {
        let Self {
            step,
            runtime,
            not_refunded,
            due_after: _,
        } = self;
        runtime.spawn(async move {
            if let Err(error) = step.await {
                // Clients can cause this at will, so it is counted and not logged above debug
                // level.
                not_refunded.0.fetch_add(1, Relaxed);
                tracing::debug!(%error, "cannot undo the count of a rejected request");
            }
        })
    }
}

/// Acquire that is undone when this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Acquired(Option<Undo>);

impl Acquired {
    pub(crate) const fn new(undo: Undo) -> Self {
        Self(Some(undo))
    }

    /// Keeps the acquire.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }

    /// Undoes the acquire now, even if the caller does not wait for the task.
    pub(crate) fn undo(mut self) -> Option<JoinHandle<()>> {
        self.0.take().map(Undo::start)
    }
}

impl Drop for Acquired {
    fn drop(&mut self) {
        if let Some(undo) = self.0.take() {
            undo.start();
        }
    }
}
