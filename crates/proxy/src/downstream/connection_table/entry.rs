//! State of one connection in the table: idle or busy, ticket, closing.

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::address::Network;
use super::counts::{Counts, millis};
use crate::downstream::observer::TurnedAway;

/// Flag: the connection no longer counts.
const GONE: u32 = 1;
/// Flag: the newest request passed by a ticket, or the peer is a trusted proxy.
const TICKET: u32 = 2;
/// Unit of the request count: one request on its way to an origin, or undecided.
const REQUEST: u32 = 4;

/// Admission class of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    Ordinary,
    /// Connection of the reserve, which stays only with a ticket.
    Reserve,
    /// Connection that gets only an error response.
    TurnedAway(TurnedAway),
}

/// State of one connection.
pub(crate) struct Entry {
    counts: Arc<Counts>,
    standing: Standing,
    is_proxy: bool,
    network: Option<Network>,
    /// Start of the idle time, in milliseconds on the table's clock; valid while no request is
    /// open.
    idle_since: AtomicU64,
    /// Flags [`GONE`] and [`TICKET`], and the number of requests times [`REQUEST`].
    state: AtomicU32,
    /// Number of requests for which the connection ends when the client hangs up.
    hang_up_watches: AtomicU32,
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
            hang_up_watches: AtomicU32::new(0),
            end: Notify::new(),
        }
    }

    pub(crate) const fn standing(&self) -> Standing {
        self.standing
    }

    pub(super) const fn network(&self) -> Option<Network> {
        self.network
    }

    /// Counts a request that begins.
    pub(crate) fn begin(&self) {
        let before = self.state.fetch_add(REQUEST, AcqRel);
        if before < REQUEST && before & TICKET == 0 {
            self.counts.busy_without_ticket.fetch_add(1, Relaxed);
        }
    }

    /// Counts a request that no longer waits for an origin.
    pub(crate) fn finish(&self, now: Instant) {
        // Store the time before the count drops to zero, so that a reader who sees no open request
        // also sees the time.
        let now = now.duration_since(self.counts.began);
        self.idle_since.store(millis(now), Relaxed);
        let before = self.state.fetch_sub(REQUEST, AcqRel);
        if before < 2 * REQUEST && before & TICKET == 0 {
            self.counts.busy_without_ticket.fetch_sub(1, Relaxed);
        }
    }

    /// Whether a request waits for an origin or for a decision.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.load(Acquire) >= REQUEST
    }

    pub(super) fn is_gone(&self) -> bool {
        self.state.load(Acquire) & GONE != 0
    }

    pub(super) fn has_ticket(&self) -> bool {
        self.state.load(Relaxed) & TICKET != 0
    }

    /// Returns the start of the idle time; `None` if it is not idle.
    pub(super) fn idle_since(&self) -> Option<u64> {
        (!self.is_busy()).then(|| self.idle_since.load(Relaxed))
    }

    /// Stops counting the connection. Returns whether it counted before.
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

    /// Signals the connection to close.
    pub(super) fn end(&self) {
        self.end.notify_one();
    }

    /// Resolves when the connection must close.
    pub(crate) async fn ended(&self) {
        self.end.notified().await;
    }

    /// Whether the connection ends when the client hangs up.
    pub(crate) fn ends_with_client(&self) -> bool {
        self.hang_up_watches.load(Relaxed) > 0
    }

    /// Whether a response of the gateway itself is the last one of this connection.
    pub(crate) fn closes_with_own_answer(&self) -> bool {
        !self.has_ticket() && (self.standing != Standing::Ordinary || self.counts.is_near())
    }

    fn set_ticket(&self, has_ticket: bool) {
        // Most requests do not change the flag, and a load is cheaper than a store.
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

/// Handle of a request to the state of its connection.
#[derive(Clone)]
pub struct Claim(pub(crate) Arc<Entry>);

impl Claim {
    /// Records whether the request passed by a ticket.
    pub fn set_ticket(&self, has_ticket: bool) {
        self.0.set_ticket(has_ticket);
    }

    /// Whether only a request with a ticket may go to an origin, because all other connections are
    /// in use.
    #[must_use]
    pub fn needs_ticket(&self) -> bool {
        let entry = &self.0;
        let is_short = entry.standing != Standing::Ordinary || entry.counts.is_reserve_taken();
        is_short && !entry.has_ticket()
    }

    /// Ends the connection if the client hangs up while the result lives. Otherwise it gets the
    /// response even if it has shut down its side, as clients of HTTP/1.1 may.
    #[must_use]
    pub fn watch_hang_up(&self) -> HangUpWatch {
        self.0.hang_up_watches.fetch_add(1, Relaxed);
        HangUpWatch(Arc::clone(&self.0))
    }

    /// Returns the reason to reject every request of this connection; `None` if there is none.
    #[must_use]
    pub fn turned_away(&self) -> Option<TurnedAway> {
        match self.0.standing {
            Standing::TurnedAway(reason) => Some(reason),
            Standing::Ordinary | Standing::Reserve => None,
        }
    }
}

/// Watch over a client that may hang up.
pub struct HangUpWatch(Arc<Entry>);

impl Drop for HangUpWatch {
    fn drop(&mut self) {
        self.0.hang_up_watches.fetch_sub(1, Relaxed);
    }
}

impl std::fmt::Debug for HangUpWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HangUpWatch({:?})", self.0.standing)
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claim({:?})", self.0.standing)
    }
}
