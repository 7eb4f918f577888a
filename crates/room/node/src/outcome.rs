//! Requests to a room, and its verdicts.

use anteroom_room::queue_position::QueuePosition;
use anteroom_room::room::request_flow::Intent;
use anteroom_room::ticket::Ticket;
use anteroom_room::time::Timestamp;

/// Request, as far as a room needs it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Values of the room's cookie. A client may send several; the best ticket among them counts.
    pub tickets: &'a [&'a str],
    /// Whether the request is for a page, and not for a part of one.
    pub is_navigation: bool,
    /// Whether a waiting visitor sees a page as the response, in a window.
    pub gets_page: bool,
    /// Intent of the request if its visitor is not active.
    pub intent: Intent,
}

/// Verdict of a room about a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The request goes to the origin.
    Pass(Pass),
    /// The visitor waits.
    Queue {
        /// Sealed ticket for the response; `None` without a queue.
        ticket: Option<String>,
        /// Position in the queue, and the reason of waiting.
        position: QueuePosition,
    },
    /// A poll without a ticket found that the room would admit a new visitor.
    MayCome,
}

/// Active visitor whose request passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// Ticket of the visitor.
    pub ticket: Ticket,
    /// End of the session.
    pub seat_ends_at: Timestamp,
    /// Sealed ticket for the response, if there is a new one.
    pub new_ticket: Option<String>,
    /// Whether this request admitted the visitor.
    pub is_admission: bool,
}
