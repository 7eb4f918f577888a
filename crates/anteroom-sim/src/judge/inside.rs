//! Promise 3: whoever has a valid ticket is never refused, and keeps it while it keeps coming.

use anteroom_core::ticket::Ticket;
use anteroom_core::time::{Millis, Span};

use super::{Judge, Watched};
use crate::outcome::Promise;

/// What is known of a node that a visitor met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    /// The node's lease ran.
    pub(crate) is_in_touch: bool,
    /// The visitor's ticket has a seat in the node's data center.
    pub(crate) is_at_home: bool,
    /// By the rules there.
    pub(crate) session: Span,
    /// A check-in prolongs the session there.
    pub(crate) is_renewed: bool,
}

impl Judge {
    /// Somebody comes with an accepted ticket; nothing is decided yet.
    pub(crate) fn note_meeting(
        &self,
        watched: &mut Watched,
        ticket: &Ticket,
        meeting: Meeting,
        now: Millis,
    ) {
        if watched.id != Some(ticket.visitor) {
            return;
        }
        let gap = now.since(watched.last_request_at);
        watched.last_request_at = now;
        let end = ticket.seats.ends_at().unwrap_or_default();
        // A first seat may be shorter than the session.
        let seat = end.since(ticket.last_check_in_at);
        let is_often = gap.times(2) <= meeting.session.min(seat);
        watched.is_steady &= is_often
            && meeting.is_in_touch
            && meeting.is_at_home
            && meeting.is_renewed
            && now >= self.upset_until;
    }

    /// Somebody who came with an accepted ticket was treated as new, at `node_now` by the clock of
    /// the node.
    pub(crate) fn check_refused_ticket(
        &mut self,
        watched: &Watched,
        ticket: &Ticket,
        is_page: bool,
        node_now: Millis,
        now: Millis,
    ) {
        let is_ours = watched.id == Some(ticket.visitor);
        if is_ours && watched.is_logged_out {
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
            self.thrown_out += 1;
            self.report(Promise::Inside, now, || {
                "a visitor who kept coming lost its ticket".to_owned()
            });
        }
    }
}
