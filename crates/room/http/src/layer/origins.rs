//! Origins of sites and rooms: their plan and limits, and reports of their failures to rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anteroom_config::{Config, RoomId, RoomOrigins, ServerConfig};
use anteroom_history::OriginTotals;
use anteroom_node::OriginCounts;
use anteroom_proxy::request_context::Upstream;
use anteroom_proxy::upstream::{Group, Limits, Origins, Plan};
use anteroom_room::origin::{OriginOutcome as CoreOutcome, UNREACHABLE_IN_A_ROW};
use arc_swap::ArcSwap;

use super::route_table::{RoomProblem, RouteTable, RouteTableError};
use anteroom_proxy::body::Body;
use anteroom_proxy::reverse_proxy::OriginOutcome;
use anteroom_proxy::timeouts::wait_of;

/// Interval of reports to rooms whose origins are down. A room without a report for five seconds
/// admits a visitor as a probe, which is not needed where health checks probe.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Origins of a room, for its history.
pub(super) struct OriginsOfRoom(Arc<Group<Body>>);

impl OriginsOfRoom {
    /// Returns the origins behind `upstream`.
    pub(super) fn of(upstream: &Upstream) -> Arc<Self> {
        Arc::new(Self(Arc::clone(&upstream.group)))
    }
}

impl OriginCounts for OriginsOfRoom {
    fn totals(&self) -> OriginTotals {
        let (latency, statuses) = self.0.responses();
        OriginTotals { latency, statuses }
    }
}

/// Returns the limits of connections to origins.
pub(super) fn limits(server: &ServerConfig) -> Limits {
    Limits {
        connect: wait_of(server.timeouts.origin_connect),
        idle: wait_of(server.origins.idle),
        head_bytes: server.origins.head_bytes,
        headers: server.origins.headers,
    }
}

/// Plans the origins of all sites and rooms of `config`.
pub(super) fn plan(
    origins: &Origins<Body>,
    config: &Config,
) -> Result<Plan<Body>, RouteTableError> {
    origins.plan(config.origins()).map_err(|errors| {
        let problems = errors.into_iter().map(|error| {
            let mut message = error.source.to_string();
            let mut cause = error.source.source();
            while let Some(error) = cause {
                message = format!("{message}: {error}");
                cause = error.source();
            }
            RoomProblem {
                owner: Some(error.owner),
                line: 0,
                message,
            }
        });
        RouteTableError {
            problems: problems.collect(),
        }
    })
}

/// Reports to rooms that all their origins are unhealthy, and that one is healthy again. Also
/// reports requests that visitors abandoned before the origin responded. Runs as long as the route
/// table exists.
pub(super) async fn watch(routes: Weak<ArcSwap<RouteTable>>) {
    let mut down = BTreeSet::new();
    let mut abandoned: BTreeMap<RoomId, u64> = BTreeMap::new();
    let mut ticks = tokio::time::interval(REPORT_INTERVAL);
    let mut is_first = true;
    loop {
        ticks.tick().await;
        let Some(routes) = routes.upgrade() else {
            return;
        };
        let table = routes.load_full();
        let is_present = |id: &RoomId| table.iter().any(|route| route.room.id() == id);
        abandoned.retain(|id, _| is_present(id));
        down.retain(|id| is_present(id));
        for route in table.iter() {
            let id = route.room.id();
            let now = route.upstream.group.abandoned();
            // A room that begins later has nothing to do with what the site abandoned before.
            let first = if is_first { 0 } else { now };
            let before = abandoned.insert(id.clone(), now).unwrap_or(first);
            let is_own = matches!(route.config.origins, RoomOrigins::Own(_));
            for _ in before..now {
                // Of a site, each room would count the requests of all of them.
                if is_own {
                    route.counters.count_outcome(OriginOutcome::Abandoned);
                }
                route.room.handle_origin_outcome(CoreOutcome::Unreachable);
            }
            if route.upstream.group.is_down() {
                down.insert(id.clone());
                for _ in 0..UNREACHABLE_IN_A_ROW {
                    route.room.handle_origin_outcome(CoreOutcome::Unreachable);
                }
            } else if down.remove(id) {
                route.room.handle_origin_outcome(CoreOutcome::Good);
            }
        }
        is_first = false;
    }
}
