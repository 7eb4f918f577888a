//! Gateways of a demo: what the caller must start, and what it returns.
//!
//! Nothing is started here, and no store is used: only the number of gateways, their origin, and
//! how to read their stats and stop them.

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
    /// Address of the origin.
    pub origin: SocketAddr,
    /// Name of the one room, which covers every host and path.
    pub room: String,
    /// Limits of the room.
    pub limits: Limits,
    /// Session duration of the room.
    pub session_duration: DurationMs,
    /// Number of gateways and data centers.
    pub layout: Layout,
    /// Empty folder for journals, keys and stores; removed when the demo ends.
    pub data_dir: PathBuf,
}

/// Gateways that the caller started.
pub struct RunningGateways {
    /// All gateways, grouped by data center; at least one.
    pub gateways: Vec<RunningGateway>,
    /// Stops them and whatever was started for them; completes when they have stopped. If it is
    /// dropped, it stops at least what would outlive this process.
    pub stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// A running gateway.
pub struct RunningGateway {
    /// Address for a browser, such as `http://127.0.0.1:8080/`.
    pub url: Url,
    /// Number of its data center, from 1.
    pub data_center: u32,
    /// Reads its stats; called a few times a second.
    pub stats: Box<dyn Fn() -> GatewayStats + Send + Sync>,
}

/// Stats of the room, as a gateway reports them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct GatewayStats {
    /// Active visitors in all data centers, as this gateway knows them.
    pub inside: u32,
    /// Waiting visitors in all data centers, as this gateway knows them.
    pub waiting: u32,
    /// Admissions by this gateway since the start; in a summary, those of all gateways.
    pub admitted: u64,
}

impl RunningGateways {
    /// Returns the addresses of all gateways.
    pub(super) fn urls(&self) -> Vec<Url> {
        let gateways = self.gateways.iter();
        gateways.map(|gateway| gateway.url.clone()).collect()
    }

    /// Returns one gateway of each data center.
    pub(super) fn first_in_each_data_center(&self) -> impl Iterator<Item = &RunningGateway> {
        let chunks = self
            .gateways
            .chunk_by(|left, right| left.data_center == right.data_center);
        chunks.filter_map(<[RunningGateway]>::first)
    }

    /// Returns the stats of the first gateway, with the admissions of all. One gateway admits a
    /// visitor, but each of them knows the number of active visitors.
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
    fn admissions_are_summed_and_other_stats_are_of_one_gateway() {
        let expected = GatewayStats {
            inside: 40,
            waiting: 7,
            admitted: 60,
        };
        assert_eq!(running().stats(), expected);
    }

    #[test]
    fn one_gateway_of_each_data_center_is_shown_and_all_are_used() {
        let running = running();
        let first: Vec<_> = running
            .first_in_each_data_center()
            .map(|gateway| gateway.url.port())
            .collect();
        assert_eq!(first, [Some(1), Some(3)]);
        assert_eq!(running.urls().len(), 3);
    }
}
