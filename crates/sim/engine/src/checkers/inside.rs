//! Checker of invariant 3: a visitor with a valid ticket is never queued, and keeps the ticket
//! while it keeps coming.

use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};

use super::{Checkers, Watched};
use crate::outcome::Invariant;

/// Longest time for which other visitors may still be admitted after an active visitor has changed
/// the data center: two periods of each level, the trips between them, and the slots granted
/// before.
const KNOWN_WITHIN: DurationMs = DurationMs::from_secs(5);
/// Gap between requests up to which a visitor keeps coming, however short the gap before was.
const SOON: DurationMs = DurationMs::from_secs(2);

/// State of an active visitor in a data center where it has no seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unseated {
    data_center: u32,
    /// Time since which a seat there has been due.
    since: Timestamp,
    /// Whether other visitors were admitted although the root knew of the missing seat.
    is_passed_over: bool,
}

/// State of the node that receives a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeKnowledge {
    /// Whether the node has a live lease.
    pub(crate) is_in_touch: bool,
    /// Data center of the node, if the visitor's ticket has no seat there.
    pub(crate) unseated_in: Option<u32>,
    /// Whether the node should issue a newer ticket.
    pub(crate) is_due: bool,
    /// Length of a session that the node gives.
    pub(crate) session: DurationMs,
    /// Whether a check-in extends the session there.
    pub(crate) is_renewed: bool,
}

impl Checkers {
    /// Records a request with an accepted ticket before the node decides it.
    pub(crate) fn note_meeting(
        &self,
        watched: &mut Watched,
        ticket: &Ticket,
        meeting: NodeKnowledge,
        now: Timestamp,
    ) {
        if watched.id != Some(ticket.visitor) {
            return;
        }
        let end = ticket.seats.ends_at().unwrap_or_default();
        let before = std::mem::replace(&mut watched.last_request_at, now);
        let gap = now.since(before);
        // A first seat may be shorter than the session.
        let seat = end.since(ticket.last_check_in_at);
        let clocks = self.tolerance.times(4);
        let is_often = gap.times(2) + clocks <= meeting.session.min(seat);
        // Renewal credits come from the root, a few trips later.
        let is_often = is_often && meeting.session >= self.slack();
        watched.is_steady &=
            is_often && meeting.is_in_touch && meeting.is_renewed && now >= self.local_faults_until;
        // The ledgers reserve a seat for it until it has been silent for as long again, twice.
        let unseated_for = before.since(ticket.last_check_in_at);
        let is_soon = gap <= unseated_for.times(2).max(SOON);
        if end <= now {
            watched.is_steady &= watched.unseated.is_none() || is_soon;
            return;
        }
        let Some(data_center) = meeting.unseated_in else {
            watched.unseated = None;
            return;
        };
        let is_same = |unseated: &Unseated| unseated.data_center == data_center && is_soon;
        let known = watched.unseated.filter(is_same);
        let mut unseated = known.or_else(|| {
            meeting.is_due.then_some(Unseated {
                data_center,
                since: now,
                is_passed_over: false,
            })
        });
        if let Some(unseated) = &mut unseated {
            let admitted_at = self.newest_admission();
            let known_from = unseated.since + KNOWN_WITHIN + self.slack();
            unseated.is_passed_over |= admitted_at.is_some_and(|at| at >= known_from);
            // A reserved seat is for all visitors from other data centers, and the first request
            // gets it. Another one of them got the seat that the admissions left free.
            let seated_at = self.seated_at.get(&data_center);
            if seated_at.is_some_and(|seated_at| admitted_at.is_none_or(|at| at <= *seated_at)) {
                unseated.is_passed_over = false;
            }
            // While a fault lasts, other data centers do not learn of the missing seat.
            if !self.is_calm(now) {
                unseated.since = now;
                unseated.is_passed_over = false;
            }
        }
        // It has no seat, and the ledgers do not know that it lacks one.
        watched.is_steady &= unseated.is_some() || !meeting.is_due;
        watched.unseated = unseated;
    }

    /// Reports a visitor with a locally valid ticket who has to wait for a store.
    pub(crate) fn check_no_wait(&mut self, now: Timestamp) {
        self.report(Invariant::Inside, now, || {
            "a visitor with a valid ticket waits for a store".to_owned()
        });
    }

    /// Checks a visitor with an accepted ticket that a node treated as new, at `node_now` by the
    /// node's clock.
    pub(crate) fn check_lost_ticket(
        &mut self,
        watched: &Watched,
        ticket: &Ticket,
        is_page: bool,
        node_now: Timestamp,
        now: Timestamp,
    ) {
        let is_ours = watched.id == Some(ticket.visitor);
        if is_ours && watched.is_logged_out || self.is_logged_out(ticket.visitor) {
            return;
        }
        let end = ticket.seats.ends_at().unwrap_or_default();
        if end > node_now && end > now + self.tolerance {
            self.queued_with_ticket += 1;
            self.report(Invariant::Inside, now, || {
                let left = end.since(now);
                format!("a visitor was queued although its ticket was valid for {left} more")
            });
        } else if is_page && is_ours && watched.is_steady && now >= self.local_faults_until {
            let lost = match watched.unseated {
                None => "a visitor who kept coming lost its ticket",
                Some(unseated) if unseated.is_passed_over => {
                    "a visitor who kept coming lost its ticket to visitors admitted after it had \
                     changed the data center"
                }
                // The data center had no seat for it.
                Some(_) => return,
            };
            self.queued_with_ticket += 1;
            self.report(Invariant::Inside, now, || lost.to_owned());
        }
    }
}
