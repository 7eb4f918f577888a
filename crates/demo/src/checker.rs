//! Checker of the limits: the origin's own count, from the headers that the gateway sends with each
//! request.
//!
//! The checker trusts only the headers of requests: not the gateway's counters, not those of the
//! visitors. It is pure: `now` is an argument. A [`Verdict`] takes the limits as an argument too,
//! so they may change while the checker counts.
//!
//! It does not see a visitor who was admitted and never sent a request.

mod deadlines;
mod origin_request;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use anteroom_room::id::VisitorId;
use anteroom_room::rules::Limits;
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use serde::Serialize;

use self::deadlines::Deadlines;
pub use self::origin_request::{ACCEPTED_AT, OriginRequest, ROOM, SEAT_ENDS, VISITOR};
pub(crate) use self::origin_request::{parse_millis, the_only};

/// Longest time after the end of its seat at which a request is not late.
///
/// Half a second is the tolerance between clocks of nodes. A larger value hides a gateway that lets
/// visitors overstay. Where nobody says when the visitor sent the request, this is also the longest
/// way to the origin: the gateway decides, then the request travels.
pub const ON_THE_WAY_MAX: DurationMs = DurationMs(500);

/// Counts visitors as the origin sees them.
///
/// # Invariants
///
/// - Expiry comes before counting: a visitor whose seat has ended at `now` is removed before the
///   next one is counted.
/// - Time does not go back: an earlier `now` counts as the latest one so far.
/// - Memory grows by one entry per admission and one per logout. A demo can afford that, a gateway
///   could not.
#[derive(Debug)]
pub struct Checker {
    session_duration: DurationMs,
    now: Timestamp,
    inside: Deadlines,
    seen: Deadlines,
    /// Visitors who have logged out, with the time.
    logged_out: BTreeMap<VisitorId, Timestamp>,
    /// Most visitors at a moment at which a logged-out one was let through.
    most_with_logged_out: usize,
    admissions: BTreeMap<Minute, BTreeSet<(VisitorId, Timestamp)>>,
    admission_count: u64,
    most_admissions: usize,
    requests: u64,
    without_headers: u64,
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

/// Counts of the origin, with the limits that should hold.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Verdict {
    /// The limit: visitors inside at once.
    pub total_active_users: u32,
    /// Most active visitors at once: distinct ones whose newest seat had not ended.
    pub most_inside: usize,
    /// The limit: admissions in one calendar minute.
    pub new_users_per_minute: u32,
    /// Most admissions in one calendar minute of `Anteroom-Accepted-At`.
    pub most_admissions_in_a_minute: usize,
    /// Visitors inside now.
    pub inside: usize,
    /// Most distinct visitors seen within one session duration; not checked against a limit.
    pub most_seen_in_a_session: usize,
    /// Distinct admissions seen.
    pub admissions: u64,
    /// Requests seen, with or without the headers.
    pub requests: u64,
    /// Visitors who logged out.
    pub revoked: u64,
    /// Requests sent later than [`ON_THE_WAY_MAX`] after the end of their seat.
    pub late_requests: u64,
    /// Other requests that arrived after the end of their seat.
    pub late_on_the_way_requests: u64,
    /// Longest time from a seat's end to the arrival of a request for it, in ms.
    pub late_ms_max: u64,
    /// Requests without the headers, which belong to no known visitor.
    pub unjudged_requests: u64,
}

impl Checker {
    /// Creates a checker without visitors. `session_duration` is only for `most_seen_in_a_session`.
    #[must_use]
    pub fn new(session_duration: DurationMs) -> Self {
        Self {
            session_duration,
            now: Timestamp::ZERO,
            inside: Deadlines::default(),
            seen: Deadlines::default(),
            logged_out: BTreeMap::new(),
            most_with_logged_out: 0,
            admissions: BTreeMap::new(),
            admission_count: 0,
            most_admissions: 0,
            requests: 0,
            without_headers: 0,
            revoked: 0,
            late: LateRequests::default(),
        }
    }

    /// Counts one request that arrived `now`.
    ///
    /// The request is late if the visitor sent it too long after the end of its seat. `sent_at` is
    /// that time; `None` counts as `now`. A request that was sent in time may wait anywhere: on a
    /// busy machine each process on its way may stand still for seconds.
    ///
    /// A visitor who was revoked and comes back with the same seat counts at that moment, because
    /// the checker counts who is let through. It does not count until the seat's end: as soon as
    /// all nodes reject it, another visitor may have the seat.
    pub fn observe(
        &mut self,
        sighting: &OriginRequest,
        sent_at: Option<Timestamp>,
        now: Timestamp,
    ) {
        self.advance(now);
        self.requests += 1;
        if sighting.seat_ends_at <= self.now {
            self.late.record(sighting, sent_at, self.now);
        } else if self.is_revoked(sighting) {
            let with_it = self.inside.len() + 1;
            self.most_with_logged_out = self.most_with_logged_out.max(with_it);
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
    pub fn observe_without_headers(&mut self, now: Timestamp) {
        self.advance(now);
        self.requests += 1;
        self.without_headers += 1;
    }

    /// Removes a visitor who logs out, at once.
    pub fn revoke(&mut self, visitor: VisitorId, now: Timestamp) {
        self.advance(now);
        self.seen.remove(visitor);
        self.logged_out.insert(visitor, self.now);
        if self.inside.remove(visitor) {
            self.revoked += 1;
        }
    }

    /// Returns the number of active visitors at `now`.
    pub fn inside(&mut self, now: Timestamp) -> usize {
        self.advance(now);
        self.inside.len()
    }

    /// Returns the counts until `now`, with `limits`.
    pub fn verdict(&mut self, limits: Limits, now: Timestamp) -> Verdict {
        self.advance(now);
        Verdict {
            total_active_users: limits.total_active_users,
            most_inside: self.inside.most().max(self.most_with_logged_out),
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
            unjudged_requests: self.without_headers,
        }
    }

    /// Whether this admission has been revoked.
    fn is_revoked(&self, sighting: &OriginRequest) -> bool {
        let ended_at = self.logged_out.get(&sighting.visitor);
        ended_at.is_some_and(|ended_at| sighting.accepted_at <= *ended_at)
    }

    fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.inside.expire(self.now);
        self.seen.expire(self.now);
    }
}

impl LateRequests {
    fn record(&mut self, request: &OriginRequest, sent_at: Option<Timestamp>, now: Timestamp) {
        if request.is_late(sent_at.unwrap_or(now)) {
            self.requests += 1;
        } else {
            self.on_the_way += 1;
        }
        self.longest = self.longest.max(now.since(request.seat_ends_at));
    }
}

impl Verdict {
    /// Whether more visitors were active at once than the limit allows.
    #[must_use]
    pub const fn is_over_total_active_users(&self) -> bool {
        self.most_inside > self.total_active_users as usize
    }

    /// Whether more visitors were admitted within one minute than the limit allows.
    #[must_use]
    pub const fn is_over_new_users_per_minute(&self) -> bool {
        self.most_admissions_in_a_minute > self.new_users_per_minute as usize
    }

    /// Whether both limits held, no visitor overstayed, and every request had the headers.
    ///
    /// A request without headers may be from any visitor, so one of them makes the result unproven.
    #[must_use]
    pub const fn is_within_limits(&self) -> bool {
        !self.is_over_total_active_users()
            && !self.is_over_new_users_per_minute()
            && self.late_requests == 0
            && self.unjudged_requests == 0
    }
}
