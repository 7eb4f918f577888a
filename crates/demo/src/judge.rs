//! Were the limits kept? The origin's own count, from what the gateway says with each request.
//!
//! The judge believes the headers of a request and nothing else: not the gateway's counters, not
//! the crowd's. It is pure: `now` is an argument. It does not know the limits until it is asked
//! for a [`Verdict`], so they may change while it counts.
//!
//! What it cannot see: a visitor who was admitted and never sent a request.

mod deadlines;
mod sighting;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use anteroom_room::id::VisitorId;
use anteroom_room::rules::Limits;
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use serde::Serialize;

use self::deadlines::Deadlines;
pub use self::sighting::{ACCEPTED_AT, OriginRequest, ROOM, SEAT_ENDS, VISITOR};

/// How late a request may be and still be put down to the way from the gateway to the origin.
///
/// The gateway decides, then the request travels, and on a busy machine it waits for the
/// processor. Half a second is the tolerance that nodes grant each other's clocks. Larger hides
/// a gateway that lets people overstay; smaller blames it for a busy machine.
pub const ON_THE_WAY_MAX: DurationMs = DurationMs(500);

/// Counts visitors as the origin sees them.
///
/// # Invariants
///
/// - Expiry comes before counting: whoever's seat has ended at `now` is out before anybody else
///   is counted in.
/// - Time does not go back: an earlier `now` than the last is taken as the last.
/// - The memory grows by one entry per admission and one per logout, which a demo can afford and a
///   gateway could not.
#[derive(Debug)]
pub struct Checker {
    session_duration: DurationMs,
    now: Timestamp,
    inside: Deadlines,
    seen: Deadlines,
    /// Who has logged out, and when.
    gone: BTreeMap<VisitorId, Timestamp>,
    /// Most inside at a moment at which one of them was let through.
    most_with_gone: usize,
    admissions: BTreeMap<Minute, BTreeSet<(VisitorId, Timestamp)>>,
    admission_count: u64,
    most_admissions: usize,
    requests: u64,
    unjudged: u64,
    revoked: u64,
    late: LateRequests,
}

/// Requests whose seat had ended when they arrived.
#[derive(Debug, Default)]
struct LateRequests {
    requests: u64,
    on_the_way: u64,
    longest: DurationMs,
}

/// What the origin counted, beside the limits it should have stayed within.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Verdict {
    /// The limit: visitors inside at once.
    pub total_active_users: u32,
    /// Most visitors inside at once: distinct ones whose newest seat had not ended.
    pub most_inside: usize,
    /// The limit: admissions in one calendar minute.
    pub new_users_per_minute: u32,
    /// Most admissions in one calendar minute of `Anteroom-Accepted-At`.
    pub most_admissions_in_a_minute: usize,
    /// Visitors inside now.
    pub inside: usize,
    /// Another measure, not judged: most distinct visitors seen within one session duration.
    pub most_seen_in_a_session: usize,
    /// Distinct admissions seen.
    pub admissions: u64,
    /// Requests seen, judged or not.
    pub requests: u64,
    /// Visitors who logged out.
    pub revoked: u64,
    /// Requests later than [`ON_THE_WAY_MAX`] after the end of their seat.
    pub late_requests: u64,
    /// Requests after the end of their seat by no more than that.
    pub late_on_the_way_requests: u64,
    /// How late the latest of either was.
    pub late_ms_max: u64,
    /// Requests that came without the headers, so that nobody knows whose they were.
    pub unjudged_requests: u64,
}

impl Checker {
    /// A judge who has seen nobody. `session_duration` is only for the second measure.
    #[must_use]
    pub fn new(session_duration: DurationMs) -> Self {
        Self {
            session_duration,
            now: Timestamp::ZERO,
            inside: Deadlines::default(),
            seen: Deadlines::default(),
            gone: BTreeMap::new(),
            most_with_gone: 0,
            admissions: BTreeMap::new(),
            admission_count: 0,
            most_admissions: 0,
            requests: 0,
            unjudged: 0,
            revoked: 0,
            late: LateRequests::default(),
        }
    }

    /// Counts one request that arrived `now`.
    ///
    /// A visitor who was revoked and comes back with the same seat is inside at that moment: the
    /// judge counts who is let through, not who should be. It is not counted until the seat's end,
    /// for as soon as all nodes refuse it the seat may be somebody else's.
    pub fn observe(&mut self, sighting: &OriginRequest, now: Timestamp) {
        self.advance(now);
        self.requests += 1;
        if sighting.seat_ends_at <= self.now {
            self.late.record(self.now.since(sighting.seat_ends_at));
        } else if self.is_gone(sighting) {
            let with_it = self.inside.len() + 1;
            self.most_with_gone = self.most_with_gone.max(with_it);
        } else {
            self.inside.extend(sighting.visitor, sighting.seat_ends_at);
        }
        let seen_until = self.now + self.session_duration;
        self.seen.extend(sighting.visitor, seen_until);
        let minute = self
            .admissions
            .entry(sighting.accepted_at.minute())
            .or_default();
        if minute.insert((sighting.visitor, sighting.accepted_at)) {
            self.admission_count += 1;
            self.most_admissions = self.most_admissions.max(minute.len());
        }
    }

    /// Counts one request that came without readable headers.
    pub fn observe_unjudged(&mut self, now: Timestamp) {
        self.advance(now);
        self.requests += 1;
        self.unjudged += 1;
    }

    /// A visitor logged out: it leaves at once.
    pub fn revoke(&mut self, visitor: VisitorId, now: Timestamp) {
        self.advance(now);
        self.seen.remove(visitor);
        self.gone.insert(visitor, self.now);
        if self.inside.remove(visitor) {
            self.revoked += 1;
        }
    }

    /// How many are inside `now`.
    pub fn inside(&mut self, now: Timestamp) -> usize {
        self.advance(now);
        self.inside.len()
    }

    /// What was counted until `now`, beside `limits`.
    pub fn verdict(&mut self, limits: Limits, now: Timestamp) -> Verdict {
        self.advance(now);
        Verdict {
            total_active_users: limits.total_active_users,
            most_inside: self.inside.most().max(self.most_with_gone),
            new_users_per_minute: limits.new_users_per_minute,
            most_admissions_in_a_minute: self.most_admissions,
            inside: self.inside.len(),
            most_seen_in_a_session: self.seen.most(),
            admissions: self.admission_count,
            requests: self.requests,
            revoked: self.revoked,
            late_requests: self.late.requests,
            late_on_the_way_requests: self.late.on_the_way,
            late_ms_max: self.late.longest.0,
            unjudged_requests: self.unjudged,
        }
    }

    /// Whether this admission was ended before.
    fn is_gone(&self, sighting: &OriginRequest) -> bool {
        let ended_at = self.gone.get(&sighting.visitor);
        ended_at.is_some_and(|ended_at| sighting.accepted_at <= *ended_at)
    }

    fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.inside.expire(self.now);
        self.seen.expire(self.now);
    }
}

impl LateRequests {
    fn record(&mut self, by: DurationMs) {
        if by > ON_THE_WAY_MAX {
            self.requests += 1;
        } else {
            self.on_the_way += 1;
        }
        self.longest = self.longest.max(by);
    }
}

impl Verdict {
    /// More visitors were inside at once than the limit allows.
    #[must_use]
    pub const fn is_over_total_active_users(&self) -> bool {
        self.most_inside > self.total_active_users as usize
    }

    /// More visitors came in within one minute than the limit allows.
    #[must_use]
    pub const fn is_over_new_users_per_minute(&self) -> bool {
        self.most_admissions_in_a_minute > self.new_users_per_minute as usize
    }

    /// Both limits were kept, nobody overstayed, and every request could be judged.
    ///
    /// An unjudged request may be anybody's, so with one of them nothing is proved.
    #[must_use]
    pub const fn is_within_limits(&self) -> bool {
        !self.is_over_total_active_users()
            && !self.is_over_new_users_per_minute()
            && self.late_requests == 0
            && self.unjudged_requests == 0
    }
}
