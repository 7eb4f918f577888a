//! What may happen at a moment.

use anteroom_room::time::Timestamp;

use super::slab::Key;

/// Something that is planned; small, because millions of them wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The next newcomer of a stream comes.
    Arrives { stream: u32 },
    /// A visitor sends its next request: a page, or the question whether it may come in.
    Asks { visitor: Key },
    /// That request reaches the node that was chosen for it.
    Reaches { visitor: Key },
    /// A copy of a ticket is sent.
    CopySent { copy: Key },
    /// Nobody waits longer than this for an answer from above.
    PatienceEnds { request: Key },
    /// A node's loop is to be looked at.
    LoopDue { node: u32, at: Timestamp },
    /// A message between a node and a store comes to the end of a leg.
    Message { message: Key },
    /// A request for a number is at its counter.
    AtCounter { request: Key },
    /// The number is back.
    NumberBack { request: Key },
    /// A fault of the scenario happens, by its place in the list.
    Fault { index: u32 },
    /// A node that has said goodbye stops.
    Stops { node: u32, incarnation: u32 },
    /// A node starts.
    Starts { node: u32 },
    /// A node gets the rules of a fault.
    NewRules { node: u32, fault: u32 },
    /// A second is over.
    Second,
}
