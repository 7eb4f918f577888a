//! What has become of calls and requests so far?

use std::sync::atomic::{AtomicU64, Ordering};

/// What [`crate::lending::LeasedCounts`] has done since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseStats {
    /// Calls that were decided from what was held or known here, without waiting.
    pub decided_here: u64,
    /// Calls that waited for the store, whatever they were told then.
    pub asked: u64,
    /// Calls of which nobody could say what would become of them.
    pub undecided: u64,
    /// Requests to the store, those that went ahead of demand among them.
    pub requests: u64,
    /// Round trips to the store: one for a request that is answered in one step, or that lends
    /// nothing; otherwise two, and more if others were quicker; one a second to see the epoch.
    pub round_trips: u64,
    /// Requests that were lent something in one step at the store.
    pub steps: u64,
    /// Of those, such as the store answered otherwise than the program itself would have. Anything
    /// but zero is a mistake in the program.
    pub disagreements: u64,
    /// Requests that came to nothing because the store failed or was slow.
    pub failures: u64,
    /// Writes that came too late because somebody else had written first.
    pub conflicts: u64,
    /// Answers that lent something.
    pub grants: u64,
    /// Calls that were lent, by their cost.
    pub lent: u64,
    /// Of those, calls that were spent, less those that were undone.
    pub spent: u64,
    /// Of those, calls that can still be spent.
    pub held: u64,
    /// Records of clients that could not be read; all counted as spent.
    pub unreadable: u64,
    /// Epochs that this node began: after a loss, or in a new store.
    pub epochs_begun: u64,
    /// Calls that found no place for another client.
    pub crowded: u64,
    /// Clients that are known here at present.
    pub clients: u64,
}

impl LeaseStats {
    /// Calls that were lent and came to nothing, by their cost: their lease ended, or was too late
    /// to be of use. They are free again when their charge is over.
    #[must_use]
    pub fn forfeited(&self) -> u64 {
        self.lent
            .saturating_sub(self.spent)
            .saturating_sub(self.held)
    }
}

/// The same while it is counted.
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
    pub(crate) lent: Counter,
    pub(crate) spent: Counter,
    pub(crate) undone: Counter,
    pub(crate) unreadable: Counter,
    pub(crate) epochs_begun: Counter,
    pub(crate) crowded: Counter,
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
            asked: self.asked.value(),
            undecided: self.undecided.value(),
            requests: self.requests.value(),
            round_trips: self.round_trips.value(),
            steps: self.steps.value(),
            disagreements: self.disagreements.value(),
            failures: self.failures.value(),
            conflicts: self.conflicts.value(),
            grants: self.grants.value(),
            lent: self.lent.value(),
            spent: self.spent.value().saturating_sub(self.undone.value()),
            held,
            unreadable: self.unreadable.value(),
            epochs_begun: self.epochs_begun.value(),
            crowded: self.crowded.value(),
            clients,
        }
    }
}
