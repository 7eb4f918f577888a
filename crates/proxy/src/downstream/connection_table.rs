//! Table of open connections; it closes one when there is no room for another.
//!
//! Waiting visitors keep their connections open, and so do sockets that never send anything. A full
//! table must not mean that clients get no response. A connection is *idle* while no request of it
//! is on its way to an origin: slow handshakes, slow heads, keep-alive connections and the
//! gateway's own responses all count as idle. Idle connections can be closed, the longest idle one
//! first.
//!
//! | connections open | a new connection | our own response to a client without a ticket |
//! | --- | --- | --- |
//! | below 70 % | is accepted | keeps its connection |
//! | from 70 % | closes the longest idle one that is idle for a second | closes its connection |
//! | from 90 % without a ticket | closes the longest idle one, or uses the reserve | the same |
//! | all | the same; then the longest idle one with a ticket; then it is turned away | the same |
//!
//! A connection *has a ticket* if its newest request passed by one. Such connections do not count
//! towards the 90 %, and close last. A connection of the reserve stays only if it has a ticket.
//! While requests without a ticket keep 90 % busy, no further one goes to an origin. A connection
//! that is turned away still gets a short error response, in one of a few spare slots.
//!
//! Each client address has its own limit, and its longest idle connection closes first. Trusted
//! proxies carry many clients: they have no such limit, and count as having a ticket.
//!
//! Modelled on Envoy's overload manager and nginx's reuse of idle connections.

mod address;
mod counts;
mod entry;
mod idle;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use ipnet::IpNet;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;

use crate::downstream::observer::{ConnectionObserver, Reclaimed, TurnedAway};
use address::Network;
use counts::Counts;
pub use entry::{Claim, HangUpWatch};
pub(crate) use entry::{Entry, Standing};
use idle::{Class, Idle};

/// Time for which a new connection stays open while there is room: about a handshake on a slow
/// mobile network and the first request. If it is longer, a burst of clients fills the reserve.
const SETTLED: Duration = Duration::from_secs(1);
/// Minimum interval between two equal warnings.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// Limits on connections.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Maximum number of open connections; at least 1.
    pub connections: usize,
    /// Maximum number from one client address (IPv6: one /64 network); 0 means no limit.
    pub per_address: usize,
    /// Networks of proxies whose connections carry many clients.
    pub trusted_proxies: Vec<IpNet>,
}

/// Open connections of all listeners that share the table.
#[derive(Clone)]
pub struct ConnectionTable {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for ConnectionTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = &self.shared.counts;
        write!(f, "ConnectionTable({} of {})", counts.open(), counts.limit)
    }
}

/// Occupancy of the table.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Occupancy {
    /// Connections that are open and not about to end.
    pub open: usize,
    /// Open connections with a ticket.
    pub with_ticket: usize,
    /// Limit on open connections.
    pub limit: usize,
    /// Number of open connections from which those of waiting visitors are closed.
    pub near: usize,
}

struct Shared {
    counts: Arc<Counts>,
    per_address: usize,
    trusted_proxies: Vec<IpNet>,
    /// Sockets, including those that are closing or are turned away.
    sockets: AtomicUsize,
    freed: Notify,
    state: Mutex<TableState>,
}

#[derive(Default)]
struct TableState {
    idle: Idle,
    turned_away: Idle,
    turned_away_count: usize,
    addresses: HashMap<Network, Address>,
    near_warned_at: Option<Instant>,
    full_warned_at: Option<Instant>,
    address_warned_at: Option<Instant>,
}

#[derive(Default)]
struct Address {
    count: usize,
    idle: Idle,
}

impl ConnectionTable {
    /// Creates an empty table.
    #[must_use]
    pub fn new(limits: ConnectionLimits) -> Self {
        // Below this no counter overflows, and no machine has as many sockets.
        let limit = limits.connections.clamp(1, usize::MAX / 1_000);
        let per_address = match limits.per_address {
            0 => usize::MAX,
            some => some,
        };
        Self {
            shared: Arc::new(Shared {
                counts: Arc::new(Counts::new(limit)),
                per_address,
                trusted_proxies: limits.trusted_proxies,
                sockets: AtomicUsize::new(0),
                freed: Notify::new(),
                state: Mutex::default(),
            }),
        }
    }

    /// Creates a table for so many connections, from any address.
    #[must_use]
    pub fn with_limit(connections: usize) -> Self {
        Self::new(ConnectionLimits {
            connections,
            per_address: 0,
            trusted_proxies: Vec::new(),
        })
    }

    /// Returns the present occupancy.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        let counts = &self.shared.counts;
        Occupancy {
            open: counts.open(),
            with_ticket: counts.with_ticket.load(Relaxed),
            limit: counts.limit,
            near: counts.near,
        }
    }

    /// Waits until no connection is left.
    pub(crate) async fn all_free(&self) {
        self.until(|sockets| sockets == 0).await;
    }

    /// Waits until one more socket may be accepted: only for connections that are closing.
    pub(crate) async fn accept_ready(&self, observer: &dyn ConnectionObserver) {
        let counts = &self.shared.counts;
        let most = counts.limit + counts.spare();
        if self.shared.sockets.load(Relaxed) < most {
            return;
        }
        observer.accept_paused();
        self.until(|sockets| sockets < most).await;
    }

    async fn until(&self, condition: impl Fn(usize) -> bool) {
        loop {
            let mut freed = pin!(self.shared.freed.notified());
            freed.as_mut().enable();
            if condition(self.shared.sockets.load(Relaxed)) {
                return;
            }
            freed.await;
        }
    }

    /// Adds a connection from `peer`, and closes another one if there is no room for both.
    pub(crate) fn admit(
        &self,
        peer: SocketAddr,
        observer: &dyn ConnectionObserver,
    ) -> ConnectionSlot {
        let shared = &self.shared;
        shared.sockets.fetch_add(1, Relaxed);
        let ip = peer.ip().to_canonical();
        let is_proxy = shared.is_proxy(ip);
        let network = (!is_proxy).then(|| Network::of(ip));
        let now = shared.counts.began.elapsed();
        let mut state = shared.state.lock();
        let mut search = RoomSearch {
            shared,
            observer,
            now,
            network,
        };
        let standing = search.standing(&mut state);
        let entry = Arc::new(Entry::new(&shared.counts, standing, is_proxy, network));
        state.add(&entry, now, shared.counts.open());
        drop(state);
        if let Standing::TurnedAway(reason) = standing {
            observer.turned_away(reason);
        }
        ConnectionSlot {
            entry,
            shared: Arc::clone(shared),
        }
    }
}

impl Shared {
    fn is_proxy(&self, ip: IpAddr) -> bool {
        let mut networks = self.trusted_proxies.iter();
        networks.any(|network| network.contains(&ip))
    }
}

/// Search for room for one connection.
struct RoomSearch<'a> {
    shared: &'a Shared,
    observer: &'a dyn ConnectionObserver,
    now: Duration,
    network: Option<Network>,
}

impl RoomSearch<'_> {
    fn standing(&mut self, state: &mut TableState) -> Standing {
        if !self.room_in_address(state) {
            self.room_to_turn_away(state);
            return Standing::TurnedAway(TurnedAway::Address);
        }
        let counts = &self.shared.counts;
        let open = counts.open();
        if open < counts.near {
            return Standing::Ordinary;
        }
        let is_full = open >= counts.limit;
        let is_reserve = counts.without_ticket() >= counts.without_ticket_max();
        self.warn(state, is_full || is_reserve);
        let settled = if is_full || is_reserve {
            Duration::ZERO
        } else {
            SETTLED
        };
        if let Some(found) = state.idle.longest(Class::Ordinary, self.now, settled) {
            self.reclaim(state, &found, Reclaimed::Full);
            return Standing::Ordinary;
        }
        if is_full {
            let found = state
                .idle
                .longest(Class::WithTicket, self.now, Duration::ZERO);
            let Some(found) = found else {
                self.room_to_turn_away(state);
                return Standing::TurnedAway(TurnedAway::Full);
            };
            self.reclaim(state, &found, Reclaimed::Full);
        }
        if is_reserve {
            Standing::Reserve
        } else {
            Standing::Ordinary
        }
    }

    /// Whether the client's address may have one more connection, perhaps after an older one is
    /// closed.
    fn room_in_address(&self, state: &mut TableState) -> bool {
        let Some(network) = self.network else {
            return true;
        };
        let Some(address) = state.addresses.get_mut(&network) else {
            return true;
        };
        if address.count < self.shared.per_address {
            return true;
        }
        let mut found = None;
        for class in [Class::Ordinary, Class::WithTicket] {
            found = found.or_else(|| address.idle.longest(class, self.now, Duration::ZERO));
        }
        if is_due(&mut state.address_warned_at) {
            warn!(
                address = %network,
                connections_per_address = self.shared.per_address,
                "one address has reached its limit of connections; its longest idle ones close \
                 first. If it is a proxy or a load balancer, name it in trusted_proxies, or set \
                 size_limits.connections_per_address to 0"
            );
        }
        let Some(found) = found else {
            return false;
        };
        self.reclaim(state, &found, Reclaimed::Address);
        true
    }

    /// Makes room among the connections that are turned away: the oldest closes.
    fn room_to_turn_away(&self, state: &mut TableState) {
        let counts = &self.shared.counts;
        if state.turned_away_count < counts.spare() / 2 {
            return;
        }
        let oldest = state
            .turned_away
            .longest(Class::Ordinary, self.now, Duration::ZERO);
        if let Some(oldest) = oldest {
            self.reclaim(state, &oldest, Reclaimed::Full);
        }
    }

    fn reclaim(&self, state: &mut TableState, entry: &Entry, reason: Reclaimed) {
        state.remove(entry);
        entry.end();
        self.observer.reclaimed(reason);
    }

    fn warn(&self, state: &mut TableState, is_full: bool) {
        let counts = &self.shared.counts;
        let (open, limit) = (counts.open(), counts.limit);
        let with_ticket = counts.with_ticket.load(Relaxed);
        if is_full && is_due(&mut state.full_warned_at) {
            warn!(
                open,
                with_ticket,
                connections = limit,
                "the limit of connections is reached: for each new one the longest idle \
                 one closes. Raise size_limits.connections and the descriptors, or add a node"
            );
        } else if is_due(&mut state.near_warned_at) {
            warn!(
                open,
                with_ticket,
                connections = limit,
                "connections run short: those of waiting visitors are closed with each response, \
                 and the longest idle ones close first"
            );
        }
    }
}

/// Whether a warning is due again; records that it was written.
fn is_due(warned_at: &mut Option<Instant>) -> bool {
    let now = Instant::now();
    let is_due = warned_at.is_none_or(|at| now.duration_since(at) >= WARN_INTERVAL);
    if is_due {
        *warned_at = Some(now);
    }
    is_due
}

impl TableState {
    fn add(&mut self, entry: &Arc<Entry>, now: Duration, open: usize) {
        if matches!(entry.standing(), Standing::TurnedAway(_)) {
            self.turned_away_count += 1;
            let count = self.turned_away_count;
            self.turned_away.add(entry, now, count);
            return;
        }
        self.idle.add(entry, now, open);
        if let Some(network) = entry.network() {
            let address = self.addresses.entry(network).or_default();
            address.count += 1;
            let count = address.count;
            address.idle.add(entry, now, count);
        }
    }

    /// Removes a connection. Removing it again has no effect.
    fn remove(&mut self, entry: &Entry) {
        if !entry.leave() {
            return;
        }
        if matches!(entry.standing(), Standing::TurnedAway(_)) {
            self.turned_away_count = self.turned_away_count.saturating_sub(1);
            return;
        }
        let Some(network) = entry.network() else {
            return;
        };
        if let Some(address) = self.addresses.get_mut(&network) {
            address.count = address.count.saturating_sub(1);
            if address.count == 0 {
                self.addresses.remove(&network);
            }
        }
    }
}

/// Slot of one connection in the table; dropping it frees the slot.
pub(crate) struct ConnectionSlot {
    entry: Arc<Entry>,
    shared: Arc<Shared>,
}

impl ConnectionSlot {
    pub(crate) const fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.shared.state.lock().remove(&self.entry);
        self.shared.sockets.fetch_sub(1, Relaxed);
        self.shared.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
