//! What does one node do with what it hears, and what does it say when?
//!
//! Facts go in (a datagram, the time), datagrams come out. Two clocks are told: `now` only goes on
//! and says when something is due; `by_clock` is that by which calls are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::time::TimestampUs;
use parking_lot::Mutex;

use crate::board::CounterTable;
use crate::cell::WriterId;
use crate::event_counts::{Event, Tally};
use crate::members::{Identity, MEMBERS_MAX, Members};
use crate::message::{self, Message};
use crate::seal::Secret;
use anteroom_limit_store::clock::CLOCKS_APART_MAX;

/// News that are told when a node leaves, in datagrams to each other one. What does not fit into so
/// many stays untold.
const ROUNDS_AT_THE_END: usize = 8;

/// How often those are spoken to that are gone: who was taken for gone by mistake, and has nobody
/// else, is found again by that alone.
const REMIND_PERIOD: Duration = Duration::from_secs(2);
/// For how long they are.
const REMIND_FOR: Duration = Duration::from_secs(3_600);
/// For how long news still go to those that are gone: they may be there all the same, and hear that
/// they were taken for gone within some seconds.
const TELL_GONE_FOR: Duration = Duration::from_secs(10);
/// Those that are gone and are remembered at most; addresses change where nodes are pods.
const GONE_MAX: usize = 256;

/// So long after its start a node says that it has found nobody: peers are spoken to every two
/// seconds, and names may take a moment. Sooner it would be told at each start of all nodes
/// together.
const MISSED_AFTER: Duration = Duration::from_secs(10);

/// A datagram, and to whom it goes.
pub type Outgoing = (SocketAddr, Vec<u8>);

/// What a node is told at its beginning.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Where the others reach it.
    pub address: SocketAddr,
    /// When it began, in milliseconds since the Unix epoch: of several nodes at one address the
    /// latest counts.
    pub generation: u64,
    /// How long it collects news before it tells them.
    pub interval: Duration,
    /// Chooses whom it pings.
    pub seed: u64,
}

/// A node without sockets and clocks.
pub struct Node {
    settings: NodeSettings,
    secret: Secret,
    board: Arc<Mutex<CounterTable>>,
    event_counts: Arc<Tally>,
    members: Members,
    peers: BTreeSet<(SocketAddr, WriterId)>,
    /// Who has just come, and how much of all he has still to be told.
    newcomers: Vec<(SocketAddr, usize)>,
    /// Who was there, and since when he is not.
    gone: BTreeMap<SocketAddr, Duration>,
    remind_at: Duration,
    tell_at: Duration,
    /// When it is said that nobody was found; `None` if somebody was, or nobody is expected.
    missed_at: Option<Duration>,
    outbox: Vec<Outgoing>,
}

impl Node {
    /// A node that knows nobody, and tells what is on this board.
    #[must_use]
    pub fn new(settings: NodeSettings, secret: Secret, board: Arc<Mutex<CounterTable>>) -> Self {
        let (me, event_counts) = {
            let board = board.lock();
            let me = Identity {
                address: settings.address,
                writer: board.me(),
                generation: settings.generation,
            };
            (me, Arc::clone(&board.event_counts))
        };
        Self {
            members: Members::new(me, settings.seed),
            settings,
            secret,
            board,
            event_counts,
            peers: BTreeSet::new(),
            newcomers: Vec::new(),
            gone: BTreeMap::new(),
            remind_at: Duration::ZERO,
            tell_at: Duration::ZERO,
            missed_at: None,
            outbox: Vec::new(),
        }
    }

    /// Others should be there: if none is found for some seconds that is said in the log, once.
    pub fn expect_others(&mut self, now: Duration) {
        self.missed_at = Some(now + MISSED_AFTER);
    }

    /// Tells somebody who may be there that this node is.
    pub fn announce(&mut self, now: Duration, address: SocketAddr) {
        let is_known = self.peers.iter().any(|(peer, _)| *peer == address);
        if address != self.settings.address && !is_known {
            self.members.announce(now, address);
            self.send_memberships();
        }
    }

    /// Hears a datagram; whether it was of one of our own.
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
            self.event_counts.count(Event::DatagramRefused);
        }
        is_ours
    }

    /// Hears what was sealed; whether it made sense.
    pub(crate) fn handle_body(
        &mut self,
        now: Duration,
        by_clock: TimestampUs,
        body: &[u8],
    ) -> bool {
        match Message::read(body) {
            None => false,
            Some(Message::Membership(bytes)) => {
                let heard = self.members.handle(now, bytes);
                self.look_at_peers(now);
                self.send_memberships();
                if let Ok(left_out) = heard {
                    self.note_left_out(left_out);
                }
                heard.is_ok()
            }
            Some(Message::Counters { sent_at, told }) => {
                let apart = sent_at.since(by_clock).max(by_clock.since(sent_at));
                if apart > CLOCKS_APART_MAX {
                    self.note_clock(apart.0 / 1_000);
                }
                let mut board = self.board.lock();
                for one in &told {
                    board.hear(one, by_clock);
                }
                true
            }
        }
    }

    /// Does what is due.
    pub fn poll(&mut self, now: Duration, by_clock: TimestampUs) {
        self.members.poll(now);
        self.remind(now);
        self.look_at_peers(now);
        self.send_memberships();
        if self.misses_others(now) {
            tracing::warn!("none of the configured peers is found: this node counts alone");
        }
        if now < self.tell_at {
            return;
        }
        // What was missed is not made up for: what has changed meanwhile is told once.
        self.tell_at = now + self.settings.interval;
        self.tell(now, by_clock);
    }

    /// When there is something to do next.
    #[must_use]
    pub fn next_at(&self) -> Duration {
        let members = self.members.next_at();
        members.map_or(self.tell_at, |at| at.min(self.tell_at))
    }

    /// Tells the others what they do not know yet, and that this node goes.
    pub fn leave(&mut self, now: Duration, by_clock: TimestampUs) {
        self.tell_rest(by_clock);
        self.members.leave(now);
        self.send_memberships();
        // From now on whoever has this node's address is its successor.
        let successor = (self.settings.address, self.board.lock().me());
        self.peers.insert(successor);
        self.newcomers = vec![(self.settings.address, usize::MAX)];
    }

    /// After [`Self::leave`]: tells those who were there what is still counted here, and its
    /// successor everything, again and again, for it may not listen yet.
    pub fn tell_behind(&mut self, by_clock: TimestampUs) {
        let news = self.board.lock().tell_news(by_clock);
        self.send_to_all(&news);
        self.tell_newcomers(by_clock);
        if self.newcomers.is_empty() {
            self.newcomers.push((self.settings.address, usize::MAX));
        }
    }

    /// After [`Self::leave`], when nothing more is counted here.
    pub fn tell_last(&mut self, by_clock: TimestampUs) {
        self.tell_rest(by_clock);
    }

    /// All that this node knows and would tell a newcomer, of what comes before `rest`; and what is
    /// to be told then.
    pub(crate) fn tell_all(&self, by_clock: TimestampUs, rest: usize) -> (Vec<Vec<u8>>, usize) {
        let (bodies, rest) = self.board.lock().tell_newcomer(by_clock, rest);
        let sealed = bodies.iter().map(|body| self.secret.seal(body));
        (sealed.collect(), rest)
    }

    /// How long it collects news.
    pub(crate) const fn interval(&self) -> Duration {
        self.settings.interval
    }

    /// Where the others reach it.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.settings.address
    }

    /// What is to be sent.
    pub fn take_outbox(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outbox)
    }

    /// Who is there, beside this node.
    #[must_use]
    pub fn peers(&self) -> Vec<SocketAddr> {
        self.peers.iter().map(|(address, _)| *address).collect()
    }

    fn tell(&mut self, now: Duration, by_clock: TimestampUs) {
        let interval = self.settings.interval;
        let (news, round) = {
            let mut board = self.board.lock();
            (
                board.tell_news(by_clock),
                board.tell_round(by_clock, interval),
            )
        };
        self.send_to_all(&news);
        self.send_to_all(&round);
        self.send_to_gone(now, &news);
        self.tell_newcomers(by_clock);
    }

    /// As much as may be of what they do not know yet.
    fn tell_rest(&mut self, by_clock: TimestampUs) {
        for _ in 0..ROUNDS_AT_THE_END {
            let news = self.board.lock().tell_news(by_clock);
            if news.is_empty() {
                break;
            }
            self.send_to_all(&news);
        }
    }

    fn tell_newcomers(&mut self, by_clock: TimestampUs) {
        let mut newcomers = std::mem::take(&mut self.newcomers);
        for (address, rest) in &mut newcomers {
            let (bodies, left) = self.board.lock().tell_newcomer(by_clock, *rest);
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

    fn send_to_gone(&mut self, now: Duration, bodies: &[Vec<u8>]) {
        let gone = self.gone.iter();
        let gone = gone.filter(|(_, since)| now.saturating_sub(**since) < TELL_GONE_FOR);
        let gone: Vec<SocketAddr> = gone.map(|(address, _)| *address).collect();
        for body in bodies.iter().filter(|_| !gone.is_empty()) {
            let sealed = self.secret.seal(body);
            let copies = gone.iter().map(|address| (*address, sealed.clone()));
            self.outbox.extend(copies);
        }
    }

    /// Speaks to those that are gone.
    fn remind(&mut self, now: Duration) {
        if now < self.remind_at {
            return;
        }
        self.remind_at = now + REMIND_PERIOD;
        self.gone
            .retain(|_, since| now.saturating_sub(*since) < REMIND_FOR);
        for address in self.gone.keys() {
            self.members.announce(now, *address);
        }
    }

    fn send_memberships(&mut self) {
        for (to, bytes) in self.members.take_sends() {
            let body = message::membership(&bytes);
            self.outbox.push((to, self.secret.seal(&body)));
        }
    }

    /// Notices who has come and who is gone.
    fn look_at_peers(&mut self, now: Duration) {
        let peers: BTreeSet<_> = self.members.peers().collect();
        if peers == self.peers {
            return;
        }
        // The departures first: one that was restarted in its place goes and comes at once, and has
        // everything to be told.
        for (peer, _) in self.peers.difference(&peers) {
            tracing::warn!(%peer, "a node that counted with us is gone");
            self.event_counts.count(Event::PeerLeft);
            self.newcomers.retain(|(newcomer, _)| newcomer != peer);
            if self.gone.len() < GONE_MAX && !peers.iter().any(|(other, _)| other == peer) {
                self.gone.insert(*peer, now);
            }
        }
        for (peer, _) in peers.difference(&self.peers) {
            tracing::info!(%peer, "a node that counts with us is there");
            self.event_counts.count(Event::PeerJoined);
            self.newcomers.push((*peer, usize::MAX));
            self.gone.remove(peer);
            self.missed_at = None;
        }
        if peers.is_empty() {
            tracing::warn!("no other node is there: this one counts alone");
        }
        let alive = peers.iter().map(|(_, writer)| *writer).collect();
        self.board.lock().set_alive(alive);
        self.peers = peers;
    }

    /// Whether it has to be said by now that nobody was found; once.
    fn misses_others(&mut self, now: Duration) -> bool {
        let is_due = self.missed_at.is_some_and(|at| at <= now);
        if is_due {
            self.missed_at = None;
        }
        is_due
    }

    fn note_left_out(&self, strangers: usize) {
        if strangers > 0 && self.event_counts.of(Event::MemberRefused) == 0 {
            tracing::warn!(
                members_max = MEMBERS_MAX,
                "so many other nodes are known, with those that are gone for less than an hour: \
                 no new ones count with us"
            );
        }
        self.event_counts
            .count_many(Event::MemberRefused, strangers as u64);
    }

    fn note_clock(&self, apart_ms: u64) {
        if self.event_counts.of(Event::ClockApart) == 0 {
            tracing::warn!(
                apart_ms,
                "another node's clock is too far from ours to count with it"
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
