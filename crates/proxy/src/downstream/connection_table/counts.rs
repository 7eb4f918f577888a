//! How many connections are there, and of which kind? Read with each answer, without a lock.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::Instant;

/// From this part of the limit on, connections of those who wait are not kept, in percent.
const NEAR_PERCENT: usize = 70;
/// The part of the limit that only clients with a ticket may keep, in percent.
const RESERVE_PERCENT: usize = 10;
/// One spare place for so many connections: for those that are ending, and those that are turned
/// away. Fewer, and accepting pauses more often for connections that are just ending.
const SPARE_DIVISOR: usize = 64;
/// The least and the most of them; each may take one more descriptor.
const SPARE: (usize, usize) = (8, 1_024);

/// Of one table.
pub(crate) struct Counts {
    /// Times in the table are counted from here.
    pub(super) began: Instant,
    pub(super) limit: usize,
    pub(super) near: usize,
    pub(super) open: AtomicUsize,
    pub(super) with_ticket: AtomicUsize,
    /// Those with a request at an origin, and no ticket.
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

    /// Whether requests without a ticket hold more connections than they may. Of these none can be
    /// ended, so that they would take the reserve for as long as the origin takes.
    pub(super) fn is_reserve_taken(&self) -> bool {
        self.busy_without_ticket.load(Relaxed) > self.without_ticket_max()
    }

    /// How many there may be without a ticket.
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

/// A time on the table's clock, in milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
