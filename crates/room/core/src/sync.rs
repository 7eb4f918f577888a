//! Messages between a child and its parent. All counts are absolute, so a message that comes twice
//! or late does no harm.
//!
//! A node is the child of a ledger, and the ledger of a data center is the child of the root's.
//! Both use the same messages. This module does not know how messages travel; a store runs the
//! ledger on them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::estimate::LOOK_AHEAD;
use crate::id::{DataCenterId, Epoch, Incarnation, NodeId, VisitorId};
use crate::rules::{Limits, NewUsersWindow};
use crate::seats::SeatRow;
use crate::store::{Identity, StoreFacts};
use crate::time::{DurationMs, Minute, Timestamp};
use crate::wait_forecast::END_PARTS;
use crate::waiting::WaitingForecast;
use crate::watermark::{WaitingCounts, Watermark};

/// Report and request of a child to its parent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SyncRequest {
    /// Sender: one start of a node, or one incarnation of a data center's ledger.
    pub child: NodeId,
    /// Process of the sender: a node's, or the ledger itself.
    pub process: NodeId,
    /// Earlier processes on the same data folder: they have ended, and admit nobody any more.
    pub replaces: Vec<NodeId>,
    /// Data center of the child. Children of one data center move each other's seats.
    pub data_center: DataCenterId,
    /// Time of sending, by the clocks that write tickets.
    pub sent_at: Timestamp,
    /// Knowledge of the node that sends this about the parent's record.
    pub stamp: RecordStamp,
    /// Whether the sender is the ledger of a data center, and not a node.
    pub is_of_ledger: bool,
    /// Whether the ledger of a data center sends this only to join: its carrier is not safe in the
    /// record yet.
    pub is_join: bool,
    /// Latest time up to which the parent had freed ended intervals, as far as the child knows.
    pub known_closed: Timestamp,
    /// Whether the clock was read after the child's first reply from `parent`. A data center has no
    /// clock of its own: if none of its nodes has synced for long, it reports an old time.
    pub is_read_under_parent: bool,
    /// Incarnation of the parent that this report is for; `None` before the first reply.
    pub parent: Option<Incarnation>,
    /// Incarnation whose void made the child start over; `None` once it has a lease.
    pub voided_by: Option<Incarnation>,
    /// Epoch under which seats that still run were given, as far as the child knows. It shows a
    /// ledger of another epoch that it lost its record.
    pub witnessed_epoch: Option<Epoch>,
    /// Number of the request, rising; a reply counts only for the newest.
    pub number: u64,
    /// Newest request whose reply was applied; `None` before the first.
    pub applied_reply: Option<u64>,
    /// Generation of the lease that `balance` and the row belong to; `None` if the child has none
    /// yet.
    pub generation: Option<u32>,
    /// Whether that lease has ended by the child's clock. The child did nothing under it that is
    /// not reported here, and never will.
    pub is_final: bool,
    /// Unused balance of the lease, without the part that this request returns.
    pub balance: LeaseBalance,
    /// Balance that the child would like to have.
    pub demand: LeaseDemand,
    /// Usage of all its leases since `parent` began.
    pub used: LeaseUsage,
    /// Admissions of recent minutes, oldest first; at most [`MINUTES_KEPT`].
    pub admitted: Vec<(Minute, u32)>,
    /// Changes that it made to the seats.
    pub row: SeatRow,
    /// Time by which it treats every ending ticket as over.
    pub closed_through: Timestamp,
    /// Longest seat that it gives before the next reply.
    pub longest_seat: DurationMs,
    /// Longest seat that it knows any node to have given.
    pub longest_known: DurationMs,
    /// Number of nodes below this child, itself included.
    pub nodes: u32,
    /// Waiting visitors below it, now and later if none of them refreshes.
    pub waiting: WaitingForecast,
    /// Sessions ended early that the parent has not confirmed yet.
    pub revocations: Vec<Revocation>,
    /// Version of its list of revocations.
    pub revoked_version: u64,
    /// Version of that list up to which it rejects all tickets, and all nodes below it do.
    pub rejects_through: u64,
    /// Settings of the room in its configuration.
    pub settings: RoomFacts,
    /// Whether this is its last report: it has returned everything and does nothing more.
    pub is_leaving: bool,
}

/// Knowledge of a node about a record when it sends a request there ([`crate::record_view`]).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RecordStamp {
    /// Time of the record, as the node estimates it; `None` before its first reply.
    pub time: Option<Timestamp>,
    /// Identity of the store in the newest reply; `None` before the first.
    pub store: Option<Identity>,
    /// Generation of the child's lease, if the store cannot forget it any more.
    pub safe_generation: Option<u32>,
    /// Part of the record that a server cannot have lost; `None` if the node has not seen it for
    /// long enough.
    pub kept: Option<Kept>,
    /// Newest request of this record that the node carried to the root.
    pub carried: Option<u64>,
    /// Windows of time that have passed since earlier replies.
    pub passed: PassedWindows,
}

/// Record times of the newest replies that arrived longer ago than a window. What the record had
/// counted before those replies is out of the window. `None` before there is such a reply.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PassedWindows {
    /// Reply that arrived more than a second ago.
    pub second: Option<Timestamp>,
    /// Reply that arrived more than 60 s ago.
    pub minute: Option<Timestamp>,
}

/// Part of a record that a server cannot have lost, unless it broke its promise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kept {
    /// Identity of the server.
    pub store: Identity,
    /// Time of the record up to which the server has all of it.
    pub through: Timestamp,
}

/// Minutes of admissions that a child reports and a ledger keeps: enough for a history on the state
/// page, few enough to repeat in every message.
pub const MINUTES_KEPT: usize = 6;

/// Unused amounts of a lease.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseBalance {
    /// Seats.
    pub seats: u32,
    /// Admissions of `minute`.
    pub admissions: u32,
    /// Admissions of the minute after it, granted shortly before it begins.
    pub next_minute: u32,
    /// Minute of the admissions.
    pub minute: Minute,
    /// Renewal credits.
    pub credits: u32,
}

impl LeaseBalance {
    /// Returns the admissions of `minute`.
    #[must_use]
    pub fn admissions_of(&self, minute: Minute) -> u32 {
        let held = self.by_minute().into_iter().find(|(of, _)| *of == minute);
        held.map_or(0, |(_, count)| count)
    }

    /// Returns the sum of both; `other` is of the same minute.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            seats: self.seats + other.seats,
            admissions: self.admissions + other.admissions,
            next_minute: self.next_minute + other.next_minute,
            minute: self.minute,
            credits: self.credits + other.credits,
        }
    }

    /// Whether all amounts are zero.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.seats == 0 && self.admissions == 0 && self.next_minute == 0 && self.credits == 0
    }

    /// Returns the admissions, each with its minute.
    #[must_use]
    pub fn by_minute(&self) -> [(Minute, u32); 2] {
        [
            (self.minute, self.admissions),
            (self.minute.next(), self.next_minute),
        ]
    }

    /// Returns the admissions of `minute`, if they can be leased at all.
    pub(crate) fn admissions_mut(&mut self, minute: Minute) -> Option<&mut u32> {
        if minute == self.minute {
            Some(&mut self.admissions)
        } else if minute == self.minute.next() {
            Some(&mut self.next_minute)
        } else {
            None
        }
    }

    /// Adds the admissions of `part`, each to its minute. Those of other minutes are worth nothing.
    pub(crate) fn add_admissions(&mut self, part: &Self) {
        for (minute, count) in part.by_minute() {
            if let Some(admissions) = self.admissions_mut(minute) {
                *admissions = admissions.saturating_add(count);
            }
        }
    }

    /// Advances to `minute`: admissions expire with their own.
    pub(crate) fn turn_to(&mut self, minute: Minute) {
        if minute != self.minute {
            self.admissions = self.admissions_of(minute);
            self.next_minute = 0;
            self.minute = minute;
        }
    }
}

/// Amounts that a child would like to have, its balance included.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseDemand {
    /// Seats, and as many admissions.
    pub slots: u32,
    /// Admissions of the minute after the running one.
    pub next_minute: u32,
    /// Seats on top of its balance and of `slots`, for active visitors who come from another data
    /// center. They have priority over waiting visitors.
    pub movers_now: u32,
    /// Seats that it would like to find free for more such visitors.
    pub movers_expected: u32,
    /// Seats of its balance that are for such visitors: they do not count towards `slots`.
    pub movers_reserved: u32,
    /// Renewal credits.
    pub credits: u32,
}

/// Amounts that a child used of its leases since its parent's incarnation began; they only rise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseUsage {
    /// Seats.
    pub seats: u64,
    /// Renewal credits.
    pub credits: u64,
}

/// Session that the origin ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Revocation {
    /// Visitor of the session.
    pub visitor: VisitorId,
    /// Newest known end of its seat, which is freed. `None` if no seat is to be freed: another node
    /// freed it, or may have.
    pub seat_ends_at: Option<Timestamp>,
    /// Time until which tickets of this visitor are rejected: none can end later.
    pub until: Timestamp,
}

impl Revocation {
    /// Returns this revocation without a seat to free.
    #[must_use]
    pub fn without_seat(self) -> Self {
        Self {
            seat_ends_at: None,
            ..self
        }
    }
}

/// Settings of a room that its ledger must know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RoomFacts {
    /// Ceilings of active visitors and of admissions.
    pub limits: Limits,
    /// Window that the limit of admissions is for.
    pub window: NewUsersWindow,
    /// Longest seat under the rules.
    pub longest_seat: DurationMs,
    /// Whether a minute's admissions are spread over the minute while visitors wait.
    pub pacing: bool,
    /// Whether nodes compute budgets from traffic by data center.
    pub needs_traffic: bool,
}

impl RoomFacts {
    /// Returns the lower limits and the longer seats of two.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let (a, b) = (self.limits, other.limits);
        Self {
            limits: Limits {
                total_active_users: a.total_active_users.min(b.total_active_users),
                new_users_per_minute: a.new_users_per_minute.min(b.new_users_per_minute),
            },
            window: self.window.stricter(other.window),
            longest_seat: self.longest_seat.max(other.longest_seat),
            pacing: self.pacing || other.pacing,
            needs_traffic: self.needs_traffic || other.needs_traffic,
        }
    }
}

/// Reply of a parent.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every reply is the large one, and each is moved once"
)]
pub enum Reply {
    /// A lease, new or extended.
    Granted(LeaseReply),
    /// End of the lease named in the request: nothing of it may be used. The child sends a final
    /// report, and starts over.
    Void {
        /// Child that sent the request.
        child: NodeId,
        /// Number of the request.
        number: u64,
        /// Incarnation of the parent. If it is not the one that granted, the child begins a new
        /// row: its earlier changes are counted elsewhere.
        incarnation: Incarnation,
        /// Store of the record.
        store: StoreFacts,
    },
    /// Empty reply: the parent has already replied to a newer request.
    Stale,
}

/// Lease, and a snapshot of the room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeaseReply {
    /// Child that sent the request. A store's record may have begun another incarnation meanwhile.
    pub child: NodeId,
    /// Number of the request.
    pub number: u64,
    /// Incarnation of the parent.
    pub incarnation: Incarnation,
    /// Time of the record at this reply ([`crate::record_view`]).
    pub record_time: Timestamp,
    /// Store of the record.
    pub store: StoreFacts,
    /// Whether the child's name is safe in the record: before, it is granted nothing.
    pub is_safe: bool,
    /// Generation of the lease; `None` if the child has none.
    pub generation: Option<u32>,
    /// Amounts granted on top of the balance in the request.
    pub granted: LeaseBalance,
    /// Length of the lease, counted by the child from the moment it *sent* the request.
    pub ttl: DurationMs,
    /// Longest seat that may be given under it.
    pub longest_seat: DurationMs,
    /// Version of the list of revocations, with the entries that the child lacks or reported.
    pub revoked: Option<(u64, Vec<Revocation>)>,
    /// Latest clock that another child has shown; `None` if there is none.
    pub other_clock: Option<OtherClock>,
    /// Room as the ledger sees it.
    pub snapshot: Snapshot,
}

/// Clock of a child at the time of a reply to another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OtherClock {
    /// Process of the child.
    pub process: NodeId,
    /// Time of its clock.
    pub at: Timestamp,
}

/// Cause of a time in which a ledger grants no slots.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClosedBy {
    /// The record is new, and may have replaced a lost one.
    MaybeFirstStart,
    /// The record was lost, or its newest part.
    LostRecord,
    /// Lost record, where an operator knows that nobody is active.
    LostRecordWithoutVisitors,
    /// The store came back, and so many children have not reported to it.
    MissingReports(u32),
    /// The store may still forget the child that gets this snapshot.
    UnsafeName,
}

impl ClosedBy {
    /// Returns the name in the interface.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaybeFirstStart => "maybe_first_start",
            Self::LostRecord => "lost_record",
            Self::LostRecordWithoutVisitors => "lost_record_without_visitors",
            Self::MissingReports(_) => "missing_reports",
            Self::UnsafeName => "unsafe_name",
        }
    }
}

/// Room as its ledger sees it at the moment of a reply.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Snapshot {
    /// Time of the reply.
    pub as_of: Timestamp,
    /// Time of the root's reply that a data center's ledger passes on.
    pub root_as_of: Timestamp,
    /// Waiting visitors who may take a slot.
    pub watermark: Watermark,
    /// Slots that come free within [`crate::estimate::WATERMARK_AHEAD`]; the watermark follows from
    /// them.
    pub slots: u32,
    /// Slots that come free before the end of a round of `random`, which is longer.
    pub slots_in_round: u32,
    /// Slots that come free before each of [`crate::estimate::LOOK_AHEAD`] has passed.
    pub slots_ahead: [u32; LOOK_AHEAD.len()],
    /// Time at which the next ending seat can be granted again, if nothing is late.
    pub next_free_at: Timestamp,
    /// Seats that end in each of these parts of the longest seat from now on
    /// ([`crate::wait_forecast`]). Those of the first one may have ended and are not free yet.
    pub ends_ahead: [u32; END_PARTS],
    /// Part of `slots` that is left when all waiting visitors have one: for newcomers.
    pub slots_to_spare: u32,
    /// Active visitors, as far as reported.
    pub active: u32,
    /// Seats that a child without reports may have given.
    pub phantoms: u32,
    /// Seats that are leased and unused.
    pub leased: u32,
    /// Seats that are neither taken nor leased.
    pub seats_free: u32,
    /// Seats that active visitors lack in their present data center: they have priority over other
    /// grants.
    pub seats_owed: u32,
    /// Admissions that may still be granted now, pacing included.
    pub admissions_free: u32,
    /// Whether none is free because the last second's are used up, while the minute has more and
    /// nobody waits. A newcomer then waits for the next second's.
    pub is_second_used_up: bool,
    /// Admissions by minute, oldest first, the running minute last.
    pub admitted: Vec<(Minute, u32)>,
    /// Number of all waiting visitors.
    pub waiting: u32,
    /// Waiting visitors by rank, in few entries ([`crate::watermark::compact`]).
    pub queue: Arc<WaitingCounts>,
    /// Time up to which ended intervals have freed their seats.
    pub closed_through: Timestamp,
    /// Epoch in which seats are counted.
    pub epoch: Epoch,
    /// Time before which nothing is granted.
    pub reopens_at: Option<Timestamp>,
    /// Cause of that.
    pub closed_by: Option<ClosedBy>,
    /// Nodes with a live lease, in all data centers.
    pub nodes: u32,
    /// Nodes with a live lease, in this data center.
    pub nodes_here: u32,
    /// Admissions of the last full minute by data center, where the allocation needs them.
    pub traffic: Arc<Vec<(DataCenterId, u32)>>,
    /// Longest seat that was ever given.
    pub longest_known: DurationMs,
    /// Delay that the slowest of them adds to the freeing of intervals.
    pub closing_lag: DurationMs,
    /// Version of the root's list of revocations up to which all nodes reject tickets.
    pub rejected_through: u64,
}

impl Snapshot {
    /// Whether another request to the parent right away, at `now`, is of no use.
    #[must_use]
    pub fn is_exhausted(&self, now: Timestamp) -> bool {
        let is_closed = self.reopens_at.is_some_and(|at| now < at);
        let has_admissions = self.admissions_free > 0 || self.is_second_used_up;
        self.seats_free == 0 || !has_admissions || is_closed
    }

    /// Takes out a waiting visitor who was admitted since.
    pub(crate) fn take_waiting(&mut self, rank: Timestamp) {
        self.waiting = self.waiting.saturating_sub(1);
        Arc::make_mut(&mut self.queue).take_one(rank);
    }

    /// Notes that nothing is granted before `at`. The latest such time counts.
    pub(crate) fn close_until(&mut self, at: Timestamp, by: ClosedBy) {
        if self.reopens_at < Some(at) {
            (self.reopens_at, self.closed_by) = (Some(at), Some(by));
        }
    }

    /// Returns the admissions in `minute`, as far as known.
    #[must_use]
    pub fn admitted_in(&self, minute: Minute) -> u32 {
        self.admitted
            .iter()
            .find(|(known, _)| *known == minute)
            .map_or(0, |&(_, count)| count)
    }
}
