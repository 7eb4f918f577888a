//! Events of a simulation.

use anteroom_room::time::Timestamp;

use super::slab::Key;

/// Planned event; it is small, because millions of them wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The next new visitor of a stream comes.
    Arrives { stream: u32 },
    /// A visitor sends its next request: a page, or a poll.
    SendsRequest { visitor: Key },
    /// A request reaches the node that was chosen for it.
    ReachesNode { visitor: Key },
    /// A copy of a ticket is sent.
    CopySent { copy: Key },
    /// The longest wait for a reply of the parent ends.
    WaitEnds { request: Key },
    /// A node's sync loop is polled.
    LoopDue { node: u32, at: Timestamp },
    /// A message between a node and a store arrives.
    Message { message: Key },
    /// A request for a number reaches its counter.
    AtCounter { request: Key },
    /// The number reaches the node.
    NumberBack { request: Key },
    /// A fault of the scenario happens, by its index in the list.
    Fault { index: u32 },
    /// A node that has sent its last sync stops.
    Stops { node: u32, incarnation: u32 },
    /// A node starts.
    Starts { node: u32 },
    /// A node gets the rules of a fault.
    NewRules { node: u32, fault: u32 },
    /// A node looks whether its schedule changes its settings.
    LooksAtSchedule { node: u32, incarnation: u32 },
    /// A message about the record of overrides arrives.
    Record { record: Key },
    /// A second is over.
    Second,
}
