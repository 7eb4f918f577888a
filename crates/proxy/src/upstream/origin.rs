//! Origin of one room: its connections, its health, its counters.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::upstream::counts::Counts;
use crate::upstream::health::Health;
use crate::upstream::pool::Pool;

/// Origin as one room sees it; rooms share only connections.
#[derive(Debug)]
pub(crate) struct Origin<B> {
    /// URL, such as `http://host:port`.
    pub(crate) url: String,
    pub(crate) pool: Arc<Pool<B>>,
    pub(crate) health: Mutex<Health>,
    /// Error of the last failed check or request.
    pub(crate) last_error: Mutex<Option<String>>,
    pub(crate) counts: Arc<Counts>,
}

impl<B> Origin<B> {
    pub(crate) fn new(url: String, pool: Arc<Pool<B>>) -> Self {
        Self {
            url,
            pool,
            health: Mutex::new(Health::new(Instant::now())),
            last_error: Mutex::new(None),
            counts: Arc::default(),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.counts.in_flight.load(Relaxed)
    }
}
