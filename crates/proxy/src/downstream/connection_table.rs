//! Which connections are open, and which of them ends when there is no room for one more?
//!
//! Visitors who wait keep their connections open, and so do sockets that never send anything. So a
//! full table must not mean that nobody is answered. A connection is *idle* while no request of it
//! is on its way to an origin: slow handshakes, slow heads, kept connections and our own answers
//! all count as idle. Idle connections can be ended; the longest idle one ends first.
//!
//! | connections open | a new connection | an answer of our own, to a client without a ticket |
//! | --- | --- | --- |
//! | below 70 % | is taken | keeps its connection |
//! | from 70 % | ends the longest idle one that is idle for a second | closes its connection |
//! | from 90 % without a ticket | ends the longest idle one; without one, it takes the reserve | the same |
//! | all | the same; then the longest idle one with a ticket; then it is turned away | the same |
//!
//! A connection *has a ticket* if its newest request was let pass by one. These are not counted in
//! the 90 %, and end last. A connection of the reserve stays only if it shows a ticket. While
//! requests without a ticket keep 90 % busy, no further one goes to an origin. One that is turned
//! away is answered all the same, with a short refusal: it lives in a few spare places.
//!
//! Each client address has a limit of its own, and ends its own longest idle connection first.
//! Trusted proxies speak for many clients: they have no such limit, and count as having a ticket.
//!
//! Envoy's overload manager and nginx's reuse of idle connections were the models.

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
pub use entry::Claim;
pub(crate) use entry::{Entry, Standing};
use idle::{Class, Idle};

/// How long a connection is left alone while there is room: about as long as a handshake on a slow
/// mobile network and the request behind it. Longer, and a crowd fills the reserve.
const SETTLED: Duration = Duration::from_secs(1);
/// The same warning is written no more often.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// How many connections there may be.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// At once; at least 1.
    pub connections: usize,
    /// From one client address (IPv6: one /64 network); 0 = no limit.
    pub per_address: usize,
    /// Networks whose connections speak for many clients.
    pub trusted_proxies: Vec<IpNet>,
}

/// All open connections, over all listeners that share it.
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

/// How full the table is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Occupancy {
    /// Connections that are open and not about to end.
    pub open: usize,
    /// Those of them that have a ticket.
    pub with_ticket: usize,
    /// How many there may be.
    pub limit: usize,
    /// From how many on connections of those who wait are closed.
    pub near: usize,
}

struct Shared {
    counts: Arc<Counts>,
    per_address: usize,
    trusted_proxies: Vec<IpNet>,
    /// Sockets, those included that are about to end or are turned away.
    sockets: AtomicUsize,
    freed: Notify,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
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
    /// An empty table.
    #[must_use]
    pub fn new(limits: ConnectionLimits) -> Self {
        // Above this no counter overflows, and no machine has as many sockets.
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
                places: Mutex::default(),
            }),
        }
    }

    /// A table for so many connections, from any address.
    #[must_use]
    pub fn with_limit(connections: usize) -> Self {
        Self::new(ConnectionLimits {
            connections,
            per_address: 0,
            trusted_proxies: Vec::new(),
        })
    }

    /// How full it is now.
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

    /// Waits until one more socket may be accepted: only for connections that were told to end.
    pub(crate) async fn accept_ready(&self, observer: &dyn ConnectionObserver) {
        let counts = &self.shared.counts;
        let most = counts.limit + counts.spare();
        if self.shared.sockets.load(Relaxed) < most {
            return;
        }
        observer.accept_paused();
        self.until(|sockets| sockets < most).await;
    }

    async fn until(&self, is_so: impl Fn(usize) -> bool) {
        loop {
            let mut freed = pin!(self.shared.freed.notified());
            freed.as_mut().enable();
            if is_so(self.shared.sockets.load(Relaxed)) {
                return;
            }
            freed.await;
        }
    }

    /// Takes in a connection from `peer`, and ends another one where there is no room for both.
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
        let mut places = shared.places.lock();
        let mut makes_room = Making {
            shared,
            observer,
            now,
            network,
        };
        let standing = makes_room.standing(&mut places);
        let entry = Arc::new(Entry::new(&shared.counts, standing, is_proxy, network));
        places.add(&entry, now, shared.counts.open());
        drop(places);
        if let Standing::TurnedAway(why) = standing {
            observer.turned_away(why);
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

/// Makes room for one connection.
struct Making<'a> {
    shared: &'a Shared,
    observer: &'a dyn ConnectionObserver,
    now: Duration,
    network: Option<Network>,
}

impl Making<'_> {
    fn standing(&mut self, places: &mut Places) -> Standing {
        if !self.room_in_address(places) {
            self.room_to_turn_away(places);
            return Standing::TurnedAway(TurnedAway::Address);
        }
        let counts = &self.shared.counts;
        let open = counts.open();
        if open < counts.near {
            return Standing::Ordinary;
        }
        let is_full = open >= counts.limit;
        let is_reserve = counts.without_ticket() >= counts.without_ticket_max();
        self.warn(places, is_full || is_reserve);
        let settled = if is_full || is_reserve {
            Duration::ZERO
        } else {
            SETTLED
        };
        if let Some(found) = places.idle.longest(Class::Ordinary, self.now, settled) {
            self.reclaim(places, &found, Reclaimed::Crowded);
            return Standing::Ordinary;
        }
        if is_full {
            let found = places
                .idle
                .longest(Class::WithTicket, self.now, Duration::ZERO);
            let Some(found) = found else {
                self.room_to_turn_away(places);
                return Standing::TurnedAway(TurnedAway::Full);
            };
            self.reclaim(places, &found, Reclaimed::Crowded);
        }
        if is_reserve {
            Standing::Reserve
        } else {
            Standing::Ordinary
        }
    }

    /// Whether the client's address may have one more, perhaps in place of an older one.
    fn room_in_address(&self, places: &mut Places) -> bool {
        let Some(network) = self.network else {
            return true;
        };
        let Some(address) = places.addresses.get_mut(&network) else {
            return true;
        };
        if address.count < self.shared.per_address {
            return true;
        }
        let mut found = None;
        for class in [Class::Ordinary, Class::WithTicket] {
            found = found.or_else(|| address.idle.longest(class, self.now, Duration::ZERO));
        }
        if is_due(&mut places.address_warned_at) {
            warn!(
                address = %network,
                connections_per_address = self.shared.per_address,
                "one address has as many connections as it may have; its longest idle ones end \
                 first. If it is a proxy or a load balancer, name it in trusted_proxies, or set \
                 size_limits.connections_per_address to 0"
            );
        }
        let Some(found) = found else {
            return false;
        };
        self.reclaim(places, &found, Reclaimed::Address);
        true
    }

    /// There are few places to be turned away in: the oldest makes room.
    fn room_to_turn_away(&self, places: &mut Places) {
        let counts = &self.shared.counts;
        if places.turned_away_count < counts.spare() / 2 {
            return;
        }
        let oldest = places
            .turned_away
            .longest(Class::Ordinary, self.now, Duration::ZERO);
        if let Some(oldest) = oldest {
            self.reclaim(places, &oldest, Reclaimed::Crowded);
        }
    }

    fn reclaim(&self, places: &mut Places, entry: &Entry, why: Reclaimed) {
        places.remove(entry);
        entry.end();
        self.observer.reclaimed(why);
    }

    fn warn(&self, places: &mut Places, is_full: bool) {
        let counts = &self.shared.counts;
        let (open, limit) = (counts.open(), counts.limit);
        let with_ticket = counts.with_ticket.load(Relaxed);
        if is_full && is_due(&mut places.full_warned_at) {
            warn!(
                open,
                with_ticket,
                connections = limit,
                "as many connections are open as there may be: for each new one the longest idle \
                 one ends. Raise size_limits.connections and the descriptors, or add a node"
            );
        } else if is_due(&mut places.near_warned_at) {
            warn!(
                open,
                with_ticket,
                connections = limit,
                "connections run short: those of waiting visitors are closed with each answer, \
                 and the longest idle ones end first"
            );
        }
    }
}

/// Whether a warning may be written again; notes that it was.
fn is_due(warned_at: &mut Option<Instant>) -> bool {
    let now = Instant::now();
    let is_due = warned_at.is_none_or(|at| now.duration_since(at) >= WARN_EVERY);
    if is_due {
        *warned_at = Some(now);
    }
    is_due
}

impl Places {
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

    /// Forgets a connection that ends; the second time it changes nothing.
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

/// The place of one connection in the table, until it is dropped.
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
        self.shared.places.lock().remove(&self.entry);
        self.shared.sockets.fetch_sub(1, Relaxed);
        self.shared.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
