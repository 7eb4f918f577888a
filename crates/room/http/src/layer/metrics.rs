//! What there is to see of rooms and their origins, for metrics.

use std::collections::BTreeMap;

use anteroom_config::RoomName;
use anteroom_proxy::upstream::RoomOriginFigures;

use super::WaitingRoomLayer;
use super::tallies::{CountsByRoom, SharedTicketCounts};

impl WaitingRoomLayer {
    /// What was said to requests for rooms so far.
    #[must_use]
    pub fn verdicts(&self) -> CountsByRoom {
        self.gate.tallies.verdicts()
    }

    /// How origins of rooms did so far.
    #[must_use]
    pub fn origin_outcomes(&self) -> CountsByRoom {
        self.gate.tallies.outcomes()
    }

    /// What there is to see of each room's origins.
    #[must_use]
    pub fn origin_figures(&self) -> BTreeMap<RoomName, RoomOriginFigures> {
        self.gate.origins.figures()
    }

    /// What was noticed of tickets that many use, by room.
    #[must_use]
    pub fn shared_tickets(&self) -> BTreeMap<RoomName, SharedTicketCounts> {
        self.gate.tallies.shared_tickets()
    }

    /// How many tickets this node has forgotten the addresses of, although they had been used
    /// lately.
    #[must_use]
    pub fn evicted_tickets(&self) -> u64 {
        self.gate.shared_tickets.evicted_total()
    }

    /// How often bypass rules failed to evaluate, since they were read.
    #[must_use]
    pub fn bypass_failures(&self) -> BTreeMap<RoomName, u64> {
        let doors = self.gate.doors.load();
        let failures = doors
            .iter()
            .map(|door| (door.config.name.clone(), door.bypass.failures()));
        failures.collect()
    }
}
