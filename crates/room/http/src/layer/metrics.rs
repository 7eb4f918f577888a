//! Metrics of rooms and their origins.

use std::collections::BTreeMap;

use anteroom_config::{OriginOwner, RoomName};
use anteroom_proxy::upstream::GroupStats;

use super::WaitingRoomLayer;
use super::counters::{CountsByRoom, SharedTicketCounts};

impl WaitingRoomLayer {
    /// Counts the verdicts about requests for rooms.
    #[must_use]
    pub fn verdicts(&self) -> CountsByRoom {
        self.gate.counters.verdicts()
    }

    /// Counts the outcomes of requests to origins of rooms.
    #[must_use]
    pub fn origin_outcomes(&self) -> CountsByRoom {
        self.gate.counters.outcomes()
    }

    /// Returns the stats of the origins of sites and rooms.
    #[must_use]
    pub fn origin_stats(&self) -> BTreeMap<OriginOwner, GroupStats> {
        self.gate.origins.stats()
    }

    /// Counts shared tickets, by room.
    #[must_use]
    pub fn shared_tickets(&self) -> BTreeMap<RoomName, SharedTicketCounts> {
        self.gate.counters.shared_tickets()
    }

    /// Counts tickets whose networks this node had to forget although they were used recently.
    #[must_use]
    pub fn evicted_tickets(&self) -> u64 {
        self.gate.shared_tickets.evicted_total()
    }

    /// Counts failed evaluations of bypass rules, since the rules were read.
    #[must_use]
    pub fn bypass_failures(&self) -> BTreeMap<RoomName, u64> {
        let routes = self.gate.routes.load();
        let failures = routes
            .iter()
            .map(|route| (route.config.name.clone(), route.bypass.failures()));
        failures.collect()
    }
}
