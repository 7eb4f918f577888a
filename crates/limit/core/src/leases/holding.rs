//! Node's half of a lease: leases of one client, requests for more, and decisions.
//!
//! Facts come in by `handle_*`, requests go out by [`Holding::poll_request`]. A request of a client
//! is decided at once, or waits for a reply ([`Decision::Wait`]) and is decided again then.
//!
//! All times are those of one monotonic clock of the node.
//!
//! # Invariants
//!
//! - Whatever is spent was leased before, less than the length of a lease ago. A lease counts from
//!   when the node sent the read behind the reply, less a margin for drifting clocks.
//! - Only the reply to the newest request counts, and once.

use crate::cost::Cost;
use crate::leases::demand::Demand;
use crate::leases::lease::{Lease, Leases};
use crate::leases::message::{LeaseReply, Request, RequestId};
use crate::leases::widened::{LeasedLimit, TTL_LONGEST};
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::{Outcome, Verdict};

/// Part of its length, in thousandths, by which a node ends a lease earlier than the parent: ten
/// times the drift of clocks.
const DRIFT_PER_MILLE: u64 = 5;

/// Time after a failed request for which no request of a client waits for another one.
const UNAVAILABLE_FOR: DurationUs = DurationUs(250_000);

/// Time for which a reply of the parent stays valid: limits and overrides change.
const REPLY_VALID_FOR: DurationUs = TTL_LONGEST;

/// Assumed round trip before the first reply: that of a nearby store.
const ROUND_TRIP_AT_FIRST: DurationUs = DurationUs(2_000);

/// A batch covers a round trip and this part of a lease. That is large enough that messages are
/// rare, and small enough that little is left when the client stops.
const PART_OF_TTL: u64 = 4;

/// Below this, each request gets its own lease. A batch would be a single request, and might stay
/// here unused while another node rejects a client.
const PLENTY: u32 = 4;

/// During a shortage a node repeats its request this often per lease, and rejects clients in
/// between. Otherwise all nodes would send a message for each request that becomes free. More often
/// means more messages; less often leaves requests unused for longer.
const REQUESTS_OF_TTL: u64 = 8;

/// Decision about a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// Decided. `remaining` is what is leased here plus what the parent had left at its last reply;
    /// other nodes may have taken some of that since. A rejection gets its retry time from that
    /// reply.
    Decided(Verdict),
    /// Wait until this turn has a reply, then decide again.
    Wait(Turn),
    /// Rejected, for at most this time, because the parent may have lost what was granted before.
    /// The client may have used hardly anything. The configuration of the limit determines what
    /// that means.
    Uncertain(DurationUs),
    /// The last message to the parent failed, and no lease is left. The configuration of the limit
    /// determines what that means.
    Unavailable,
}

/// Number of the message to the parent that a waiting request belongs to.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Turn(u64);

/// Knowledge of a node about one client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Holding {
    leases: Leases,
    pending: Option<Pending>,
    requested_at: Option<TimestampUs>,
    /// Requests that wait and for which no message was sent yet.
    unsent: Option<Unsent>,
    turn: Turn,
    answered: Turn,
    demand: Demand,
    round_trip: DurationUs,
    reply: Option<ParentReply>,
    unavailable_until: TimestampUs,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Pending {
    id: RequestId,
    least: u32,
    sent_at: TimestampUs,
    /// Usual length of leases.
    ttl: DurationUs,
    /// Time until the next message during a shortage; zero after a request that came alone. A
    /// client that comes at its retry time then finds what it was promised.
    pause: DurationUs,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Unsent {
    least: u32,
    sum: u32,
}

/// Last reply of the parent, by this node's clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct ParentReply {
    at: TimestampUs,
    remaining: u32,
    full_at: TimestampUs,
    uncertain_until: TimestampUs,
    rejection: Option<Rejection>,
}

/// Rejection of `least` requests or more until `retry_at`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Rejection {
    least: u32,
    retry_at: Option<TimestampUs>,
}

impl Default for Holding {
    fn default() -> Self {
        Self::new()
    }
}

impl Holding {
    /// Creates the state of a client without requests.
    #[must_use]
    pub fn new() -> Self {
        Self {
            leases: Leases::default(),
            pending: None,
            requested_at: None,
            unsent: None,
            turn: Turn(0),
            answered: Turn(0),
            demand: Demand::default(),
            round_trip: ROUND_TRIP_AT_FIRST,
            reply: None,
            unavailable_until: TimestampUs(0),
        }
    }

    /// Decides about a request. A refund is allowed and does nothing, because it does not carry the
    /// time of the spending: see [`Self::undo`].
    pub fn decide(&mut self, now: TimestampUs, cost: Cost) -> Decision {
        match cost {
            Cost::Refund(_) => return Decision::Decided(self.admit(now)),
            Cost::Take(taken) => self.demand.add(now, taken.get()),
            Cost::Peek => {}
        }
        if let Some(decision) = self.decide_from_leases(now, cost) {
            return decision;
        }
        if let Some(decision) = self.reject_if_short(now, self.missing(now, cost)) {
            return decision;
        }
        if now < self.unavailable_until {
            return Decision::Unavailable;
        }
        self.wait_for_turn(now, cost)
    }

    fn wait_for_turn(&mut self, now: TimestampUs, cost: Cost) -> Decision {
        let missing = self.missing(now, cost);
        let sum = if cost == Cost::Peek { 0 } else { missing };
        let unsent = self.unsent.get_or_insert(Unsent { least: sum, sum: 0 });
        unsent.least = unsent.least.min(sum);
        unsent.sum = unsent.sum.saturating_add(sum);
        Decision::Wait(Turn(self.turn.0 + 1))
    }

    /// Decides again about a request that waits for its turn.
    pub fn decide_again(&mut self, now: TimestampUs, cost: Cost, turn: Turn) -> Decision {
        if let Some(decision) = self.decide_from_leases(now, cost) {
            return decision;
        }
        if self.answered < turn {
            return Decision::Wait(turn);
        }
        if now < self.unavailable_until {
            return Decision::Unavailable;
        }
        match self.reject_if_short(now, self.missing(now, cost)) {
            Some(decision) => decision,
            // Other requests were faster, and there is more.
            None => self.wait_for_turn(now, cost),
        }
    }

    /// Undoes requests that were spent at `spent_at`, if their lease has not ended.
    pub fn undo(&mut self, now: TimestampUs, spent_at: TimestampUs, requests: u32) -> Verdict {
        self.leases.put_back(now, spent_at, requests);
        self.admit(now)
    }

    /// Whether requests spent at `spent_at` can be undone: no lease has ended since.
    #[must_use]
    pub fn can_undo(&self, now: TimestampUs, spent_at: TimestampUs) -> bool {
        self.leases.have_run_since(now, spent_at)
    }

    /// Returns a request, if one is to be sent now, with this `id`.
    pub fn poll_request(
        &mut self,
        now: TimestampUs,
        id: RequestId,
        limit: &LeasedLimit,
    ) -> Option<Request> {
        if self.pending.is_some() || now < self.unavailable_until {
            return None;
        }
        let span = DurationUs(
            self.round_trip
                .0
                .saturating_add(limit.ttl().0 / PART_OF_TTL),
        );
        let target = self.demand.expected(now, span);
        let Unsent { least, sum } = match self.unsent {
            Some(unsent) => unsent,
            None if self.runs_low(now, limit) => Unsent { least: 1, sum: 0 },
            None => return None,
        };
        let pause = DurationUs(limit.ttl().0 / REQUESTS_OF_TTL);
        // Clients that are rejected between two messages come again, so they count as waiting.
        let sum = match self.is_short_of(now, least) {
            true => sum.saturating_add(self.demand.expected(now, pause)),
            false => sum,
        };
        let last_at = self.requested_at.replace(now);
        let is_again = last_at.is_some_and(|last_at| now.since(last_at) < pause.times(2));
        self.unsent = None;
        self.turn.0 += 1;
        self.pending = Some(Pending {
            id,
            least,
            sent_at: now,
            ttl: limit.ttl(),
            pause: if is_again { pause } else { DurationUs::ZERO },
        });
        Some(Request {
            id,
            least,
            waiting: sum,
            most: sum.saturating_add(target),
        })
    }

    /// Applies a reply if it is to the newest request. Returns whether it was.
    ///
    /// `read_at` is when this node sent the read behind the reply, by its own clock: the parent's
    /// time is later. If another node wrote first, it is the last of several reads.
    pub fn handle_reply(
        &mut self,
        now: TimestampUs,
        answer: &LeaseReply,
        read_at: TimestampUs,
    ) -> bool {
        let Some(pending) = self.pending.filter(|pending| pending.id == answer.id) else {
            return false;
        };
        self.pending = None;
        self.answered = self.turn;
        let took = now.since(pending.sent_at).0;
        self.round_trip = DurationUs(self.round_trip.0 - self.round_trip.0 / 4 + took / 4);
        let margin = DurationUs(answer.ttl.0 * DRIFT_PER_MILLE / 1_000 + 1);
        let lease = Lease {
            granted: answer.granted,
            used: 0,
            ends_at: read_at + answer.ttl - margin,
        };
        if lease.granted > 0 && lease.ends_at <= now {
            // The lease ended before it arrived. The next would be as late, unless this one ended
            // with its window.
            if answer.ttl >= pending.ttl {
                self.unavailable_until = now + UNAVAILABLE_FOR;
            }
            return true;
        }
        if lease.granted > 0 {
            self.leases.add(now, lease);
        }
        let is_rejected = answer.retry_after != Some(DurationUs::ZERO);
        let at_least = pending.pause;
        self.reply = Some(ParentReply {
            at: now,
            remaining: answer.remaining,
            full_at: read_at + answer.full_after,
            uncertain_until: read_at + answer.uncertain_for,
            rejection: is_rejected.then(|| Rejection {
                least: pending.least.max(1),
                retry_at: answer.retry_after.map(|span| read_at + span.max(at_least)),
            }),
        });
        true
    }

    /// Records that a request failed, or that the node no longer waits for its reply.
    pub fn handle_failure(&mut self, now: TimestampUs, id: RequestId) {
        if self.pending.is_some_and(|pending| pending.id == id) {
            self.pending = None;
            self.answered = self.turn;
            self.unavailable_until = now + UNAVAILABLE_FOR;
        }
    }

    /// Records that the limit has changed: the last reply is void. Leases of the old limit are
    /// spent until they end.
    pub fn handle_new_limit(&mut self) {
        self.reply = None;
    }

    /// Returns what can be spent at `now` without a message.
    #[must_use]
    pub fn balance(&self, now: TimestampUs) -> u32 {
        self.leases.left(now)
    }

    /// Whether a new [`Holding`] would decide the same.
    #[must_use]
    pub fn is_idle(&self, now: TimestampUs) -> bool {
        let has_reply = self.valid_reply(now).is_some();
        // Requests that wait are no reason to keep it. They send again from the state that replaces
        // this one.
        self.balance(now) == 0 && self.pending.is_none() && !has_reply
    }

    fn decide_from_leases(&mut self, now: TimestampUs, cost: Cost) -> Option<Decision> {
        let is_admitted = match cost {
            Cost::Peek => {
                let remaining = self.valid_reply(now).map_or(0, |reply| reply.remaining);
                self.balance(now) > 0 || remaining > 0
            }
            _ => self.leases.take(now, cost_of(cost)),
        };
        is_admitted.then(|| Decision::Decided(self.admit(now)))
    }

    /// Returns how much a request needs beyond what is leased here.
    fn missing(&self, now: TimestampUs, cost: Cost) -> u32 {
        cost_of(cost).saturating_sub(self.balance(now)).max(1)
    }

    /// Whether the client is active and its leases will not last until a reply arrives.
    fn runs_low(&self, now: TimestampUs, limit: &LeasedLimit) -> bool {
        let is_plenty = self
            .valid_reply(now)
            .is_some_and(|reply| reply.rejection.is_none() && reply.remaining >= PLENTY);
        let in_use = DurationUs(limit.ttl().0 / PART_OF_TTL);
        let needed = self.demand.expected(now, self.round_trip.times(2));
        is_plenty
            && self.demand.expected(now, in_use) > 0
            && self.leases.left(now + self.round_trip) <= needed
    }

    fn valid_reply(&self, now: TimestampUs) -> Option<&ParentReply> {
        let reply = self.reply.as_ref();
        reply.filter(|reply| now.since(reply.at) < REPLY_VALID_FOR)
    }

    /// Returns the rejection of a request of which the last reply said that it needs too much.
    fn reject_if_short(&self, now: TimestampUs, missing: u32) -> Option<Decision> {
        let reply = self.valid_reply(now)?;
        let rejection = reply.rejection?;
        let is_over = rejection.retry_at.is_some_and(|retry_at| retry_at <= now);
        if missing < rejection.least || is_over {
            return None;
        }
        Some(if now < reply.uncertain_until {
            Decision::Uncertain(reply.uncertain_until.since(now))
        } else {
            Decision::Decided(self.reject(now, rejection.retry_at))
        })
    }

    /// Whether the last reply had less than `least`.
    fn is_short_of(&self, now: TimestampUs, least: u32) -> bool {
        let rejection = self.valid_reply(now).and_then(|reply| reply.rejection);
        rejection.is_some_and(|rejection| least >= rejection.least)
    }

    fn admit(&self, now: TimestampUs) -> Verdict {
        self.verdict(
            now,
            Outcome::Allow {
                delay: DurationUs::ZERO,
            },
        )
    }

    fn reject(&self, now: TimestampUs, retry_at: Option<TimestampUs>) -> Verdict {
        let retry_after = retry_at.map(|retry_at| retry_at.since(now));
        self.verdict(now, Outcome::Reject { retry_after })
    }

    fn verdict(&self, now: TimestampUs, outcome: Outcome) -> Verdict {
        let reply = self.valid_reply(now);
        let remaining = reply.map_or(0, |reply| reply.remaining);
        Verdict {
            outcome,
            remaining: self.balance(now).saturating_add(remaining),
            full_after: reply.map_or(DurationUs::ZERO, |reply| reply.full_at.since(now)),
        }
    }
}

fn cost_of(cost: Cost) -> u32 {
    match cost {
        Cost::Take(taken) => taken.get(),
        Cost::Peek => 1,
        Cost::Refund(_) => 0,
    }
}

#[cfg(test)]
mod tests;
