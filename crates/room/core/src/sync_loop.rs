//! When does a node speak to its store, and what does it do with what comes back? One loop for each
//! room: syncs with the parent, errands to the root, their pace, and how long anybody waits for
//! them.
//!
//! A machine without I/O: [`SyncLoop::poll_action`] says what to do now,
//! [`SyncLoop::next_deadline`] when to ask again, and the caller brings what came of it. Production
//! drives it with timers and sockets, the simulator with a virtual clock. Points in time are those
//! of one clock that is never stepped; which one is the caller's business.

mod pace;
mod patience;

use crate::ledger::UPSTREAM_TIME_OUT_MAX;
use crate::ledger_call::Exchange;
use crate::room::Room;
use crate::room::syncing::SYNC_PERIOD;
use crate::sync::{Reply, SyncRequest};
use crate::time::{DurationMs, Timestamp};
use pace::Pace;
pub use patience::{PATIENCE, Round, WaitDeadline};

/// A sync that takes longer has failed: a disk or network that hangs must not hold the loop.
pub const TIMEOUT: DurationMs = DurationMs(2_000);
/// The same of an errand to the root: as long as the data center's ledger may wait for it.
pub const UPSTREAM_SYNC_TIME_OUT: DurationMs = UPSTREAM_TIME_OUT_MAX;
/// Pause after a failed sync; a store that is unavailable is asked this often.
pub const PAUSE_AFTER_FAILURE: DurationMs = DurationMs(500);
/// What somebody else brings from the root is looked for so much later than it is expected.
const AFTER_OTHERS: DurationMs = DurationMs(5);

/// What to do now.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make a request of the room ([`Room::poll_sync`]) and take it to the parent, together with
    /// what the root said. Then call [`SyncLoop::handle_exchange`] or [`SyncLoop::handle_failure`].
    Sync(Sync),
    /// The same with the room's last request ([`Room::poll_goodbye`]).
    Goodbye(Sync),
    /// Take this request to the root, while the loop goes on. Then call
    /// [`SyncLoop::handle_root_reply`] or [`SyncLoop::handle_root_failure`].
    AskRoot {
        /// Which errand.
        upstream_sync: u64,
        /// The request.
        request: SyncRequest,
    },
    /// Take this to the parent, and nothing else. Then call [`SyncLoop::handle_delivered`].
    Deliver(Reply),
}

/// A sync that begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Sync {
    /// Which round of the loop it is.
    pub round: u64,
    /// Whether somebody waits for it.
    pub is_wanted: bool,
    /// What the root said, for the parent.
    pub news: Option<Reply>,
}

/// What became of a request to the root, for logs and counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    /// It works as before.
    None,
    /// It failed, and had worked before.
    Failed,
    /// It works again.
    Recovered,
}

/// The loop of one room at one node.
#[derive(Clone, Debug)]
pub struct SyncLoop {
    pace: Pace,
    phase: Phase,
    begun: u64,
    ended: u64,
    /// Somebody is in a hurry, and no sync has begun since.
    is_hurried: bool,
    is_failing: bool,
    upstream_sync: Option<UpstreamSync>,
    upstream_syncs: u64,
    is_root_failing: bool,
    /// When the root spoke last, as the parent has heard it from whoever.
    root_as_of: Timestamp,
    /// A request to the root that is to be carried.
    to_carry: Option<SyncRequest>,
    /// What the root said, for the parent.
    news: Option<Reply>,
    is_news_fresh: bool,
    stop: Stop,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Between two syncs.
    Idle {
        due_at: Timestamp,
        hurry_at: Timestamp,
    },
    /// A sync is on its way.
    Syncing { fails_at: Timestamp },
    /// The last sync failed.
    Failed { until: Timestamp },
    /// What the root said last is on its way to the parent.
    Delivering { fails_at: Timestamp },
    /// It has said goodbye, and nothing is left to do.
    Finished,
}

/// How far the loop is on its way out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stop {
    /// The node runs.
    No,
    /// The node stops: the room is to say goodbye.
    Asked,
    /// It has.
    SaidGoodbye,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct UpstreamSync {
    number: u64,
    sent_at: Timestamp,
}

impl SyncLoop {
    /// A loop that begins at `now`. `is_paced`: others use the same store.
    #[must_use]
    pub fn new(is_paced: bool, now: Timestamp) -> Self {
        Self {
            pace: Pace::new(is_paced, now),
            phase: Phase::Idle {
                due_at: now,
                hurry_at: now,
            },
            begun: 0,
            ended: 0,
            is_hurried: false,
            is_failing: false,
            upstream_sync: None,
            upstream_syncs: 0,
            is_root_failing: false,
            root_as_of: Timestamp::ZERO,
            to_carry: None,
            news: None,
            is_news_fresh: false,
            stop: Stop::No,
        }
    }

    /// What somebody who waits for a sync must know.
    #[must_use]
    pub fn round(&self) -> Round {
        Round {
            begun: self.begun,
            ended: self.ended,
            is_failing: self.is_failing,
            is_root_failing: self.is_root_failing,
        }
    }

    /// The same once all is said and done: there is nothing to wait for any more.
    #[must_use]
    pub fn last_round(&self) -> Round {
        Round {
            begun: u64::MAX - 1,
            ended: u64::MAX,
            is_failing: true,
            is_root_failing: true,
        }
    }

    /// Whether the last sync failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// Whether all is said and done.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether this errand to the root is under way.
    #[must_use]
    pub fn is_out(&self, upstream_sync: u64) -> bool {
        self.upstream_sync
            .is_some_and(|present| present.number == upstream_sync)
    }

    /// Somebody wants a sync as soon as possible.
    pub fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// Whether somebody does, and no sync has begun since.
    #[must_use]
    pub fn is_hurried(&self) -> bool {
        self.is_hurried
    }

    /// The node stops: what is under way ends, then the room says goodbye.
    pub fn stop(&mut self) {
        if self.stop == Stop::No {
            self.stop = Stop::Asked;
        }
    }

    /// When to call [`SyncLoop::poll_action`] at the latest; `None` once all is done.
    /// `is_awaited`: a visitor waits for a sync.
    #[must_use]
    pub fn next_deadline(&self, is_awaited: bool, now: Timestamp) -> Option<Timestamp> {
        if self.to_carry.is_some() {
            return Some(now);
        }
        let own = match self.phase {
            Phase::Idle { .. } | Phase::Failed { .. } if self.stop != Stop::No => {
                // Whoever carries a request brings its answer first.
                self.upstream_sync.is_none().then_some(now)
            }
            Phase::Idle { due_at, hurry_at } => Some(self.begins_at(due_at, hurry_at, is_awaited)),
            Phase::Syncing { fails_at } | Phase::Delivering { fails_at } => Some(fails_at),
            Phase::Failed { until } => Some(until),
            Phase::Finished => None,
        };
        let upstream_sync = self
            .upstream_sync
            .map(|upstream_sync| upstream_sync.sent_at + UPSTREAM_SYNC_TIME_OUT);
        own.into_iter().chain(upstream_sync).min()
    }

    /// What to do now, if anything. Call again until there is nothing.
    pub fn poll_action(&mut self, is_awaited: bool, now: Timestamp) -> Option<Action> {
        if self
            .upstream_sync
            .is_some_and(|upstream_sync| upstream_sync.sent_at + UPSTREAM_SYNC_TIME_OUT <= now)
        {
            self.end_upstream_sync(None, now);
        }
        if let Some(request) = self.to_carry.take() {
            // The ledger waits for the one before no longer.
            self.is_root_failing |= self.upstream_sync.is_some();
            self.upstream_syncs += 1;
            let number = self.upstream_syncs;
            let sent_at = now;
            self.upstream_sync = Some(UpstreamSync { number, sent_at });
            return Some(Action::AskRoot {
                upstream_sync: number,
                request,
            });
        }
        match self.phase {
            Phase::Syncing { fails_at } if fails_at <= now => self.fail(now),
            Phase::Delivering { fails_at } if fails_at <= now => self.phase = Phase::Finished,
            _ => {}
        }
        let is_due = match self.phase {
            Phase::Idle { due_at, hurry_at } => self.begins_at(due_at, hurry_at, is_awaited) <= now,
            Phase::Failed { until } => until <= now,
            Phase::Syncing { .. } | Phase::Delivering { .. } | Phase::Finished => return None,
        };
        if self.stop != Stop::No {
            return self.poll_leaving(now);
        }
        is_due.then(|| Action::Sync(self.begin(is_awaited, now)))
    }

    /// The parent has answered: `request` was the room's, `exchange` is what came of it. `jittered`
    /// makes a period a little shorter or longer, so that nodes do not stay in step. Returns
    /// whether this was the sync under way; an earlier one is over, and its reply is the room's
    /// business.
    pub fn handle_exchange(
        &mut self,
        round: u64,
        (request, exchange): (&SyncRequest, &Exchange),
        room: &Room,
        jittered: impl FnOnce(DurationMs) -> DurationMs,
        now: Timestamp,
    ) -> bool {
        if round != self.begun || !matches!(self.phase, Phase::Syncing { .. }) {
            return false;
        }
        self.is_failing = false;
        self.ended = self.begun;
        if !self.is_news_fresh {
            self.news = None;
        }
        self.hear_of_root(&exchange.reply);
        self.to_carry.clone_from(&exchange.upstream_sync);
        let is_on_upstream_sync = self.upstream_sync.is_some() || self.to_carry.is_some();
        // What is missing here and in the data center comes with others, and not before.
        let is_short = is_short(request, &exchange.reply);
        let back_after = exchange.others_back_after;
        let back_after = back_after.filter(|_| is_short && !is_on_upstream_sync);
        let paced_at = self.pace.next_at(now);
        let back_at = back_after.map_or(now, |after| now + after + AFTER_OTHERS);
        self.phase = Phase::Idle {
            due_at: now + jittered(room.sync_period()),
            hurry_at: paced_at.max(back_at),
        };
        self.expect_news(now);
        true
    }

    /// The sync under way failed. Returns whether it was the one of this round.
    pub fn handle_failure(&mut self, round: u64, now: Timestamp) -> bool {
        let is_present = round == self.begun && matches!(self.phase, Phase::Syncing { .. });
        if is_present {
            self.fail(now);
        }
        is_present
    }

    /// The root has answered the request that was carried there. An answer to an earlier errand,
    /// which counts as failed, changes nothing.
    pub fn handle_root_reply(
        &mut self,
        upstream_sync: u64,
        reply: Reply,
        now: Timestamp,
    ) -> Change {
        if !self.is_out(upstream_sync) {
            return Change::None;
        }
        self.end_upstream_sync(Some(reply), now)
    }

    /// The request that was carried to the root got no answer.
    pub fn handle_root_failure(&mut self, upstream_sync: u64, now: Timestamp) -> Change {
        if !self.is_out(upstream_sync) {
            return Change::None;
        }
        self.end_upstream_sync(None, now)
    }

    /// What the root said last is with the parent, or cannot be brought there.
    pub fn handle_delivered(&mut self) {
        if matches!(self.phase, Phase::Delivering { .. }) {
            self.phase = Phase::Finished;
        }
    }

    fn begins_at(&self, due_at: Timestamp, hurry_at: Timestamp, is_awaited: bool) -> Timestamp {
        if self.is_news_fresh && is_awaited {
            return Timestamp::ZERO;
        }
        if !self.is_hurried {
            return due_at;
        }
        // Whoever waits while the errand is out waits for what it brings; but it may be lost.
        let upstream_sync_at = match self.upstream_sync {
            Some(upstream_sync) => upstream_sync.sent_at + SYNC_PERIOD,
            None => Timestamp::ZERO,
        };
        due_at.min(hurry_at.max(upstream_sync_at))
    }

    fn begin(&mut self, is_wanted: bool, now: Timestamp) -> Sync {
        self.begun += 1;
        self.is_hurried = false;
        self.is_news_fresh = false;
        self.pace.note_round(now);
        self.phase = Phase::Syncing {
            fails_at: now + TIMEOUT,
        };
        Sync {
            round: self.begun,
            is_wanted,
            news: self.news.clone(),
        }
    }

    fn fail(&mut self, now: Timestamp) {
        self.is_failing = true;
        self.ended = self.begun;
        // Whoever is in a hurry does not make a broken store whole.
        let until = now + PAUSE_AFTER_FAILURE;
        self.phase = Phase::Failed { until };
    }

    fn end_upstream_sync(&mut self, reply: Option<Reply>, now: Timestamp) -> Change {
        self.upstream_sync = None;
        let was_failing = self.is_root_failing;
        self.is_root_failing = reply.is_none();
        if reply.is_some() {
            self.news = reply;
            self.is_news_fresh = true;
            self.expect_news(now);
        }
        match (was_failing, self.is_root_failing) {
            (false, true) => Change::Failed,
            (true, false) => Change::Recovered,
            _ => Change::None,
        }
    }

    /// What another node brought from the root shows that it answers.
    fn hear_of_root(&mut self, reply: &Reply) {
        if let Reply::Granted(answer) = reply
            && answer.snapshot.root_as_of > self.root_as_of
        {
            self.root_as_of = answer.snapshot.root_as_of;
            self.is_root_failing = false;
        }
    }

    /// News that nobody waits for goes along with the next sync, if that comes soon.
    fn expect_news(&mut self, now: Timestamp) {
        if !self.is_news_fresh {
            return;
        }
        if let Phase::Idle { due_at, .. } = &mut self.phase {
            *due_at = (*due_at).min(now + SYNC_PERIOD);
        }
    }

    /// Gives everything back, so that nothing is counted as possibly used; the last node of a data
    /// center gives back for that as well. While the store does not answer there is nobody to say
    /// goodbye to.
    fn poll_leaving(&mut self, now: Timestamp) -> Option<Action> {
        if self.upstream_sync.is_some() {
            return None;
        }
        if self.is_failing {
            self.phase = Phase::Finished;
            return None;
        }
        if self.stop != Stop::SaidGoodbye {
            self.stop = Stop::SaidGoodbye;
            return Some(Action::Goodbye(self.begin(false, now)));
        }
        // Only to let a successor know; it would find out by itself.
        match self.news.take() {
            Some(news) => {
                let fails_at = now + TIMEOUT;
                self.phase = Phase::Delivering { fails_at };
                Some(Action::Deliver(news))
            }
            None => {
                self.phase = Phase::Finished;
                None
            }
        }
    }
}

/// Whether the parent had less than was asked for.
fn is_short(request: &SyncRequest, reply: &Reply) -> bool {
    match reply {
        Reply::Granted(answer) => {
            let has = request.held.seats.saturating_add(answer.granted.seats);
            has < request.wants.slots.saturating_add(request.wants.first)
        }
        Reply::Void { .. } | Reply::Stale => false,
    }
}

#[cfg(test)]
mod tests;
