//! One origin of one room: its connections, its health, its counts.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::counts::Counts;
use crate::health::Health;
use crate::pool::Pool;

/// What the origin did with a request.
///
/// It is told of an answer's head; a body that breaks later is not seen here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It answered, with this status.
    Answered(StatusCode),
    /// No connection within `origin_connect`, or no TLS on it.
    ConnectFailed,
    /// No head of an answer within `origin_response`.
    TimedOut,
    /// It closed the connection, or what it said is not HTTP, or more than is taken.
    Broken,
}

impl Outcome {
    /// Names in the order of [`Outcome::index`].
    pub(crate) const NAMES: [&'static str; 5] = [
        "answered",
        "server_error",
        "connect_failed",
        "timed_out",
        "broken",
    ];

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Answered(status) if status.is_server_error() => 1,
            Self::Answered(_) => 0,
            Self::ConnectFailed => 2,
            Self::TimedOut => 3,
            Self::Broken => 4,
        }
    }

    /// Stable word for metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Whether it speaks for the origin.
    #[must_use]
    pub fn is_good(self) -> bool {
        self.index() == 0
    }
}

/// An origin, as one room sees it; rooms share connections and nothing else.
#[derive(Debug)]
pub(crate) struct Origin<B> {
    /// `http://host:port`.
    pub(crate) url: String,
    pub(crate) pool: Arc<Pool<B>>,
    pub(crate) health: Mutex<Health>,
    /// Why the last check or request failed.
    pub(crate) complaint: Mutex<Option<String>>,
    pub(crate) counts: Arc<Counts>,
}

impl<B> Origin<B> {
    pub(crate) fn new(url: String, pool: Arc<Pool<B>>) -> Self {
        Self {
            url,
            pool,
            health: Mutex::new(Health::new(Instant::now())),
            complaint: Mutex::new(None),
            counts: Arc::default(),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.counts.in_flight.load(Relaxed)
    }
}
