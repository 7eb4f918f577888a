//! What does a node hold of one client's calls, when does it ask for more, and what is a call told?
//!
//! Facts come in by `handle_*`, requests go out by [`Holding::poll_request`]. A call is told at
//! once, or to wait for an answer ([`Decision::Ask`]) and be decided again then.
//!
//! All times are those of one clock of the node that never goes back.
//!
//! # Invariants
//!
//! - What is spent was lent before, and not a lease's length ago: counted from when the read was
//!   sent on which the answer rests, less a margin for clocks that drift apart.
//! - Only the answer to the newest request counts, and once.

use crate::cost::Cost;
use crate::lending::demand::Demand;
use crate::lending::leases::{Lease, Leases};
use crate::lending::message::{Answer, Request, RequestId};
use crate::lending::widened::{LeasedLimit, TTL_LONGEST};
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::{Outcome, Verdict};

/// How much earlier than the parent a node lets a lease end, in parts of 1000 of its length: ten
/// times what clocks drift apart.
const DRIFT_PER_MILLE: u64 = 5;

/// After a request that failed calls are not held up by another one for so long.
const AWAY_FOR: DurationUs = DurationUs(250_000);

/// For how long what the parent said is believed: limits change, and operators speak.
const BELIEVED_FOR: DurationUs = TTL_LONGEST;

/// Before the first answer a round trip is taken to be as long as one next door.
const ROUND_TRIP_AT_FIRST: DurationUs = DurationUs(2_000);

/// A batch is for a round trip and such a part of a lease: large enough that requests are rare,
/// small enough that little is left when the calls stop coming.
const PART_OF_TTL: u64 = 4;

/// Below that each call asks for itself: a batch would be a single call, and might lie here while
/// somebody else is refused it.
const PLENTY: u32 = 4;

/// Where there is too little, a node that asks again and again does so this often during a lease;
/// whoever comes meanwhile is refused until then. Calls that come free one by one would each be
/// asked for otherwise, by all nodes. More often means more requests, less often that calls lie
/// unused for longer.
const REQUESTS_OF_TTL: u64 = 8;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// It is known. `remaining` is what is held here and what the parent could have lent besides
    /// when it last spoke: others may have taken of that since. A rejected call is told when to
    /// come again by what the parent knew.
    Decided(Verdict),
    /// It must wait until this turn was answered, and then be decided again.
    Ask(Turn),
    /// The parent could not be asked lately, and nothing is held. What that means is said by
    /// whoever configured the limit.
    Away,
}

/// Which request speaks for a call that waits.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Turn(u64);

/// What a node knows of one client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Holding {
    leases: Leases,
    pending: Option<Pending>,
    asked_at: Option<TimestampUs>,
    /// Calls that wait and for which nobody has asked yet.
    wants: Option<Wants>,
    turn: Turn,
    answered: Turn,
    demand: Demand,
    round_trip: DurationUs,
    told: Option<ParentReply>,
    away_until: TimestampUs,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Pending {
    id: RequestId,
    least: u32,
    sent_at: TimestampUs,
    /// How long leases usually run.
    ttl: DurationUs,
    /// For how long nobody asks again, if there is too little: not at all after a request that came
    /// alone. Whoever was told to come at a moment finds what it was told then.
    pause: DurationUs,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Wants {
    least: u32,
    sum: u32,
}

/// What the parent said last, by this node's clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct ParentReply {
    at: TimestampUs,
    remaining: u32,
    full_at: TimestampUs,
    refused: Option<Refused>,
}

/// So many calls, or more, are not to be had before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Refused {
    least: u32,
    retry_at: Option<TimestampUs>,
}

impl Default for Holding {
    fn default() -> Self {
        Self::new()
    }
}

impl Holding {
    /// A node that knows nothing of a client.
    #[must_use]
    pub fn new() -> Self {
        Self {
            leases: Leases::default(),
            pending: None,
            asked_at: None,
            wants: None,
            turn: Turn(0),
            answered: Turn(0),
            demand: Demand::default(),
            round_trip: ROUND_TRIP_AT_FIRST,
            told: None,
            away_until: TimestampUs(0),
        }
    }

    /// Decides about a call. A refund is told that it was accepted and does nothing, for it does
    /// not say when it was spent: see [`Self::undo`].
    pub fn decide(&mut self, now: TimestampUs, cost: Cost) -> Decision {
        match cost {
            Cost::Refund(_) => return Decision::Decided(self.admit(now)),
            Cost::Take(taken) => self.demand.add(now, taken.get()),
            Cost::Peek => {}
        }
        if let Some(decision) = self.decide_from_held(now, cost) {
            return decision;
        }
        if let Some(verdict) = self.refusal(now, self.missing(now, cost)) {
            return Decision::Decided(verdict);
        }
        if now < self.away_until {
            return Decision::Away;
        }
        self.ask(now, cost)
    }

    fn ask(&mut self, now: TimestampUs, cost: Cost) -> Decision {
        let missing = self.missing(now, cost);
        let sum = if cost == Cost::Peek { 0 } else { missing };
        let wants = self.wants.get_or_insert(Wants { least: sum, sum: 0 });
        wants.least = wants.least.min(sum);
        wants.sum = wants.sum.saturating_add(sum);
        Decision::Ask(Turn(self.turn.0 + 1))
    }

    /// Decides again about a call that waits for its turn.
    pub fn decide_again(&mut self, now: TimestampUs, cost: Cost, turn: Turn) -> Decision {
        if let Some(decision) = self.decide_from_held(now, cost) {
            return decision;
        }
        if self.answered < turn {
            return Decision::Ask(turn);
        }
        if now < self.away_until {
            return Decision::Away;
        }
        match self.refusal(now, self.missing(now, cost)) {
            Some(verdict) => Decision::Decided(verdict),
            // Others were quicker, and there is more.
            None => self.ask(now, cost),
        }
    }

    /// Undoes calls that were spent at `spent_at`, if what they were taken from can still be spent.
    pub fn undo(&mut self, now: TimestampUs, spent_at: TimestampUs, calls: u32) -> Verdict {
        self.leases.put_back(now, spent_at, calls);
        self.admit(now)
    }

    /// Whether calls that were spent at `spent_at` can be undone: no lease has ended since.
    #[must_use]
    pub fn can_undo(&self, now: TimestampUs, spent_at: TimestampUs) -> bool {
        self.leases.have_run_since(now, spent_at)
    }

    /// A request, if one is to be sent now. `id` names it.
    pub fn poll_request(
        &mut self,
        now: TimestampUs,
        id: RequestId,
        lending: &LeasedLimit,
    ) -> Option<Request> {
        if self.pending.is_some() || now < self.away_until {
            return None;
        }
        let span = DurationUs(
            self.round_trip
                .0
                .saturating_add(lending.ttl().0 / PART_OF_TTL),
        );
        let target = self.demand.expected(now, span);
        let Wants { least, sum } = match self.wants {
            Some(wants) => wants,
            None if self.runs_low(now, lending) => Wants { least: 1, sum: 0 },
            None => return None,
        };
        let pause = DurationUs(lending.ttl().0 / REQUESTS_OF_TTL);
        // Those who are refused between two requests go on calling: they are known to come, as if
        // they waited.
        let sum = match self.is_short_of(now, least) {
            true => sum.saturating_add(self.demand.expected(now, pause)),
            false => sum,
        };
        let last_at = self.asked_at.replace(now);
        let is_again = last_at.is_some_and(|last_at| now.since(last_at) < pause.times(2));
        self.wants = None;
        self.turn.0 += 1;
        self.pending = Some(Pending {
            id,
            least,
            sent_at: now,
            ttl: lending.ttl(),
            pause: if is_again { pause } else { DurationUs::ZERO },
        });
        Some(Request {
            id,
            least,
            wants: sum,
            most: sum.saturating_add(target),
        })
    }

    /// Applies an answer if it is to the newest request. Returns whether it was.
    ///
    /// `read_at` is when the read was sent on which this answer rests, by this node's clock: the
    /// parent's time was taken after it. Where somebody else wrote first, that is the last of
    /// several.
    pub fn handle_answer(
        &mut self,
        now: TimestampUs,
        answer: &Answer,
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
            held: answer.held,
            used: 0,
            ends_at: read_at + answer.ttl - margin,
        };
        if lease.held > 0 && lease.ends_at <= now {
            // Too late to be of use. Another one would be as late, unless this one ended with its
            // window.
            if answer.ttl >= pending.ttl {
                self.away_until = now + AWAY_FOR;
            }
            return true;
        }
        if lease.held > 0 {
            self.leases.add(now, lease);
        }
        let is_refused = answer.retry_after != Some(DurationUs::ZERO);
        let at_least = pending.pause;
        self.told = Some(ParentReply {
            at: now,
            remaining: answer.remaining,
            full_at: read_at + answer.full_after,
            refused: is_refused.then(|| Refused {
                least: pending.least.max(1),
                retry_at: answer.retry_after.map(|span| read_at + span.max(at_least)),
            }),
        });
        true
    }

    /// Takes note that a request failed, or that its answer is waited for no longer.
    pub fn handle_failure(&mut self, now: TimestampUs, id: RequestId) {
        if self.pending.is_some_and(|pending| pending.id == id) {
            self.pending = None;
            self.answered = self.turn;
            self.away_until = now + AWAY_FOR;
        }
    }

    /// Takes note that the limit has changed: what the parent said of the old one is forgotten.
    /// What was lent under it is spent until it ends.
    pub fn handle_new_limit(&mut self) {
        self.told = None;
    }

    /// What can be spent at `now` without asking.
    #[must_use]
    pub fn held(&self, now: TimestampUs) -> u32 {
        self.leases.left(now)
    }

    /// Whether there is nothing in it that somebody who begins anew would miss.
    #[must_use]
    pub fn is_idle(&self, now: TimestampUs) -> bool {
        let is_told = self.believed(now).is_some();
        // What somebody wanted is no reason: who still waits asks again, of whoever takes its
        // place.
        self.held(now) == 0 && self.pending.is_none() && !is_told
    }

    fn decide_from_held(&mut self, now: TimestampUs, cost: Cost) -> Option<Decision> {
        let is_admitted = match cost {
            Cost::Peek => {
                let told = self.believed(now).map_or(0, |told| told.remaining);
                self.held(now) > 0 || told > 0
            }
            _ => self.leases.take(now, asked(cost)),
        };
        is_admitted.then(|| Decision::Decided(self.admit(now)))
    }

    /// What must be lent for a call that counts more than is held: what lies here is not asked for
    /// once more.
    fn missing(&self, now: TimestampUs, cost: Cost) -> u32 {
        asked(cost).saturating_sub(self.held(now)).max(1)
    }

    /// Whether calls still come and what is held will not be enough until an answer is here.
    fn runs_low(&self, now: TimestampUs, lending: &LeasedLimit) -> bool {
        let is_plenty = self
            .believed(now)
            .is_some_and(|told| told.refused.is_none() && told.remaining >= PLENTY);
        let in_use = DurationUs(lending.ttl().0 / PART_OF_TTL);
        let needed = self.demand.expected(now, self.round_trip.times(2));
        is_plenty
            && self.demand.expected(now, in_use) > 0
            && self.leases.left(now + self.round_trip) <= needed
    }

    fn believed(&self, now: TimestampUs) -> Option<&ParentReply> {
        let told = self.told.as_ref();
        told.filter(|told| now.since(told.at) < BELIEVED_FOR)
    }

    /// The verdict on a call of which the parent has said that what is missing for it is too much.
    fn refusal(&self, now: TimestampUs, missing: u32) -> Option<Verdict> {
        let refused = self.believed(now)?.refused?;
        let is_over = refused.retry_at.is_some_and(|retry_at| retry_at <= now);
        if missing < refused.least || is_over {
            return None;
        }
        Some(self.reject(now, refused.retry_at))
    }

    /// Whether the parent had too little when it last spoke, if so many are asked for.
    fn is_short_of(&self, now: TimestampUs, least: u32) -> bool {
        let refused = self.believed(now).and_then(|told| told.refused);
        refused.is_some_and(|refused| least >= refused.least)
    }

    fn admit(&self, now: TimestampUs) -> Verdict {
        self.say(
            now,
            Outcome::Admit {
                delay: DurationUs::ZERO,
            },
        )
    }

    fn reject(&self, now: TimestampUs, retry_at: Option<TimestampUs>) -> Verdict {
        let retry_after = retry_at.map(|retry_at| retry_at.since(now));
        self.say(now, Outcome::Reject { retry_after })
    }

    fn say(&self, now: TimestampUs, outcome: Outcome) -> Verdict {
        let told = self.believed(now);
        let remaining = told.map_or(0, |told| told.remaining);
        Verdict {
            outcome,
            remaining: self.held(now).saturating_add(remaining),
            full_after: told.map_or(DurationUs::ZERO, |told| told.full_at.since(now)),
        }
    }
}

fn asked(cost: Cost) -> u32 {
    match cost {
        Cost::Take(taken) => taken.get(),
        Cost::Peek => 1,
        Cost::Refund(_) => 0,
    }
}

#[cfg(test)]
mod tests;
