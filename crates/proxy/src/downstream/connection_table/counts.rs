//! Counts of connections by kind, which every response reads without a lock.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::Instant;

/// Percentage of the limit from which connections of waiting visitors are not kept.
const NEAR_PERCENT: usize = 70;
/// Percentage of the limit that only clients with a ticket may use.
const RESERVE_PERCENT: usize = 10;
/// Connections per spare slot. Spare slots are for connections that are closing or turned away.
/// With fewer, accepting pauses more often for connections that are just closing.
const SPARE_DIVISOR: usize = 64;
/// Minimum and maximum number of spare slots; each may take one more file descriptor.
const SPARE: (usize, usize) = (8, 1_024);

/// Counts of one table.
pub(crate) struct Counts {
    /// Zero of the table's clock.
    pub(super) began: Instant,
    pub(super) limit: usize,
    pub(super) near: usize,
    pub(super) open: AtomicUsize,
    pub(super) with_ticket: AtomicUsize,
    /// Connections with a request at an origin and without a ticket.
    pub(super) busy_without_ticket: AtomicUsize,
}

impl Counts {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            began: Instant::now(),
            limit,
            near: limit.saturating_mul(NEAR_PERCENT).div_ceil(100),
            open: AtomicUsize::new(0),
            with_ticket: AtomicUsize::new(0),
            busy_without_ticket: AtomicUsize::new(0),
        }
    }

    pub(super) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    pub(super) fn without_ticket(&self) -> usize {
        self.open().saturating_sub(self.with_ticket.load(Relaxed))
    }

    /// Whether requests without a ticket use more connections than they may. These connections
    /// cannot be closed, so they would use the reserve for as long as the origin takes.
    pub(super) fn is_reserve_taken(&self) -> bool {
        self.busy_without_ticket.load(Relaxed) > self.without_ticket_max()
    }

    /// Returns the limit on connections without a ticket.
    pub(super) const fn without_ticket_max(&self) -> usize {
        self.limit - self.limit * RESERVE_PERCENT / 100
    }

    pub(super) fn spare(&self) -> usize {
        (self.limit / SPARE_DIVISOR).clamp(SPARE.0, SPARE.1)
    }

    pub(super) fn is_near(&self) -> bool {
        self.open() >= self.near
    }
}

/// Converts a time on the table's clock to milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
