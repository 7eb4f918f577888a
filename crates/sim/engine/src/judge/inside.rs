//! Promise 3: whoever has a valid ticket is never refused, and keeps it while it keeps coming.

use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};

use super::{Checkers, Watched};
use crate::outcome::Promise;

/// How long others may still be let in after somebody has come from another data center: two
/// periods of each level, the trips between them, and the slots that are out by then.
const HEARD_OF_WITHIN: DurationMs = DurationMs::from_secs(5);
/// Whoever comes again after that long keeps coming, however soon it came before.
const SOON: DurationMs = DurationMs::from_secs(2);

/// Somebody is where it has no seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Away {
    data_center: u32,
    /// Since it was due for a seat there.
    since: Timestamp,
    /// Others were let in although it was known by then that somebody inside lacks a seat.
    is_passed_over: bool,
}

/// What is known of a node that a visitor met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeKnowledge {
    /// The node's lease ran.
    pub(crate) is_in_touch: bool,
    /// Where it is, if the visitor's ticket has no seat there.
    pub(crate) away_in: Option<u32>,
    /// It should get a newer ticket.
    pub(crate) is_due: bool,
    /// How long a session is that is given there.
    pub(crate) session: DurationMs,
    /// A check-in prolongs the session there.
    pub(crate) is_renewed: bool,
}

impl Checkers {
    /// Somebody comes with an accepted ticket; nothing is decided yet.
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
        // The right to prolong seats comes from the root, and a few trips later.
        let is_often = is_often && meeting.session >= self.slack();
        watched.is_steady &=
            is_often && meeting.is_in_touch && meeting.is_renewed && now >= self.upset_until;
        // A seat is kept for it until it has been away for as long again, twice.
        let unseated = before.since(ticket.last_check_in_at);
        let is_soon = gap <= unseated.times(2).max(SOON);
        if end <= now {
            watched.is_steady &= watched.away.is_none() || is_soon;
            return;
        }
        let Some(data_center) = meeting.away_in else {
            watched.away = None;
            return;
        };
        let is_there = |away: &Away| away.data_center == data_center && is_soon;
        let known = watched.away.filter(is_there);
        let mut away = known.or_else(|| {
            meeting.is_due.then_some(Away {
                data_center,
                since: now,
                is_passed_over: false,
            })
        });
        if let Some(away) = &mut away {
            let admitted_at = self.newest_admission();
            let heard_of = away.since + HEARD_OF_WITHIN + self.slack();
            away.is_passed_over |= admitted_at.is_some_and(|at| at >= heard_of);
            // What is kept is kept for all who have come from elsewhere, and the first of them to
            // ask gets it: another one had the seat that those let in left free.
            let seated_at = self.seated_at.get(&data_center);
            if seated_at.is_some_and(|seated_at| admitted_at.is_none_or(|at| at <= *seated_at)) {
                away.is_passed_over = false;
            }
            // Where the world is in trouble, nobody elsewhere hears of it.
            if !self.is_calm(now) {
                away.since = now;
                away.is_passed_over = false;
            }
        }
        // Without a seat, and not known to lack one.
        watched.is_steady &= away.is_some() || !meeting.is_due;
        watched.away = away;
    }

    /// Somebody with a ticket that is good where it is shown has to wait for a store.
    pub(crate) fn check_made_to_wait(&mut self, now: Timestamp) {
        self.report(Promise::Inside, now, || {
            "a visitor with a valid ticket waits for a store".to_owned()
        });
    }

    /// Somebody who came with an accepted ticket was treated as new, at `node_now` by the clock of
    /// the node.
    pub(crate) fn check_refused_ticket(
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
            self.thrown_out += 1;
            self.report(Promise::Inside, now, || {
                let left = end.since(now);
                format!("refused a visitor whose ticket had {left} left")
            });
        } else if is_page && is_ours && watched.is_steady && now >= self.upset_until {
            let lost = match watched.away {
                None => "a visitor who kept coming lost its ticket",
                Some(away) if away.is_passed_over => {
                    "a visitor who kept coming lost its ticket to those who came in after it had \
                     changed the data center"
                }
                // There was no seat.
                Some(_) => return,
            };
            self.thrown_out += 1;
            self.report(Promise::Inside, now, || lost.to_owned());
        }
    }
}
