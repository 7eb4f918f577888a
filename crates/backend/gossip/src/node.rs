//! State machine of one node: handles received messages and decides what to send when.
//!
//! Facts go in (a datagram, the time), datagrams come out. There are two clocks: `now` is monotonic
//! and drives timers, `by_clock` is the wall clock by which requests are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::time::TimestampUs;
use parking_lot::Mutex;

use crate::cell::WriterId;
use crate::counter_table::CounterTable;
use crate::event_counts::{Event, EventCounts};
use crate::members::{Identity, MEMBERS_MAX, Members};
use crate::message::{self, Message};
use crate::seal::Secret;
use anteroom_limit_store::clock::CLOCKS_APART_MAX;

/// Most rounds of changes that a leaving node sends to each peer. Changes beyond that are lost.
const LAST_ROUNDS_MAX: usize = 8;

/// Period after which a node announces itself to departed peers again. Two nodes that took each
/// other for departed, and know no others, find each other only by that.
const ANNOUNCE_AGAIN_PERIOD: Duration = Duration::from_secs(2);
/// Time for which a node announces itself to a departed peer.
const ANNOUNCE_AGAIN_FOR: Duration = Duration::from_secs(3_600);
/// Time for which changes are still sent to a departed peer. It may be running all the same, and
/// learns within seconds that others took it for departed.
const REPORT_TO_DEPARTED_FOR: Duration = Duration::from_secs(10);
/// Most departed peers that a node remembers; addresses change where nodes are pods.
const DEPARTED_MAX: usize = 256;

/// Time from the start until a node warns that it has found no peers. Peers are announced to every
/// two seconds, and names may take a moment to resolve. A shorter time would warn at each start of
/// all nodes together.
const WARN_ALONE_AFTER: Duration = Duration::from_secs(10);

/// Destination and datagram.
pub type Outgoing = (SocketAddr, Vec<u8>);

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Address at which the others reach the node.
    pub address: SocketAddr,
    /// Start of the node, in milliseconds since the Unix epoch. Of several nodes at one address the
    /// latest counts.
    pub generation: u64,
    /// Time for which the node collects changes before it sends them.
    pub interval: Duration,
    /// Seed of the choice of members to ping.
    pub seed: u64,
}

/// A node without sockets and clocks.
pub struct Node {
    settings: NodeSettings,
    secret: Secret,
    table: Arc<Mutex<CounterTable>>,
    event_counts: Arc<EventCounts>,
    members: Members,
    peers: BTreeSet<(SocketAddr, WriterId)>,
    /// Peers that have just joined, each with the number of counters still to report to it.
    newcomers: Vec<(SocketAddr, usize)>,
    /// Departed peers, and the times at which they were noticed to be missing.
    departed: BTreeMap<SocketAddr, Duration>,
    announce_again_at: Duration,
    send_at: Duration,
    /// Time at which to warn that no peer was found; `None` if one was, or none is expected.
    warn_alone_at: Option<Duration>,
    outbox: Vec<Outgoing>,
}

impl Node {
    /// Creates a node that knows no peers and reports the counters of `table`.
    #[must_use]
    pub fn new(settings: NodeSettings, secret: Secret, table: Arc<Mutex<CounterTable>>) -> Self {
        let (me, event_counts) = {
            let table = table.lock();
            let me = Identity {
                address: settings.address,
                writer: table.me(),
                generation: settings.generation,
            };
            (me, Arc::clone(&table.event_counts))
        };
        Self {
            members: Members::new(me, settings.seed),
            settings,
            secret,
            table,
            event_counts,
            peers: BTreeSet::new(),
            newcomers: Vec::new(),
            departed: BTreeMap::new(),
            announce_again_at: Duration::ZERO,
            send_at: Duration::ZERO,
            warn_alone_at: None,
            outbox: Vec::new(),
        }
    }

    /// Expects peers: if none is found for some seconds, the node logs a warning, once.
    pub fn expect_peers(&mut self, now: Duration) {
        self.warn_alone_at = Some(now + WARN_ALONE_AFTER);
    }

    /// Announces this node to an address at which a peer may listen.
    pub fn announce(&mut self, now: Duration, address: SocketAddr) {
        let is_known = self.peers.iter().any(|(peer, _)| *peer == address);
        if address != self.settings.address && !is_known {
            self.members.announce(now, address);
            self.send_memberships();
        }
    }

    /// Handles a datagram and returns whether it was sealed with our secret and valid.
    pub fn handle_datagram(
        &mut self,
        now: Duration,
        by_clock: TimestampUs,
        datagram: &[u8],
    ) -> bool {
        self.event_counts.count(Event::DatagramReceived);
        let secret = self.secret.clone();
        let is_ours = secret
            .open(datagram)
            .is_some_and(|body| self.handle_body(now, by_clock, body));
        if !is_ours {
            self.event_counts.count(Event::DatagramRejected);
        }
        is_ours
    }

    /// Handles the body of a datagram and returns whether it was valid.
    pub(crate) fn handle_body(
        &mut self,
        now: Duration,
        by_clock: TimestampUs,
        body: &[u8],
    ) -> bool {
        match Message::read(body) {
            None => false,
            Some(Message::Membership(bytes)) => {
                let handled = self.members.handle(now, bytes);
                self.update_peers(now);
                self.send_memberships();
                if let Ok(left_out) = handled {
                    self.note_left_out(left_out);
                }
                handled.is_ok()
            }
            Some(Message::Counters { sent_at, reports }) => {
                let apart = sent_at.since(by_clock).max(by_clock.since(sent_at));
                if apart > CLOCKS_APART_MAX {
                    self.note_clock(apart.0 / 1_000);
                }
                let mut table = self.table.lock();
                for report in &reports {
                    table.merge_report(report, by_clock);
                }
                true
            }
        }
    }

    /// Carries out all timers that are due.
    pub fn poll(&mut self, now: Duration, by_clock: TimestampUs) {
        self.members.poll(now);
        self.announce_again(now);
        self.update_peers(now);
        self.send_memberships();
        if self.should_warn_alone(now) {
            tracing::warn!("no configured peer found: this node counts alone");
        }
        if now < self.send_at {
            return;
        }
        // Missed intervals are not made up for: the changes meanwhile go out once.
        self.send_at = now + self.settings.interval;
        self.report(now, by_clock);
    }

    /// Returns the time of the next timer.
    #[must_use]
    pub fn next_at(&self) -> Duration {
        let members = self.members.next_at();
        members.map_or(self.send_at, |at| at.min(self.send_at))
    }

    /// Sends pending changes to the peers and announces that this node leaves.
    pub fn leave(&mut self, now: Duration, by_clock: TimestampUs) {
        self.report_remaining(by_clock);
        self.members.leave(now);
        self.send_memberships();
        // From now on the process at this node's address is its successor.
        let successor = (self.settings.address, self.table.lock().me());
        self.peers.insert(successor);
        self.newcomers = vec![(self.settings.address, usize::MAX)];
    }

    /// Reports requests counted after [`Self::leave`] to the former peers, and everything to the
    /// successor, again and again: it may not listen yet.
    pub fn report_departed(&mut self, by_clock: TimestampUs) {
        let changes = self.table.lock().report_changes(by_clock);
        self.send_to_all(&changes);
        self.report_to_newcomers(by_clock);
        if self.newcomers.is_empty() {
            self.newcomers.push((self.settings.address, usize::MAX));
        }
    }

    /// Sends the last changes after [`Self::leave`], once nothing more is counted here.
    pub fn report_last(&mut self, by_clock: TimestampUs) {
        self.report_remaining(by_clock);
    }

    /// Returns reports of all counters before index `rest`, as for a newcomer, and the index to
    /// continue at.
    pub(crate) fn report_all(&self, by_clock: TimestampUs, rest: usize) -> (Vec<Vec<u8>>, usize) {
        let (bodies, rest) = self.table.lock().report_to_newcomer(by_clock, rest);
        let sealed = bodies.iter().map(|body| self.secret.seal(body));
        (sealed.collect(), rest)
    }

    /// Returns the time for which the node collects changes before it sends them.
    pub(crate) const fn interval(&self) -> Duration {
        self.settings.interval
    }

    /// Returns the address at which the others reach the node.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.settings.address
    }

    /// Takes the datagrams to send.
    pub fn take_outbox(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outbox)
    }

    /// Returns the addresses of the peers.
    #[must_use]
    pub fn peers(&self) -> Vec<SocketAddr> {
        self.peers.iter().map(|(address, _)| *address).collect()
    }

    fn report(&mut self, now: Duration, by_clock: TimestampUs) {
        let interval = self.settings.interval;
        let (changes, round) = {
            let mut table = self.table.lock();
            (
                table.report_changes(by_clock),
                table.report_round(by_clock, interval),
            )
        };
        self.send_to_all(&changes);
        self.send_to_all(&round);
        self.send_to_departed(now, &changes);
        self.report_to_newcomers(by_clock);
    }

    /// Sends pending changes, as many as fit.
    fn report_remaining(&mut self, by_clock: TimestampUs) {
        for _ in 0..LAST_ROUNDS_MAX {
            let changes = self.table.lock().report_changes(by_clock);
            if changes.is_empty() {
                break;
            }
            self.send_to_all(&changes);
        }
    }

    fn report_to_newcomers(&mut self, by_clock: TimestampUs) {
        let mut newcomers = std::mem::take(&mut self.newcomers);
        for (address, rest) in &mut newcomers {
            let (bodies, left) = self.table.lock().report_to_newcomer(by_clock, *rest);
            *rest = left;
            let sealed = bodies.iter().map(|body| (*address, self.secret.seal(body)));
            self.outbox.extend(sealed);
        }
        newcomers.retain(|(_, rest)| *rest > 0);
        self.newcomers = newcomers;
    }

    fn send_to_all(&mut self, bodies: &[Vec<u8>]) {
        for body in bodies {
            let sealed = self.secret.seal(body);
            let copies = self.peers.iter().map(|(peer, _)| (*peer, sealed.clone()));
            self.outbox.extend(copies);
        }
    }

    fn send_to_departed(&mut self, now: Duration, bodies: &[Vec<u8>]) {
        let departed = self.departed.iter();
        let departed =
            departed.filter(|(_, since)| now.saturating_sub(**since) < REPORT_TO_DEPARTED_FOR);
        let departed: Vec<SocketAddr> = departed.map(|(address, _)| *address).collect();
        for body in bodies.iter().filter(|_| !departed.is_empty()) {
            let sealed = self.secret.seal(body);
            let copies = departed.iter().map(|address| (*address, sealed.clone()));
            self.outbox.extend(copies);
        }
    }

    /// Announces this node to departed peers again, when that is due.
    fn announce_again(&mut self, now: Duration) {
        if now < self.announce_again_at {
            return;
        }
        self.announce_again_at = now + ANNOUNCE_AGAIN_PERIOD;
        self.departed
            .retain(|_, since| now.saturating_sub(*since) < ANNOUNCE_AGAIN_FOR);
        for address in self.departed.keys() {
            self.members.announce(now, *address);
        }
    }

    fn send_memberships(&mut self) {
        for (to, bytes) in self.members.take_sends() {
            let body = message::membership(&bytes);
            self.outbox.push((to, self.secret.seal(&body)));
        }
    }

    /// Updates the peers from the membership, and handles those that joined or departed.
    fn update_peers(&mut self, now: Duration) {
        let peers: BTreeSet<_> = self.members.peers().collect();
        if peers == self.peers {
            return;
        }
        // Departures first: a peer that was restarted at its address departs and joins at once, and
        // needs a report of everything.
        for (peer, _) in self.peers.difference(&peers) {
            tracing::warn!(%peer, "peer departed");
            self.event_counts.count(Event::PeerLeft);
            self.newcomers.retain(|(newcomer, _)| newcomer != peer);
            if self.departed.len() < DEPARTED_MAX && !peers.iter().any(|(other, _)| other == peer) {
                self.departed.insert(*peer, now);
            }
        }
        for (peer, _) in peers.difference(&self.peers) {
            tracing::info!(%peer, "peer joined");
            self.event_counts.count(Event::PeerJoined);
            self.newcomers.push((*peer, usize::MAX));
            self.departed.remove(peer);
            self.warn_alone_at = None;
        }
        if peers.is_empty() {
            tracing::warn!("no peers left: this node counts alone");
        }
        let alive = peers.iter().map(|(_, writer)| *writer).collect();
        self.table.lock().set_alive(alive);
        self.peers = peers;
    }

    /// Returns, once, whether the warning about missing peers is due.
    fn should_warn_alone(&mut self, now: Duration) -> bool {
        let is_due = self.warn_alone_at.is_some_and(|at| at <= now);
        if is_due {
            self.warn_alone_at = None;
        }
        is_due
    }

    fn note_left_out(&self, left_out: usize) {
        if left_out > 0 && self.event_counts.of(Event::MemberRejected) == 0 {
            tracing::warn!(
                members_max = MEMBERS_MAX,
                "too many nodes are known, including those departed within an hour: no new ones \
                 count with this node"
            );
        }
        self.event_counts
            .count_many(Event::MemberRejected, left_out as u64);
    }

    fn note_clock(&self, apart_ms: u64) {
        if self.event_counts.of(Event::ClockApart) == 0 {
            tracing::warn!(
                apart_ms,
                "clock of a peer differs too much to count with it"
            );
        }
        self.event_counts.count(Event::ClockApart);
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, peers) = (self.settings.address, self.peers.len());
        write!(f, "Node at {address} with {peers} others")
    }
}

#[cfg(test)]
mod tests;
