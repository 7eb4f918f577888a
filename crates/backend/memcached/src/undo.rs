//! How is a call taken back that was charged and does not go through?
//!
//! Others are rejected for what stays charged, so that must not hang on whoever asked: callers
//! leave, and answers come late. What was charged is taken back by a task of its own, once, unless
//! somebody says that it is to stay.
//!
//! Deliberately absent: a call of which nobody knows whether it was charged, because its connection
//! broke. It is left as it is: to take back what was not charged would admit one too many.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::protocol::Reply;

/// How often something stayed charged that should not have. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NotRefunded(Arc<AtomicU64>);

impl NotRefunded {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What takes a charge back, if it was one.
pub(crate) struct Undo {
    due_after: DueAfter,
    step: Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>,
    runtime: Handle,
    stayed: NotRefunded,
}

/// What a server answers that has charged. After anything else there is nothing to take back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DueAfter {
    /// The number to which was added.
    Value,
    /// That the state was written.
    Done,
}

impl fmt::Debug for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Undo({:?})", self.due_after)
    }
}

impl Undo {
    /// `step` takes the charge back; it runs where this is called.
    pub(crate) fn new(
        due_after: DueAfter,
        stayed: &NotRefunded,
        step: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Self {
        Self {
            due_after,
            step: Box::pin(step),
            runtime: Handle::current(),
            stayed: stayed.clone(),
        }
    }

    /// Whether that is what a server answers that has charged.
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
            stayed,
            due_after: _,
        } = self;
        runtime.spawn(async move {
            if let Err(error) = step.await {
                // Callers can bring this about as often as they call, so it is counted and no line
                // in a log.
                stayed.0.fetch_add(1, Relaxed);
                tracing::debug!(%error, "a call that does not go through stays charged");
            }
        })
    }
}

/// Something that was charged. It is taken back when this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Acquired(Option<Undo>);

impl Acquired {
    pub(crate) const fn new(undo: Undo) -> Self {
        Self(Some(undo))
    }

    /// It stays charged.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }

    /// Takes it back now. Whoever does not wait for that changes nothing.
    pub(crate) fn take_back(mut self) -> Option<JoinHandle<()>> {
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
