//! What does a demo ask of whoever starts its gateways, and what does it get?
//!
//! Nothing is started here, and no store is known: only how many gateways, for which origin, and
//! how to look at them and end them.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;

use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;
use serde::Serialize;
use url::Url;

use super::layout::Layout;

/// The gateways that a demo needs. They share the limits of one room.
#[derive(Clone, Debug)]
pub struct GatewayPlan {
    /// Where admitted requests go.
    pub origin: SocketAddr,
    /// Name of the one room, which covers every host and path.
    pub room: String,
    /// Its limits.
    pub limits: Limits,
    /// Its session duration.
    pub session_duration: DurationMs,
    /// How many gateways, and in how many data centers.
    pub layout: Layout,
    /// An empty folder for journals, keys and stores; gone when the demo ends.
    pub data_dir: PathBuf,
}

/// Gateways that somebody started.
pub struct RunningGateways {
    /// All of them, those of one data center after those of another; at least one.
    pub gateways: Vec<RunningGateway>,
    /// Ends them and whatever was started for them; returns once they have ended. Dropped before,
    /// it ends at least what would outlive this process.
    pub stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// One of them.
pub struct RunningGateway {
    /// Where to open a browser, as in `http://127.0.0.1:8080/`.
    pub url: Url,
    /// Number of its data center, from 1.
    pub data_center: u32,
    /// Reads its figures; called a few times a second.
    pub stats: Box<dyn Fn() -> GatewayStats + Send + Sync>,
}

/// What gateways say of the room.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct GatewayStats {
    /// Visitors inside, in the world as the gateway knows it.
    pub inside: u32,
    /// Visitors in the line, in the world as the gateway knows it.
    pub waiting: u32,
    /// Admissions since the start, by this gateway; of all of them in a summary.
    pub admitted: u64,
}

impl RunningGateways {
    /// Where each of them listens.
    pub(super) fn urls(&self) -> Vec<Url> {
        let gateways = self.gateways.iter();
        gateways.map(|gateway| gateway.url.clone()).collect()
    }

    /// One gateway of each data center.
    pub(super) fn doors(&self) -> impl Iterator<Item = &RunningGateway> {
        let chunks = self
            .gateways
            .chunk_by(|left, right| left.data_center == right.data_center);
        chunks.filter_map(<[RunningGateway]>::first)
    }

    /// The world as the first one sees it, with everybody's admissions: a visitor is admitted by
    /// one gateway, but each of them knows of all who are inside.
    pub(super) fn stats(&self) -> GatewayStats {
        let all = self.gateways.iter().map(|gateway| (gateway.stats)());
        let sum = |sum: GatewayStats, next: GatewayStats| GatewayStats {
            admitted: sum.admitted + next.admitted,
            ..sum
        };
        all.reduce(sum).unwrap_or_default()
    }
}

impl fmt::Debug for RunningGateways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningGateways")
            .field("gateways", &self.gateways)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RunningGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningGateway")
            .field("url", &self.url.as_str())
            .field("data_center", &self.data_center)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(port: u16, data_center: u32, stats: GatewayStats) -> RunningGateway {
        RunningGateway {
            url: format!("http://127.0.0.1:{port}/").parse().unwrap(),
            data_center,
            stats: Box::new(move || stats),
        }
    }

    fn running() -> RunningGateways {
        let stats = |inside, waiting, admitted| GatewayStats {
            inside,
            waiting,
            admitted,
        };
        RunningGateways {
            gateways: vec![
                gateway(1, 1, stats(40, 7, 30)),
                gateway(2, 1, stats(39, 8, 20)),
                gateway(3, 2, stats(38, 9, 10)),
            ],
            stop: Box::pin(async {}),
        }
    }

    #[test]
    fn admissions_are_added_up_and_the_root_is_seen_from_one_gateway() {
        let expected = GatewayStats {
            inside: 40,
            waiting: 7,
            admitted: 60,
        };
        assert_eq!(running().stats(), expected);
    }

    #[test]
    fn one_door_of_each_data_center_is_shown_and_all_used() {
        let running = running();
        let doors: Vec<_> = running.doors().map(|door| door.url.port()).collect();
        assert_eq!(doors, [Some(1), Some(3)]);
        assert_eq!(running.urls().len(), 3);
    }
}
