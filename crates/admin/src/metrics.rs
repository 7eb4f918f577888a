//! Metrics of a process in the OpenMetrics text format.
//!
//! One collector reads everything at the moment of the scrape; nothing is cached. `writer` writes
//! families. Each other module has the metrics of one part: `rooms`, their `origins`, `limits`,
//! `rate_limits` (Envoy's rate limit service), and `others` for the rest of the program.

mod limits;
mod origins;
mod others;
mod rate_limits;
mod rooms;
mod writer;

use std::fmt;
use std::sync::Arc;

use anteroom_node::{ClockWatch, HistoryStats, Node, OtherOwner};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::clocks::{Clocks, timestamp};
use crate::extras::Extras;
use writer::{Families, Title};

/// Media type of [`Metrics::text`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics of a process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
}

impl Metrics {
    pub(crate) fn new(node: Arc<Node>, extras: Arc<dyn Extras>) -> Self {
        let mut registry = Registry::with_prefix("anteroom");
        registry.register(
            "build",
            "Version of the running program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register_with_unit(
            "start_time",
            "Start of this process, in seconds since the Unix epoch",
            Unit::Seconds,
            ConstGauge::new(timestamp(node.clock().wall())),
        );
        registry.register_collector(Box::new(AtScrape { node, extras }));
        Self { registry }
    }

    /// Returns all metrics of this moment, in the OpenMetrics text format.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Collector that reads the metrics during a scrape.
struct AtScrape {
    node: Arc<Node>,
    extras: Arc<dyn Extras>,
}

impl fmt::Debug for AtScrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AtScrape({:?})", self.node)
    }
}

impl Collector for AtScrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let clocks = Clocks::read(self.node.clock());
        let mut families = Families::new(encoder);
        families.seconds(
            "clock_offset",
            "How far room time is ahead of this machine's wall clock; negative: behind.",
            clocks.offset_seconds(),
        )?;
        write_clocks(&mut families, self.node.clock_watch())?;
        write_history(&mut families, self.node.history_stats())?;
        rooms::write(&mut families, &self.node, clocks)?;
        others::write(&mut families, &self.extras.read())
    }
}

/// Writes counts of the rows of the history of rooms.
fn write_history(families: &mut Families<'_>, stats: HistoryStats) -> fmt::Result {
    families.total(
        "history_rows",
        "Rows of the history of rooms that the store has.",
        stats.written,
    )?;
    families.total(
        "history_rows_dropped",
        "Rows of the history of rooms that no store took in time.",
        stats.dropped,
    )?;
    families.total(
        "history_writes_failed",
        "Writes of the history of rooms that failed; they are repeated.",
        stats.failed_writes,
    )
}

/// Writes how far other clocks are ahead of this node's.
fn write_clocks(families: &mut Families<'_>, watch: &ClockWatch) -> fmt::Result {
    let seconds = |ahead_ms: i64| ahead_ms as f64 / 1_000.0;
    let stores = watch.stores().into_iter().map(|difference| {
        let store = match difference.owner {
            OtherOwner::GlobalStore => "global",
            OtherOwner::LocalStore | OtherOwner::Node(_) => "local",
        };
        ([("store", store)], seconds(difference.ahead_ms))
    });
    families.times(
        Title {
            name: "store_clock_ahead",
            help: "How far a store's clock is ahead of this node's; negative: behind.",
        },
        stores,
    )?;
    families.seconds(
        "nodes_clock_ahead",
        "How far the clock of another node is ahead of this node's, if by more than half a second.",
        seconds(watch.nodes_ahead_ms()),
    )
}
