//! What a front door asks a room, and what it is told.

use anteroom_room::decision::QueuePosition;
use anteroom_room::room::passage::Intent;
use anteroom_room::ticket::Ticket;
use anteroom_room::time::Timestamp;

/// A request, as far as a room cares.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The values of the room's cookie. A client may send several, such as one for each kind of
    /// jar that it keeps; the one that is worth most counts.
    pub tickets: &'a [&'a str],
    /// Whether a page is asked for, and not something that a page loads.
    pub is_navigation: bool,
    /// What its sender is after if it is not inside.
    pub intent: Intent,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// On to the origin.
    Pass(Pass),
    /// Wait.
    Queue {
        /// The waiting ticket to hand out; `None` where there is no queue.
        ticket: Option<String>,
        /// Where the visitor stands.
        place: QueuePosition,
    },
    /// The answer to a look: somebody new would be let in.
    MayCome,
}

/// Somebody who is inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// Its ticket.
    pub ticket: Ticket,
    /// Until when it is inside.
    pub seat_ends_at: Timestamp,
    /// A sealed ticket to hand out, if it is to carry a new one from now on.
    pub new_ticket: Option<String>,
    /// Whether it was let in just now.
    pub is_admission: bool,
}
