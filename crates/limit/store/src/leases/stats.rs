//! Statistics of requests and leases.

use std::sync::atomic::{AtomicU64, Ordering};

/// Statistics of [`crate::leases::LeasedCounts`] since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseStats {
    /// Client requests that were decided locally, without waiting.
    pub decided_here: u64,
    /// Client requests that waited for the store, whatever the verdict.
    pub waited: u64,
    /// Client requests without a verdict.
    pub undecided: u64,
    /// Lease requests to the store, including those ahead of demand.
    pub requests: u64,
    /// Round trips to the store: one for a request that is granted in one step, or nothing;
    /// otherwise two, and more if other nodes write first; one a second to watch the epoch.
    pub round_trips: u64,
    /// Lease requests that were granted in one step.
    pub steps: u64,
    /// Steps in which store and node disagree about the grant. Anything but zero is a defect of the
    /// program.
    pub disagreements: u64,
    /// Lease requests that failed: the store failed or was slow.
    pub failures: u64,
    /// Writes that lost against another node's write.
    pub conflicts: u64,
    /// Replies that granted a lease.
    pub grants: u64,
    /// Cost that was granted.
    pub granted: u64,
    /// Granted cost that was spent, less refunds.
    pub spent: u64,
    /// Granted cost that can still be spent.
    pub held: u64,
    /// Client records that could not be read; all count as used up.
    pub unreadable: u64,
    /// Epochs that this node began: after a loss, or in a new store.
    pub epochs_begun: u64,
    /// Granted cost that this node restored in stores that came back without it.
    pub restored: u64,
    /// Client requests that found no room for another client.
    pub overflows: u64,
    /// Clients that are known now.
    pub clients: u64,
}

impl LeaseStats {
    /// Returns the granted cost that was lost: its lease ended, or came too late. It is free again
    /// when the limit's window has passed.
    #[must_use]
    pub fn forfeited(&self) -> u64 {
        self.granted
            .saturating_sub(self.spent)
            .saturating_sub(self.held)
    }
}

/// Counters behind [`LeaseStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) decided_here: Counter,
    pub(crate) asked: Counter,
    pub(crate) undecided: Counter,
    pub(crate) requests: Counter,
    pub(crate) round_trips: Counter,
    pub(crate) steps: Counter,
    pub(crate) disagreements: Counter,
    pub(crate) failures: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) grants: Counter,
    pub(crate) granted: Counter,
    pub(crate) spent: Counter,
    pub(crate) undone: Counter,
    pub(crate) unreadable: Counter,
    pub(crate) epochs_begun: Counter,
    pub(crate) restored: Counter,
    pub(crate) overflows: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u32) {
        self.0.fetch_add(u64::from(count), Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn stats(&self, clients: u64, held: u64) -> LeaseStats {
        LeaseStats {
            decided_here: self.decided_here.value(),
            waited: self.asked.value(),
            undecided: self.undecided.value(),
            requests: self.requests.value(),
            round_trips: self.round_trips.value(),
            steps: self.steps.value(),
            disagreements: self.disagreements.value(),
            failures: self.failures.value(),
            conflicts: self.conflicts.value(),
            grants: self.grants.value(),
            granted: self.granted.value(),
            spent: self.spent.value().saturating_sub(self.undone.value()),
            held,
            unreadable: self.unreadable.value(),
            epochs_begun: self.epochs_begun.value(),
            restored: self.restored.value(),
            overflows: self.overflows.value(),
            clients,
        }
    }
}
