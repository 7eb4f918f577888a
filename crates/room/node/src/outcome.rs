//! Requests to a room, and its verdicts.

use anteroom_room::id::VisitorId;
use anteroom_room::queue_position::QueuePosition;
use anteroom_room::room::request_flow::{Intent, RequestFlow, Step};
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
        /// Visitor of that ticket.
        visitor: Option<VisitorId>,
        /// Position in the queue, and the reason of waiting.
        position: QueuePosition,
    },
    /// A poll without a ticket found that the room would admit a new visitor.
    MayCome,
}

/// Best ticket of a request; none if none of them opens.
#[derive(Debug)]
pub struct OpenedTicket(pub(crate) Option<Ticket>);

/// Result of a look at the tickets of a request.
#[derive(Debug)]
pub enum Look {
    /// The visitor is active, and nothing else is to be decided or done.
    Pass(Pass),
    /// Anything else. Nothing has changed.
    Other(OpenedTicket),
    /// No ledger knows this process, so tickets prove nothing.
    NotJoined,
}

/// Decision about a request that waits for a store or for a turn; see
/// [`RoomHandle::go_on`](crate::RoomHandle::go_on). Dropping it is like a client that goes away.
#[derive(Clone, Debug)]
pub struct BegunDecision {
    pub(crate) flow: RequestFlow,
    pub(crate) step: Step,
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
