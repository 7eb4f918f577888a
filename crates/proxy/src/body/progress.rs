//! How does a request's body come along? Asked by the one who waits for the origin's answer.
//!
//! While the client is slow to send, the origin is not to blame; when the body fails, neither. And
//! what nobody waits for any more is let go here: a connection that cannot write does not let go of
//! it (hyper 1.12, `Dispatcher::poll_write` waits for room before it looks).

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use hyper::body::Incoming;
use parking_lot::Mutex;

use super::error::BodyError;
use crate::status::Refusal;

/// Shared between a body and who sent it off. Relaxed is enough: nothing is ordered by it, and who
/// reads it looks again later.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pieces: AtomicU64,
    is_waiting: AtomicBool,
    failure: AtomicU8,
    is_over: AtomicBool,
    /// What is read; `None` once nobody wants it any more.
    pub(super) incoming: Mutex<Option<Incoming>>,
}

const TOO_LARGE: u8 = 1;
const SLOW: u8 = 2;
const BROKEN: u8 = 3;

impl Progress {
    /// Of what will be read from here.
    pub(super) fn of(incoming: Incoming) -> Self {
        Self {
            incoming: Mutex::new(Some(incoming)),
            ..Self::default()
        }
    }

    /// Lets the body go, wherever it is; who reads it is told that it is not wanted.
    pub(crate) fn abandon(&self) {
        let incoming = self.incoming.lock().take();
        drop(incoming);
    }

    /// All of it went on to the origin.
    pub(super) fn finish(&self) {
        self.is_over.store(true, Relaxed);
        self.is_waiting.store(false, Relaxed);
    }

    /// Whether all of it went on to the origin.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Another piece went on to the origin.
    pub(super) fn advance(&self) {
        self.pieces.fetch_add(1, Relaxed);
        self.is_waiting.store(false, Relaxed);
    }

    /// The origin takes what comes, but nothing comes.
    pub(super) fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Relaxed);
    }

    /// The body ended early.
    pub(super) fn fail(&self, error: &BodyError) {
        let failure = match error {
            BodyError::TooLarge { .. } => TOO_LARGE,
            BodyError::Idle { .. } | BodyError::Slow { .. } => SLOW,
            BodyError::Broken(_) => BROKEN,
            // Nobody waits for an answer any more.
            BodyError::Unwanted => return,
        };
        self.failure.store(failure, Relaxed);
    }

    /// How many pieces went on so far.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces.load(Relaxed)
    }

    /// Whether it is the client that everybody waits for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Relaxed)
    }

    /// What to tell the client if its own body failed.
    pub(crate) fn failure(&self) -> Option<Refusal> {
        match self.failure.load(Relaxed) {
            TOO_LARGE => Some(Refusal::TooLarge),
            SLOW => Some(Refusal::RequestTimeOut),
            BROKEN => Some(Refusal::BadRequest),
            _ => None,
        }
    }
}
