//! Loop of syncs of one room at one node: when to sync with the parent, upstream syncs with the
//! root, their pace, and how long a visitor waits for them.
//!
//! A machine without I/O: [`SyncLoop::poll_action`] returns the next action,
//! [`SyncLoop::next_deadline`] the time of the next poll, and the caller reports the results.
//! Production runs it with timers and sockets, the simulator with a virtual clock. Points in time
//! are those of one clock that is never stepped; the caller chooses it.

mod pace;
mod wait_timeout;

use crate::ledger::UPSTREAM_TIME_OUT_MAX;
use crate::ledger_exchange::{Delivery, Exchange};
use crate::record_view::RecordView;
use crate::room::Room;
use crate::room::syncing::SYNC_PERIOD;
use crate::sync::{Reply, SyncRequest};
use crate::time::{DurationMs, Timestamp};
use pace::Pace;
pub use wait_timeout::{Round, WAIT_MAX, WAIT_TIMEOUT, WaitDeadline};

/// Longest sync: a later one has failed. A disk or network that hangs must not hold the loop.
pub const TIMEOUT: DurationMs = DurationMs(2_000);
/// Longest upstream sync: as long as the data center's ledger may wait for it.
pub const UPSTREAM_SYNC_TIME_OUT: DurationMs = UPSTREAM_TIME_OUT_MAX;
/// Pause after a failed sync: the interval of syncs while the store is unavailable.
pub const PAUSE_AFTER_FAILURE: DurationMs = DurationMs(500);
/// Pause of a hurry after a parent granted less than requested. It has nothing left for the moment,
/// and a store in this process would be asked without end.
const PAUSE_WHEN_SHORT: DurationMs = DurationMs(50);
/// Time after the expected return of another node's upstream sync until this node looks for its
/// result.
const AFTER_OTHERS: DurationMs = DurationMs(5);

/// Action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Take a request of the room ([`Room::poll_sync`]) to the parent, together with the root's
    /// reply. Then call [`SyncLoop::handle_exchange`] or [`SyncLoop::handle_failure`].
    Sync(Sync),
    /// Do as for `Sync`, but with the room's last request ([`Room::poll_goodbye`]).
    Goodbye(Sync),
    /// Take this request to the root, while the loop goes on. Then call
    /// [`SyncLoop::handle_root_reply`] or [`SyncLoop::handle_root_failure`].
    SyncUpstream {
        /// Number of the upstream sync.
        upstream_sync: u64,
        /// The request.
        request: SyncRequest,
    },
    /// Take this reply of the root to the parent, and nothing else. Then call
    /// [`SyncLoop::handle_delivered`].
    Deliver(Delivery),
}

/// Sync that begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Sync {
    /// Number of the sync.
    pub round: u64,
    /// Whether a visitor waits for it.
    pub is_wanted: bool,
    /// Reply of the root, for the parent.
    pub root_reply: Option<Reply>,
    /// View of the parent's record: stamp the request with it when it is made.
    pub parent_view: RecordView,
}

/// Change of the root's availability, for logs and metrics.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    /// Unchanged.
    None,
    /// The request failed; the one before had succeeded.
    Failed,
    /// The request succeeded; the one before had failed.
    Recovered,
}

/// Loop of one room at one node.
#[derive(Clone, Debug)]
pub struct SyncLoop {
    pace: Pace,
    phase: Phase,
    begun: u64,
    ended: u64,
    /// Whether a visitor wants a sync, and none has begun since.
    is_sync_requested: bool,
    is_failing: bool,
    upstream_sync: Option<UpstreamSync>,
    upstream_syncs: u64,
    is_root_failing: bool,
    /// View of the parent's record.
    parent_view: RecordView,
    /// View of the root's record, if the root is not the parent. It stays at this node: in a data
    /// center's record its time would be late.
    root_view: RecordView,
    /// Time of the root's newest reply that the parent knows, from any node.
    root_as_of: Timestamp,
    /// Request to the root that is to be carried.
    to_carry: Option<SyncRequest>,
    /// Reply of the root, for the parent.
    news: Option<Reply>,
    is_root_reply_new: bool,
    stop: Stop,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Between two syncs.
    Idle {
        due_at: Timestamp,
        hurry_at: Timestamp,
    },
    /// A sync is under way.
    Syncing { fails_at: Timestamp },
    /// The last sync failed.
    Failed { until: Timestamp },
    /// The root's last reply is on its way to the parent.
    Delivering { fails_at: Timestamp },
    /// The node has left, and nothing is left to do.
    Finished,
}

/// Progress of the loop's shutdown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stop {
    /// The node runs.
    No,
    /// The node stops: the room is to return its leases.
    Requested,
    /// The room has returned its leases.
    Returned,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct UpstreamSync {
    number: u64,
    sent_at: Timestamp,
}

impl SyncLoop {
    /// Makes a loop that begins at `now`. `is_paced`: other nodes use the same store.
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
            is_sync_requested: false,
            is_failing: false,
            upstream_sync: None,
            upstream_syncs: 0,
            is_root_failing: false,
            parent_view: RecordView::default(),
            root_view: RecordView::default(),
            root_as_of: Timestamp::ZERO,
            to_carry: None,
            news: None,
            is_root_reply_new: false,
            stop: Stop::No,
        }
    }

    /// Returns the state that a visitor who waits for a sync needs.
    #[must_use]
    pub fn round(&self) -> Round {
        Round {
            begun: self.begun,
            ended: self.ended,
            is_failing: self.is_failing,
            is_root_failing: self.is_root_failing,
        }
    }

    /// Returns the state after the loop has ended: nothing to wait for.
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

    /// Whether the loop has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether this upstream sync is under way.
    #[must_use]
    pub fn is_upstream_sync_pending(&self, upstream_sync: u64) -> bool {
        self.upstream_sync
            .is_some_and(|present| present.number == upstream_sync)
    }

    /// Requests a sync as soon as possible.
    pub fn request_sync(&mut self) {
        self.is_sync_requested = true;
    }

    /// Whether a sync was requested, and none has begun since.
    #[must_use]
    pub fn is_sync_requested(&self) -> bool {
        self.is_sync_requested
    }

    /// Stops the loop: syncs under way end, then the room returns its leases.
    pub fn stop(&mut self) {
        if self.stop == Stop::No {
            self.stop = Stop::Requested;
        }
    }

    /// Returns the latest time for the next [`SyncLoop::poll_action`]; `None` once the loop has
    /// ended. `is_awaited`: a visitor waits for a sync.
    #[must_use]
    pub fn next_deadline(&self, is_awaited: bool, now: Timestamp) -> Option<Timestamp> {
        if self.to_carry.is_some() {
            return Some(now);
        }
        let own = match self.phase {
            Phase::Idle { .. } | Phase::Failed { .. } if self.stop != Stop::No => {
                // The node that carries a request brings its reply first.
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

    /// Returns the next action, if any. Call again until there is none.
    pub fn poll_action(&mut self, is_awaited: bool, now: Timestamp) -> Option<Action> {
        if self
            .upstream_sync
            .is_some_and(|upstream_sync| upstream_sync.sent_at + UPSTREAM_SYNC_TIME_OUT <= now)
        {
            self.end_upstream_sync(None, now);
        }
        if let Some(mut request) = self.to_carry.take() {
            // The ledger has given up on the upstream sync before.
            self.is_root_failing |= self.upstream_sync.is_some();
            self.upstream_syncs += 1;
            let number = self.upstream_syncs;
            let sent_at = now;
            self.root_view.stamp_carried(&mut request, now);
            self.upstream_sync = Some(UpstreamSync { number, sent_at });
            return Some(Action::SyncUpstream {
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
            return self.poll_shutdown(now);
        }
        is_due.then(|| Action::Sync(self.begin(is_awaited, now)))
    }

    /// Handles the parent's reply: `request` was the room's, `exchange` is the result. `jittered`
    /// makes a period a little shorter or longer, so that nodes do not stay in step. Returns
    /// whether this was the sync under way. An earlier one is over; the room still gets its reply.
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
        if !self.is_root_reply_new {
            self.news = None;
        }
        if let Some(lease) = exchange.root_lease {
            self.root_view.note_lease(lease, now);
        }
        let is_urgent = self.parent_view.handle_reply(&exchange.reply, now);
        self.note_root_reply(&exchange.reply);
        self.to_carry.clone_from(&exchange.upstream_sync);
        if let Some(request) = &self.to_carry {
            self.parent_view.note_carried(request);
        }
        let is_on_upstream_sync = self.upstream_sync.is_some() || self.to_carry.is_some();
        // Other nodes bring what is missing here and in the data center, and not before.
        let is_short = is_short(request, &exchange.reply);
        let back_after = exchange.other_sync_back_after;
        let back_after = back_after.filter(|_| is_short && !is_on_upstream_sync);
        let paced_at = self.pace.next_at(now);
        let period = match &exchange.reply {
            _ if is_urgent => DurationMs::ZERO,
            // It is granted nothing before its name is safe.
            Reply::Granted(lease_reply) if !lease_reply.is_safe => SYNC_PERIOD,
            _ => room.sync_period(),
        };
        let back_at = back_after.map_or(now, |after| now + after + AFTER_OTHERS);
        let short_until = if is_short {
            now + PAUSE_WHEN_SHORT
        } else {
            now
        };
        self.phase = Phase::Idle {
            due_at: now + jittered(period),
            hurry_at: paced_at.max(back_at).max(short_until),
        };
        self.schedule_delivery(now);
        true
    }

    /// Handles a failed sync. Returns whether it was the one under way.
    pub fn handle_failure(&mut self, round: u64, now: Timestamp) -> bool {
        let is_present = round == self.begun && matches!(self.phase, Phase::Syncing { .. });
        if is_present {
            self.fail(now);
        }
        is_present
    }

    /// Handles the root's reply. A reply to an earlier upstream sync, which counts as failed,
    /// changes nothing.
    pub fn handle_root_reply(
        &mut self,
        upstream_sync: u64,
        reply: Reply,
        now: Timestamp,
    ) -> Change {
        if !self.is_upstream_sync_pending(upstream_sync) {
            return Change::None;
        }
        self.end_upstream_sync(Some(reply), now)
    }

    /// Handles an upstream sync without a reply.
    pub fn handle_root_failure(&mut self, upstream_sync: u64, now: Timestamp) -> Change {
        if !self.is_upstream_sync_pending(upstream_sync) {
            return Change::None;
        }
        self.end_upstream_sync(None, now)
    }

    /// Handles the end of [`Action::Deliver`], successful or not.
    pub fn handle_delivered(&mut self) {
        if matches!(self.phase, Phase::Delivering { .. }) {
            self.phase = Phase::Finished;
        }
    }

    fn begins_at(&self, due_at: Timestamp, hurry_at: Timestamp, is_awaited: bool) -> Timestamp {
        if self.is_root_reply_new && is_awaited {
            return Timestamp::ZERO;
        }
        if !self.is_sync_requested {
            return due_at;
        }
        // A visitor who waits during an upstream sync waits for its result; but that may be lost.
        let upstream_sync_at = match self.upstream_sync {
            Some(upstream_sync) => upstream_sync.sent_at + SYNC_PERIOD,
            None => Timestamp::ZERO,
        };
        due_at.min(hurry_at.max(upstream_sync_at))
    }

    fn begin(&mut self, is_wanted: bool, now: Timestamp) -> Sync {
        self.begun += 1;
        self.is_sync_requested = false;
        self.is_root_reply_new = false;
        self.pace.note_sync(now);
        self.phase = Phase::Syncing {
            fails_at: now + TIMEOUT,
        };
        Sync {
            round: self.begun,
            is_wanted,
            root_reply: self.news.clone(),
            parent_view: self.parent_view.clone(),
        }
    }

    fn fail(&mut self, now: Timestamp) {
        self.is_failing = true;
        self.ended = self.begun;
        // Haste does not repair an unavailable store.
        let until = now + PAUSE_AFTER_FAILURE;
        self.phase = Phase::Failed { until };
    }

    fn end_upstream_sync(&mut self, reply: Option<Reply>, now: Timestamp) -> Change {
        self.upstream_sync = None;
        let was_failing = self.is_root_failing;
        self.is_root_failing = reply.is_none();
        if let Some(reply) = reply {
            self.root_view.handle_reply(&reply, now);
            self.news = Some(reply);
            self.is_root_reply_new = true;
            self.schedule_delivery(now);
        }
        match (was_failing, self.is_root_failing) {
            (false, true) => Change::Failed,
            (true, false) => Change::Recovered,
            _ => Change::None,
        }
    }

    /// Notes that another node's upstream sync succeeded: the root is available.
    fn note_root_reply(&mut self, reply: &Reply) {
        if let Reply::Granted(lease_reply) = reply
            && lease_reply.snapshot.root_as_of > self.root_as_of
        {
            self.root_as_of = lease_reply.snapshot.root_as_of;
            self.is_root_failing = false;
        }
    }

    /// Schedules a sync that takes the root's reply to the parent, if no visitor waits for it.
    fn schedule_delivery(&mut self, now: Timestamp) {
        if !self.is_root_reply_new {
            return;
        }
        if let Phase::Idle { due_at, .. } = &mut self.phase {
            *due_at = (*due_at).min(now);
        }
    }

    /// Returns all leases, so that nothing counts as possibly used. The last node of a data center
    /// also returns the leases of the data center. While the store is unavailable there is nothing
    /// to return them to.
    fn poll_shutdown(&mut self, now: Timestamp) -> Option<Action> {
        if self.upstream_sync.is_some() {
            return None;
        }
        if self.is_failing {
            self.phase = Phase::Finished;
            return None;
        }
        if self.stop != Stop::Returned {
            self.stop = Stop::Returned;
            return Some(Action::Goodbye(self.begin(false, now)));
        }
        // Only to inform a successor, which would find out anyway.
        match self.news.take() {
            Some(reply) => {
                let fails_at = now + TIMEOUT;
                self.phase = Phase::Delivering { fails_at };
                let record_time = self.parent_view.time(now);
                Some(Action::Deliver(Delivery { reply, record_time }))
            }
            None => {
                self.phase = Phase::Finished;
                None
            }
        }
    }
}

/// Whether the parent granted less than requested.
fn is_short(request: &SyncRequest, reply: &Reply) -> bool {
    match reply {
        Reply::Granted(lease_reply) => {
            let has = request
                .balance
                .seats
                .saturating_add(lease_reply.granted.seats);
            has < request
                .demand
                .slots
                .saturating_add(request.demand.movers_now)
        }
        Reply::Void { .. } | Reply::Stale => false,
    }
}

#[cfg(test)]
mod tests;
