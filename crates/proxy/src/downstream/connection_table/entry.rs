//! One connection of the table: is it idle, has it a ticket, must it end?

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::address::Network;
use super::counts::{Counts, millis};
use crate::downstream::observer::TurnedAway;

/// The connection does not count any more.
const GONE: u32 = 1;
/// Its newest request was let pass by a ticket, or a trusted proxy speaks by it.
const TICKET: u32 = 2;
/// One request on its way to an origin, or not decided about.
const REQUEST: u32 = 4;

/// What a connection was taken in as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    Ordinary,
    /// Stays only with a ticket.
    Reserve,
    /// Gets a refusal.
    TurnedAway(TurnedAway),
}

/// See the top of this file.
pub(crate) struct Entry {
    counts: Arc<Counts>,
    standing: Standing,
    is_proxy: bool,
    network: Option<Network>,
    /// Milliseconds on the table's clock; counts while no request is open.
    idle_since: AtomicU64,
    /// [`GONE`], [`TICKET`], and the number of requests times [`REQUEST`].
    state: AtomicU32,
    end: Notify,
}

impl Entry {
    pub(super) fn new(
        counts: &Arc<Counts>,
        standing: Standing,
        is_proxy: bool,
        network: Option<Network>,
    ) -> Self {
        if !matches!(standing, Standing::TurnedAway(_)) {
            counts.open.fetch_add(1, Relaxed);
            if is_proxy {
                counts.with_ticket.fetch_add(1, Relaxed);
            }
        }
        Self {
            counts: Arc::clone(counts),
            standing,
            is_proxy,
            network,
            idle_since: AtomicU64::new(millis(counts.began.elapsed())),
            state: AtomicU32::new(if is_proxy { TICKET } else { 0 }),
            end: Notify::new(),
        }
    }

    pub(crate) const fn standing(&self) -> Standing {
        self.standing
    }

    pub(super) const fn network(&self) -> Option<Network> {
        self.network
    }

    /// A request begins.
    pub(crate) fn begin(&self) {
        let before = self.state.fetch_add(REQUEST, AcqRel);
        if before < REQUEST && before & TICKET == 0 {
            self.counts.busy_without_ticket.fetch_add(1, Relaxed);
        }
    }

    /// A request needs its connection no more, for the sake of an origin.
    pub(crate) fn finish(&self, now: Instant) {
        // The last one leaves the time; whoever sees that nothing is open sees it, too.
        let now = now.duration_since(self.counts.began);
        self.idle_since.store(millis(now), Relaxed);
        let before = self.state.fetch_sub(REQUEST, AcqRel);
        if before < 2 * REQUEST && before & TICKET == 0 {
            self.counts.busy_without_ticket.fetch_sub(1, Relaxed);
        }
    }

    /// Whether an origin, or a decision, is waited for.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.load(Acquire) >= REQUEST
    }

    pub(super) fn is_gone(&self) -> bool {
        self.state.load(Acquire) & GONE != 0
    }

    pub(super) fn has_ticket(&self) -> bool {
        self.state.load(Relaxed) & TICKET != 0
    }

    /// Since when it is idle; `None` if it is not.
    pub(super) fn idle_since(&self) -> Option<u64> {
        (!self.is_busy()).then(|| self.idle_since.load(Relaxed))
    }

    /// Stops counting; whether it did before.
    pub(super) fn leave(&self) -> bool {
        let before = self.state.fetch_or(GONE, AcqRel);
        if before & GONE != 0 {
            return false;
        }
        if !matches!(self.standing, Standing::TurnedAway(_)) {
            self.counts.open.fetch_sub(1, Relaxed);
            if before & TICKET != 0 {
                self.counts.with_ticket.fetch_sub(1, Relaxed);
            }
        }
        true
    }

    /// Tells the connection to end.
    pub(super) fn end(&self) {
        self.end.notify_one();
    }

    /// Resolves when it must end.
    pub(crate) async fn ended(&self) {
        self.end.notified().await;
    }

    /// Whether an answer that comes from no origin is the last one of its connection.
    pub(crate) fn closes_with_own_answer(&self) -> bool {
        !self.has_ticket() && (self.standing != Standing::Ordinary || self.counts.is_near())
    }

    fn set_ticket(&self, has_ticket: bool) {
        // Most requests find what they say; looking is cheaper than writing.
        if self.is_proxy || self.has_ticket() == has_ticket {
            return;
        }
        let before = if has_ticket {
            self.state.fetch_or(TICKET, AcqRel)
        } else {
            self.state.fetch_and(!TICKET, AcqRel)
        };
        let has_changed = (before & TICKET != 0) != has_ticket;
        if has_changed && before >= REQUEST {
            let count = &self.counts.busy_without_ticket;
            if has_ticket {
                count.fetch_sub(1, Relaxed);
            } else {
                count.fetch_add(1, Relaxed);
            }
        }
        let is_counted = before & GONE == 0 && !matches!(self.standing, Standing::TurnedAway(_));
        if is_counted && has_changed {
            let count = &self.counts.with_ticket;
            if has_ticket {
                count.fetch_add(1, Relaxed);
            } else {
                count.fetch_sub(1, Relaxed);
            }
        }
    }
}

/// What a request may say about its connection, and is told about it.
#[derive(Clone)]
pub struct Claim(pub(crate) Arc<Entry>);

impl Claim {
    /// Says whether the request was let pass by a ticket, or is told to wait.
    pub fn set_ticket(&self, has_ticket: bool) {
        self.0.set_ticket(has_ticket);
    }

    /// Whether only a request with a ticket may go on to an origin: the rest of the connections is
    /// used up.
    #[must_use]
    pub fn needs_ticket(&self) -> bool {
        let entry = &self.0;
        let is_short = entry.standing != Standing::Ordinary || entry.counts.is_reserve_taken();
        is_short && !entry.has_ticket()
    }

    /// Why each request by this connection is refused; `None` if it is not.
    #[must_use]
    pub fn turned_away(&self) -> Option<TurnedAway> {
        match self.0.standing {
            Standing::TurnedAway(why) => Some(why),
            Standing::Ordinary | Standing::Reserve => None,
        }
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claim({:?})", self.0.standing)
    }
}
