//! What rooms and their origins have to say to each other, beside single requests.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::sync::Weak;
use std::time::Duration;

use anteroom_config::{Config, RoomName, ServerConfig};
use anteroom_proxy::upstream::{Limits, Origins, Plan};
use anteroom_room::origin::{OriginOutcome as CoreOutcome, UNREACHABLE_IN_A_ROW};
use arc_swap::ArcSwap;

use super::route_table::{RoomProblem, RouteTable, RouteTableError};
use anteroom_proxy::body::Body;
use anteroom_proxy::reverse_proxy::OriginOutcome;
use anteroom_proxy::timeouts::wait_of;

/// How often rooms are told while their origins are down. A room sends somebody to try after five
/// seconds without news; there is no need to where checks do that.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What connections to origins may cost.
pub(super) fn limits(server: &ServerConfig) -> Limits {
    Limits {
        connect: wait_of(server.timeouts.origin_connect),
        idle: wait_of(server.origins.idle),
        head_bytes: server.origins.head_bytes,
        headers: server.origins.headers,
    }
}

/// The origins of all rooms as they would be.
pub(super) fn plan(
    origins: &Origins<Body>,
    config: &Config,
) -> Result<Plan<Body>, RouteTableError> {
    origins.plan(&config.rooms).map_err(|errors| {
        let problems = errors.into_iter().map(|error| {
            let mut message = error.source.to_string();
            let mut cause = error.source.source();
            while let Some(error) = cause {
                message = format!("{message}: {error}");
                cause = error.source();
            }
            RoomProblem {
                room: error.room.to_string(),
                line: 0,
                message,
            }
        });
        RouteTableError {
            problems: problems.collect(),
        }
    })
}

/// Tells rooms whose origins are all unhealthy that they are, and when one is well again; and of
/// visitors who left an origin that answered nobody, whose requests are gone with them. As long as
/// there is a route table.
pub(super) async fn watch(routes: Weak<ArcSwap<RouteTable>>) {
    let mut down = BTreeSet::new();
    let mut abandoned: BTreeMap<RoomName, u64> = BTreeMap::new();
    let mut ticks = tokio::time::interval(TELL_EVERY);
    loop {
        ticks.tick().await;
        let Some(routes) = routes.upgrade() else {
            return;
        };
        let table = routes.load_full();
        for route in table.iter() {
            let name = &route.config.name;
            let now = route.upstream.group.abandoned();
            let before = abandoned.insert(name.clone(), now).unwrap_or(0);
            for _ in before..now {
                route.counters.count_outcome(OriginOutcome::Abandoned);
                route.room.handle_origin_outcome(CoreOutcome::Unreachable);
            }
            if route.upstream.group.is_down() {
                down.insert(name.clone());
                for _ in 0..UNREACHABLE_IN_A_ROW {
                    route.room.handle_origin_outcome(CoreOutcome::Unreachable);
                }
            } else if down.remove(name) {
                route.room.handle_origin_outcome(CoreOutcome::Good);
            }
        }
    }
}
