//! What metrics show of rooms and their origins.

use std::collections::BTreeMap;

use anteroom_config::RoomName;
use anteroom_proxy::upstream::RoomOriginStats;

use super::WaitingRoomLayer;
use super::counters::{CountsByRoom, SharedTicketCounts};

impl WaitingRoomLayer {
    /// What was said to requests for rooms so far.
    #[must_use]
    pub fn verdicts(&self) -> CountsByRoom {
        self.gate.counters.verdicts()
    }

    /// How origins of rooms did so far.
    #[must_use]
    pub fn origin_outcomes(&self) -> CountsByRoom {
        self.gate.counters.outcomes()
    }

    /// What there is to see of each room's origins.
    #[must_use]
    pub fn origin_stats(&self) -> BTreeMap<RoomName, RoomOriginStats> {
        self.gate.origins.stats()
    }

    /// What was noticed of tickets that many use, by room.
    #[must_use]
    pub fn shared_tickets(&self) -> BTreeMap<RoomName, SharedTicketCounts> {
        self.gate.counters.shared_tickets()
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
        let routes = self.gate.routes.load();
        let failures = routes
            .iter()
            .map(|route| (route.config.name.clone(), route.bypass.failures()));
        failures.collect()
    }
}
