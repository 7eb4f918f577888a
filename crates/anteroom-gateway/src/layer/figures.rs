//! What there is to see of rooms and their origins, for metrics.

use std::collections::BTreeMap;

use anteroom_config::RoomName;
use anteroom_origin::RoomOriginFigures;

use super::WaitingRoomLayer;
use super::tallies::CountsByRoom;

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
