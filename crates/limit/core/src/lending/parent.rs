//! How many calls does the parent lend?
//!
//! As many as there are for calls that wait. For calls that are only expected no more than a part
//! of what is left: so one node does not take it all, and near the end each call is asked for by
//! itself.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::lending::epoch::Epoch;
use crate::lending::message::{Answer, Request};
use crate::lending::record::{Record, peek};
use crate::lending::widened::LeasedLimit;
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::Outcome;

/// Of what is left a node gets a quarter for what it expects. A smaller part means more requests, a
/// larger one more calls that lie unused at nodes that were quicker.
pub const PART_OF_REMAINING: u32 = 4;

/// What comes of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrantOutcome {
    /// What must be written before the answer counts. `None` if nothing has changed.
    pub write: Option<Write>,
    /// The answer.
    pub answer: Answer,
}

/// A record that must be written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Write {
    /// The record.
    pub record: Record,
    /// In how long the store may forget it, if nobody writes it again.
    pub forget_after: DurationUs,
}

/// Lends to one client at `now`: what the store's clock said when `record` was read. The epoch is
/// the one that was in force then or later.
#[must_use]
pub fn lend(
    lending: &LeasedLimit,
    epoch: &Epoch,
    record: Option<&Record>,
    request: &Request,
    now: TimestampUs,
) -> GrantOutcome {
    let mut believed = Record::believed(record, lending, epoch, now);
    let at = now.max(believed.as_of);
    let held = batch(&believed, request, now);
    if held > 0 {
        let widened = lending.widened();
        let verdict = widened.step(&mut believed.state, now, Cost::take(held));
        debug_assert!(verdict.is_admitted(), "no more than remains is lent");
        believed.as_of = at;
    }
    let standing = peek(lending.widened(), &believed.state, now);
    let is_open = now >= believed.nothing_until;
    let answer = Answer {
        id: request.id,
        held,
        ttl: lending.ttl_at(at),
        retry_after: retry(&believed, request, now),
        remaining: if is_open { standing.remaining } else { 0 },
        full_after: standing.full_after.max(believed.nothing_until.since(now)),
        epoch: epoch.id,
    };
    // A clock that was set back must not be found so again and again.
    let is_set_back = record
        .is_some_and(|record| record.epoch == epoch.id && record.as_of > believed.as_of.max(now));
    let write = (held > 0 || is_set_back).then(|| Write {
        forget_after: believed.forget_after(now),
        record: believed,
    });
    GrantOutcome { write, answer }
}

fn batch(believed: &Record, request: &Request, now: TimestampUs) -> u32 {
    if now < believed.nothing_until {
        return 0;
    }
    let remaining = peek(believed.lent_by.widened(), &believed.state, now).remaining;
    if request.least > remaining {
        return 0;
    }
    let part = remaining / PART_OF_REMAINING;
    let wanted = request.most.min(part).max(request.wants).max(request.least);
    wanted.min(remaining)
}

/// In how long as many as are asked at least can be lent besides.
fn retry(believed: &Record, request: &Request, now: TimestampUs) -> Option<DurationUs> {
    let mut state = believed.state.clone();
    let at = now.max(believed.nothing_until);
    let verdict = believed
        .lent_by
        .widened()
        .step(&mut state, at, Cost::take(request.least.max(1)));
    match verdict.outcome {
        Outcome::Admit { .. } => Some(at.since(now)),
        Outcome::Reject { retry_after } => {
            retry_after.map(|span| DurationUs(at.since(now).0.saturating_add(span.0)))
        }
    }
}

#[cfg(test)]
mod tests;
