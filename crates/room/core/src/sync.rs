//! What a child and its parent tell each other. All figures are absolute, so that a message that
//! comes twice or late does no harm.
//!
//! A node is the child of a ledger, and the ledger of a data center is the child of the root's:
//! both speak the same words. How messages travel is not known here; a store runs the ledger on
//! them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::estimate::LOOK_AHEAD;
use crate::id::{DataCenterId, Epoch, Incarnation, NodeId, VisitorId};
use crate::rules::Limits;
use crate::seats::SeatRow;
use crate::time::{DurationMs, Minute, Timestamp};
use crate::watermark::{WaitingCounts, Watermark};

/// What a child tells its parent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SyncRequest {
    /// Who speaks: one life of a node, or of the ledger of a data center.
    pub child: NodeId,
    /// The process that speaks: a node's, or the ledger itself.
    pub process: NodeId,
    /// Processes that ran where this one runs, and are dead: nobody passes visitors in their names.
    pub replaces: Vec<NodeId>,
    /// Where. Children of one data center move each other's seats.
    pub data_center: DataCenterId,
    /// When it speaks, by the clocks that write tickets.
    pub sent_at: Timestamp,
    /// Whether the clock was read after the child had heard of `parent`. A data center has no clock
    /// of its own: where none of its nodes has spoken for long, it tells a time of long ago.
    pub is_read_under_parent: bool,
    /// The life of the parent to which all that is said here belongs; `None` before the first
    /// answer.
    pub parent: Option<Incarnation>,
    /// The epoch under which seats that still run were given, as far as the child knows. A ledger
    /// of another epoch learns from it that it has lost its memory.
    pub witnessed: Option<Epoch>,
    /// Rises with every request; an answer counts only for the newest.
    pub number: u64,
    /// The newest request whose answer was applied; `None` before the first.
    pub answered: Option<u64>,
    /// The lease to which `held` and the row belong; `None` if the child has none yet.
    pub generation: Option<u32>,
    /// That lease has ended by the child's clock: it has done nothing under it that is not
    /// reported here, and never will.
    pub is_final: bool,
    /// What it holds unused, after lowering it by what it gives back.
    pub held: LeaseBalance,
    /// How many it would like to hold.
    pub wants: LeaseDemand,
    /// What it has used of all that it was ever lent, since `parent` began.
    pub used: LeaseUsage,
    /// Its admissions of recent minutes, oldest first; at most [`MINUTES_KEPT`].
    pub admitted: Vec<(Minute, u32)>,
    /// What it did to the seats.
    pub row: SeatRow,
    /// It treats every ticket that ends by then as over.
    pub closed_through: Timestamp,
    /// It gives out no seat longer than this before the next answer.
    pub longest_seat: DurationMs,
    /// The longest seat that it knows to have been given by anybody.
    pub longest_known: DurationMs,
    /// Nodes that it speaks for.
    pub nodes: u32,
    /// Who waits at it.
    pub waiting: WaitingCounts,
    /// Sessions ended early that the parent has not confirmed yet.
    pub revocations: Vec<Revocation>,
    /// The newest list of revocations it has.
    pub revoked_version: u64,
    /// Up to which version of that list it refuses all tickets, and so does everybody below it.
    pub refuses_through: u64,
    /// What its configuration says.
    pub terms: RoomFacts,
    /// It says goodbye: it holds nothing and will do nothing more.
    pub is_leaving: bool,
}

/// How many minutes of admissions a child reports and a ledger keeps: enough for a history on the
/// state page, few enough to repeat in every message.
pub const MINUTES_KEPT: usize = 6;

/// What a child holds unused.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseBalance {
    /// Seats.
    pub seats: u32,
    /// Admissions of `minute`.
    pub admissions: u32,
    /// Admissions of the minute after it, lent shortly before it begins.
    pub ahead: u32,
    /// The minute for which the admissions were lent.
    pub minute: Minute,
    /// Renewal credits.
    pub credits: u32,
}

impl LeaseBalance {
    /// What is held of `minute`.
    #[must_use]
    pub fn admissions_of(&self, minute: Minute) -> u32 {
        let held = self.by_minute().into_iter().find(|(of, _)| *of == minute);
        held.map_or(0, |(_, count)| count)
    }

    /// Both together, of which `other` is of the same minute.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            seats: self.seats + other.seats,
            admissions: self.admissions + other.admissions,
            ahead: self.ahead + other.ahead,
            minute: self.minute,
            credits: self.credits + other.credits,
        }
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.seats == 0 && self.admissions == 0 && self.ahead == 0 && self.credits == 0
    }

    /// The admissions, each with its minute.
    #[must_use]
    pub fn by_minute(&self) -> [(Minute, u32); 2] {
        [
            (self.minute, self.admissions),
            (self.minute.next(), self.ahead),
        ]
    }

    /// The figure for `minute`, if admissions of it can be held at all.
    pub(crate) fn admissions_mut(&mut self, minute: Minute) -> Option<&mut u32> {
        if minute == self.minute {
            Some(&mut self.admissions)
        } else if minute == self.minute.next() {
            Some(&mut self.ahead)
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

    /// Turns to `minute`: admissions die with their own.
    pub(crate) fn turn_to(&mut self, minute: Minute) {
        if minute != self.minute {
            self.admissions = self.admissions_of(minute);
            self.ahead = 0;
            self.minute = minute;
        }
    }
}

/// How many a child would like to hold, what it holds included.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseDemand {
    /// Seats and admissions alike.
    pub slots: u32,
    /// Admissions of the minute after the running one.
    pub ahead: u32,
    /// Seats beyond those that it holds, and beyond `slots`: visitors who are inside elsewhere ask
    /// for them, and come before those who wait.
    pub first: u32,
    /// Seats that it would like to find free when more such visitors ask.
    pub later: u32,
    /// Of the seats that it holds, those that are for such visitors: they do not count towards
    /// `slots`.
    pub kept: u32,
    /// Renewal credits.
    pub credits: u32,
}

/// What a child has used up of what it was lent, counted since its parent's life began; figures
/// only rise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseUsage {
    /// Seats.
    pub seats: u64,
    /// Renewal credits.
    pub credits: u64,
}

/// A session that the origin ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Revocation {
    /// Whose.
    pub visitor: VisitorId,
    /// The newest seat end known; this seat is freed. `None`: none is, because it was freed
    /// elsewhere or may have been.
    pub seat_ends_at: Option<Timestamp>,
    /// Until when tickets of this visitor must be refused: none can end later.
    pub until: Timestamp,
}

impl Revocation {
    /// The same, freeing no seat.
    #[must_use]
    pub fn without_seat(self) -> Self {
        Self {
            seat_ends_at: None,
            ..self
        }
    }
}

/// The facts of a room that its ledger must know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RoomFacts {
    /// The two ceilings.
    pub limits: Limits,
    /// The longest seat that the rules ask for.
    pub longest_seat: DurationMs,
    /// Spread a minute's admissions over the minute while people wait.
    pub pacing: bool,
    /// Whether nodes compute budgets from traffic by data center.
    pub needs_traffic: bool,
}

impl RoomFacts {
    /// The lower limits and the longer seats of two.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let (a, b) = (self.limits, other.limits);
        Self {
            limits: Limits {
                total_active_users: a.total_active_users.min(b.total_active_users),
                new_users_per_minute: a.new_users_per_minute.min(b.new_users_per_minute),
            },
            longest_seat: self.longest_seat.max(other.longest_seat),
            pacing: self.pacing || other.pacing,
            needs_traffic: self.needs_traffic || other.needs_traffic,
        }
    }
}

/// What a parent answers.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every reply is the large one, and each is moved once"
)]
pub enum Reply {
    /// A lease, new or prolonged.
    Granted(Answer),
    /// The lease named in the request was given up: nothing of it may be used. The child reports
    /// once more, finally, and starts anew.
    Void {
        /// Who asked.
        child: NodeId,
        /// The request that this answers.
        number: u64,
        /// Who says so. If it is not the life that lent, the child begins a new row: what it did
        /// before is counted elsewhere.
        incarnation: Incarnation,
    },
    /// A newer request has been answered already.
    Stale,
}

/// A lease and the outlook.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Who asked. A store's record may have begun another life meanwhile.
    pub child: NodeId,
    /// The request that this answers.
    pub number: u64,
    /// Who lends.
    pub incarnation: Incarnation,
    /// The lease; `None` if the child has none.
    pub generation: Option<u32>,
    /// What is lent on top of what the request said was held.
    pub granted: LeaseBalance,
    /// How long the lease runs, counted by the child from the moment it *sent* the request.
    pub ttl: DurationMs,
    /// The longest seat that may be given out under it.
    pub longest_seat: DurationMs,
    /// The version of the list of revocations, and what the child lacks of it or has asked about.
    pub revoked: Option<(u64, Vec<Revocation>)>,
    /// Waiting visitors left by a former life, handed to this child.
    pub inherited: WaitingCounts,
    /// The room as the ledger sees it.
    pub snapshot: Snapshot,
}

/// The room as its ledger sees it, the moment it answered.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Snapshot {
    /// When that was.
    pub as_of: Timestamp,
    /// When the root said so; a data center's ledger passes on what it heard a while ago.
    pub root_as_of: Timestamp,
    /// Who may take a slot.
    pub watermark: Watermark,
    /// What the watermark was computed from: slots that come free before the next round.
    pub slots: u32,
    /// The same before the end of a round of `random`, which is longer.
    pub slots_in_round: u32,
    /// The same before each of [`crate::estimate::LOOK_AHEAD`] has passed: whose turn may come
    /// when.
    pub slots_ahead: [u32; LOOK_AHEAD.len()],
    /// When the next seat that ends can be given to somebody else, if nothing is late.
    pub next_free_at: Timestamp,
    /// Of `slots`, how many are left over when all who wait have got theirs: for newcomers.
    pub slots_to_spare: u32,
    /// Visitors inside, as far as reported.
    pub inside: u32,
    /// Seats that a silent child may have given.
    pub phantoms: u32,
    /// Seats lent and unused.
    pub lent: u32,
    /// Seats that nobody has.
    pub seats_free: u32,
    /// Seats that visitors who are inside lack where they are now: no other is lent before them.
    pub seats_owed: u32,
    /// Admissions that may still be lent now, pacing included.
    pub admissions_free: u32,
    /// Admissions by minute, oldest first, the running minute last.
    pub admitted: Vec<(Minute, u32)>,
    /// Who waits, in all.
    pub waiting: u32,
    /// Who waits, by rank, in few figures ([`crate::watermark::compact`]).
    pub line: Arc<WaitingCounts>,
    /// Intervals up to here have given their seats back.
    pub closed_through: Timestamp,
    /// The epoch in which seats are counted.
    pub epoch: Epoch,
    /// Nothing is lent before this.
    pub reopens_at: Option<Timestamp>,
    /// Nodes with a live lease, in the world.
    pub nodes: u32,
    /// Of those, the ones in this data center.
    pub nodes_here: u32,
    /// Admissions of the last full minute by data center, where the allocation needs them.
    pub traffic: Arc<Vec<(DataCenterId, u32)>>,
    /// The longest seat that was ever given.
    pub longest_known: DurationMs,
    /// How far the slowest of them holds back the freeing of intervals.
    pub closing_lag: DurationMs,
    /// Up to which version of the root's list of revocations all nodes refuse tickets.
    pub refused_through: u64,
}

impl Snapshot {
    /// Whether asking the parent again right away is of no use.
    #[must_use]
    pub fn is_dry(&self) -> bool {
        self.seats_free == 0 || self.admissions_free == 0 || self.reopens_at.is_some()
    }

    /// Admissions in `minute`, as far as known.
    #[must_use]
    pub fn admitted_in(&self, minute: Minute) -> u32 {
        self.admitted
            .iter()
            .find(|(known, _)| *known == minute)
            .map_or(0, |&(_, count)| count)
    }
}
