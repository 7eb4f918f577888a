//! Progress of a request's body, for the task that waits for the origin's response.
//!
//! While the client is slow to send, or when its body fails, the origin is not to blame. A body
//! that is no longer needed is also dropped here. A connection that cannot write does not drop it:
//! hyper 1.12 waits for room first (`Dispatcher::poll_write`).

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use hyper::body::Incoming;
use parking_lot::Mutex;

use super::error::BodyError;
use crate::status::RequestError;

/// State shared between a body and the task that sent it. Relaxed ordering is enough: no other
/// memory depends on it, and readers poll again.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pieces: AtomicU64,
    is_waiting: AtomicBool,
    failure: AtomicU8,
    is_over: AtomicBool,
    /// Source of the body; `None` once it is no longer needed.
    pub(super) incoming: Mutex<Option<Incoming>>,
}

const TOO_LARGE: u8 = 1;
const SLOW: u8 = 2;
const BROKEN: u8 = 3;

impl Progress {
    /// Creates the progress of a body that is read from here.
    pub(super) fn of(incoming: Incoming) -> Self {
        Self {
            incoming: Mutex::new(Some(incoming)),
            ..Self::default()
        }
    }

    /// Drops the body; its reader gets [`BodyError::Unwanted`].
    pub(crate) fn abandon(&self) {
        let incoming = self.incoming.lock().take();
        drop(incoming);
    }

    /// Marks the body as sent to the origin.
    pub(super) fn finish(&self) {
        self.is_over.store(true, Relaxed);
        self.is_waiting.store(false, Relaxed);
    }

    /// Whether the whole body was sent to the origin.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Counts a piece that was sent to the origin.
    pub(super) fn advance(&self) {
        self.pieces.fetch_add(1, Relaxed);
        self.is_waiting.store(false, Relaxed);
    }

    /// Sets whether the origin waits for data of the client.
    pub(super) fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Relaxed);
    }

    /// Records the error with which the body ended.
    pub(super) fn fail(&self, error: &BodyError) {
        let failure = match error {
            BodyError::TooLarge { .. } => TOO_LARGE,
            BodyError::Idle { .. } | BodyError::Slow { .. } => SLOW,
            BodyError::Broken(_) => BROKEN,
            // The response is there already.
            BodyError::Unwanted => return,
        };
        self.failure.store(failure, Relaxed);
    }

    /// Returns the number of pieces sent so far.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces.load(Relaxed)
    }

    /// Whether the client is the side that has to send.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Relaxed)
    }

    /// Returns the error response to the client if its own body failed.
    pub(crate) fn failure(&self) -> Option<RequestError> {
        match self.failure.load(Relaxed) {
            TOO_LARGE => Some(RequestError::TooLarge),
            SLOW => Some(RequestError::RequestTimeOut),
            BROKEN => Some(RequestError::BadRequest),
            _ => None,
        }
    }
}
