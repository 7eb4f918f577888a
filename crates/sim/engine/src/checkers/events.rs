//! Checkers of scheduled events: what holds when, by the clocks that nodes have and the plan of the
//! operator.
//!
//! They know the plan, every node's wall clock and the record of overrides, and have a naive model
//! of their own. The limits of an event are part of invariants 1 and 2: `ceiling` says which are
//! in force.

mod ceiling;
mod draw;
mod held;
mod phases;
mod run_off;
mod timetable;

use std::collections::BTreeMap;

use anteroom_config::overrides::RoomOverrides;
use anteroom_config::{EventNow, RoomConfig, RoomEvent};
use anteroom_room::event::EventPhase;
use anteroom_room::rules::Limits;
use anteroom_room::time::{DurationMs, Timestamp};

use ceiling::Ceiling;
use draw::Drawn;
pub(crate) use draw::Ranked;

/// Time around the edges of phases in which a node may still follow, or has followed early. It
/// looks at its clock once a second, and times of clocks that nearly agree are not converted.
const EDGE: DurationMs = DurationMs(2_000);

/// Name and times of an event: one that is moved is another one.
type EventKey = (String, [Timestamp; 3]);

fn key_of(event: &RoomEvent) -> EventKey {
    let times = event.times;
    let ends_at = times.ends_at.unwrap_or(Timestamp::NEVER);
    (
        event.name.to_string(),
        [times.prequeue_at, times.starts_at, ends_at],
    )
}

/// Process of a node that evaluated its schedule or decided about a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScheduledNode<'a> {
    pub(crate) node: u32,
    pub(crate) incarnation: u32,
    /// Configuration file of the node.
    pub(crate) file: &'a RoomConfig,
    /// Limits that its room applies.
    pub(crate) applied: Limits,
    pub(crate) wall: Timestamp,
    /// Whether its wall clock agrees with room time.
    pub(crate) is_steady: bool,
    /// Time of the newest step of its wall clock.
    pub(crate) stepped_at: Timestamp,
    /// Events that have begun, as it shows them.
    pub(crate) begun: &'a [EventNow],
    /// Newest record of overrides that it has read.
    pub(crate) known: &'a RoomOverrides,
    /// Time since which it has known the record of overrides.
    pub(crate) known_since: Option<Timestamp>,
    /// Record in the root's store, and the time since which it has been there.
    pub(crate) stored: Option<(Timestamp, &'a RoomOverrides)>,
}

/// Facts about scheduled events.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Latest phase by the clock of any process whose clocks agreed. Others may know it.
    reached: BTreeMap<EventKey, EventPhase>,
    /// Latest phase that each process has reached, or has read.
    own: BTreeMap<(u32, u32), BTreeMap<EventKey, EventPhase>>,
    ceiling: Ceiling,
    drawn: Drawn,
}

impl Events {
    /// Returns the earliest and the latest phase that an event may have at a node.
    fn phases(&self, node: &ScheduledNode<'_>, event: &RoomEvent) -> (EventPhase, EventPhase) {
        let key = key_of(event);
        let by_clock = timetable::phase(event, node.wall);
        let own = self.own.get(&(node.node, node.incarnation));
        let own = own
            .and_then(|own| own.get(&key))
            .copied()
            .unwrap_or_default();
        let least = by_clock.max(own);
        (least, least.max(self.reached(event)))
    }

    /// Returns the latest phase by the clock of any process whose clocks agreed.
    fn reached(&self, event: &RoomEvent) -> EventPhase {
        let reached = self.reached.get(&key_of(event));
        reached.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
