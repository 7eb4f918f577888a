//! Counters of verdicts and of outcomes of origins, by room, for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_config::RoomName;
use parking_lot::Mutex;

use super::verdict::Verdict;
use anteroom_proxy::reverse_proxy::OriginOutcome;
use anteroom_proxy::striped_counts::StripedCounts;

/// Counters of one room. They never fall, and survive reloads.
#[derive(Debug, Default)]
pub(super) struct RoomCounters {
    verdicts: StripedCounts<{ Verdict::ALL.len() }>,
    outcomes: StripedCounts<{ OriginOutcome::NAMES.len() }>,
    shared_tickets: AtomicU64,
    without_ticket: AtomicU64,
}

/// Counts of shared tickets and of requests with them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SharedTicketCounts {
    /// Tickets that were used from too many networks within a window.
    pub tickets: u64,
    /// Requests that were treated as without a ticket for that reason.
    pub requests: u64,
}

/// Counters of all rooms since the start, removed rooms included.
#[derive(Debug, Default)]
pub(super) struct Counters {
    rooms: Mutex<BTreeMap<RoomName, Arc<RoomCounters>>>,
}

/// Counts by room and by a fixed word.
pub type CountsByRoom = BTreeMap<(RoomName, &'static str), u64>;

impl RoomCounters {
    pub(super) fn count_verdict(&self, verdict: Verdict) {
        if let Some(at) = Verdict::ALL.iter().position(|each| *each == verdict) {
            self.verdicts.add(at, 1);
        }
    }

    pub(super) fn count_outcome(&self, outcome: OriginOutcome) {
        self.outcomes.add(outcome.index(), 1);
    }

    pub(super) fn count_shared_ticket(&self) {
        self.shared_tickets.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_without_ticket(&self) {
        self.without_ticket.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counters {
    /// Returns the counters of a room, which it creates on first use.
    pub(super) fn of(&self, room: &RoomName) -> Arc<RoomCounters> {
        Arc::clone(self.rooms.lock().entry(room.clone()).or_default())
    }

    pub(super) fn verdicts(&self) -> CountsByRoom {
        let names = Verdict::ALL.map(Verdict::name);
        self.read(names, |counters| counters.verdicts.read())
    }

    pub(super) fn outcomes(&self) -> CountsByRoom {
        self.read(OriginOutcome::NAMES, |counters| counters.outcomes.read())
    }

    pub(super) fn shared_tickets(&self) -> BTreeMap<RoomName, SharedTicketCounts> {
        let rooms = self.rooms.lock();
        let counts = rooms.iter().map(|(room, counters)| {
            let counts = SharedTicketCounts {
                tickets: counters.shared_tickets.load(Ordering::Relaxed),
                requests: counters.without_ticket.load(Ordering::Relaxed),
            };
            (room.clone(), counts)
        });
        counts.collect()
    }

    fn read<const N: usize>(
        &self,
        names: [&'static str; N],
        counts: impl Fn(&RoomCounters) -> [u64; N],
    ) -> CountsByRoom {
        let mut all = CountsByRoom::new();
        for (room, counters) in &*self.rooms.lock() {
            for (name, count) in names.iter().zip(counts(counters)) {
                all.insert((room.clone(), *name), count);
            }
        }
        all
    }
}
