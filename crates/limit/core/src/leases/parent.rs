//! Parent's half of a lease: the size of a grant.
//!
//! Waiting requests get all that there is. Expected requests get at most a part of what is left. So
//! one node does not take everything, and near the limit nodes request single leases.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::leases::epoch::Epoch;
use crate::leases::message::{LeaseReply, Request};
use crate::leases::record::{Record, peek};
use crate::leases::widened::LeasedLimit;
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::Outcome;

/// Part of what is left that a node gets for expected requests: one quarter. A smaller part means
/// more messages; a larger one means more unused requests on nodes that were faster.
pub const PART_OF_REMAINING: u32 = 4;

/// Result of a request for a lease.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrantOutcome {
    /// Record to write before the reply counts. `None` if nothing has changed.
    pub write: Option<Write>,
    /// Reply to the node.
    pub reply: LeaseReply,
}

/// Record to write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Write {
    /// New record of the client.
    pub record: Record,
    /// Time after which the store may forget it, if it is not written again.
    pub forget_after: DurationUs,
}

/// Grant that a node was given, as it reports it to a store that may lack it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Granted {
    /// Requests granted.
    pub requests: u32,
    /// Time of the grant by the store's clock, as the record had it.
    pub as_of: TimestampUs,
}

/// Restores a grant that the store lacks. Returns the record to write, or `None` if the store has
/// the grant, or the grant does not matter any more. `now` is the time of the store's clock.
///
/// A store that lacks a write lacks all later ones, and the time of a client's record rises with
/// each grant. So a record of a later time has the grant. One of the same time may be older: then
/// the grant counts twice at worst. The record keeps its time, so that other nodes compare with
/// what the store had when it came back.
#[must_use]
pub fn restore(
    limit: &LeasedLimit,
    epoch: &Epoch,
    record: Option<&Record>,
    granted: Granted,
    now: TimestampUs,
) -> Option<Write> {
    let as_of = granted.as_of;
    let ended_at = limit.promised().resets_after(as_of);
    let ended_at = as_of + ended_at.unwrap_or_else(|| limit.kept_for());
    let has_it = |record: &Record| record.epoch == epoch.id && record.as_of > as_of;
    if ended_at <= now || record.is_some_and(has_it) {
        return None;
    }
    let mut trusted = Record::trusted(record, limit, epoch, now);
    let widened = limit.widened();
    let remaining = peek(widened, &trusted.state, now).remaining;
    let lost = granted.requests.min(remaining);
    widened.step(&mut trusted.state, now, Cost::take(lost));
    Some(Write {
        forget_after: trusted.forget_after(now).max(limit.kept_for()),
        record: trusted,
    })
}

/// Grants a lease to one client. `now` is the time of the store's clock when `record` was read. The
/// epoch is the one that was current then or later.
#[must_use]
pub fn grant(
    limit: &LeasedLimit,
    epoch: &Epoch,
    record: Option<&Record>,
    request: &Request,
    now: TimestampUs,
) -> GrantOutcome {
    let mut trusted = Record::trusted(record, limit, epoch, now);
    let at = now.max(trusted.as_of);
    let granted = batch(&trusted, request, now);
    if granted > 0 {
        let widened = limit.widened();
        let verdict = widened.step(&mut trusted.state, now, Cost::take(granted));
        debug_assert!(verdict.is_allowed(), "no more than remains is granted");
        trusted.as_of = at;
    }
    let standing = peek(limit.widened(), &trusted.state, now);
    let is_open = now >= trusted.nothing_until;
    let reply = LeaseReply {
        id: request.id,
        granted,
        ttl: limit.ttl_at(at),
        retry_after: retry(&trusted, request, now),
        remaining: if is_open { standing.remaining } else { 0 },
        full_after: standing.full_after.max(trusted.nothing_until.since(now)),
        uncertain_for: Record::uncertain_until(limit, epoch).since(now),
        epoch: epoch.id,
    };
    // Write the record, so that the next read does not find the same clock set back.
    let is_set_back = record
        .is_some_and(|record| record.epoch == epoch.id && record.as_of > trusted.as_of.max(now));
    let write = (granted > 0 || is_set_back).then(|| Write {
        forget_after: trusted.forget_after(now),
        record: trusted,
    });
    GrantOutcome { write, reply }
}

fn batch(trusted: &Record, request: &Request, now: TimestampUs) -> u32 {
    if now < trusted.nothing_until {
        return 0;
    }
    let remaining = peek(trusted.lent_by.widened(), &trusted.state, now).remaining;
    if request.least > remaining {
        return 0;
    }
    let part = remaining / PART_OF_REMAINING;
    let wanted = request
        .most
        .min(part)
        .max(request.waiting)
        .max(request.least);
    wanted.min(remaining)
}

/// Returns the time until `least` more requests can be granted.
fn retry(trusted: &Record, request: &Request, now: TimestampUs) -> Option<DurationUs> {
    let mut state = trusted.state.clone();
    let at = now.max(trusted.nothing_until);
    let verdict = trusted
        .lent_by
        .widened()
        .step(&mut state, at, Cost::take(request.least.max(1)));
    match verdict.outcome {
        Outcome::Allow { .. } => Some(at.since(now)),
        Outcome::Reject { retry_after } => {
            retry_after.map(|span| DurationUs(at.since(now).0.saturating_add(span.0)))
        }
    }
}

#[cfg(test)]
mod tests;
