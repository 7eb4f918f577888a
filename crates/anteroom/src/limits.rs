//! What limits of calls ask the rest of the program: the time, who shows a ticket, and a store.

use std::sync::Arc;

use anteroom_config::{Config, RateLimitStore, StoreConfig};
use anteroom_control::{LimitFigures, RateLimitFigures};
use anteroom_counts::mixed::MixedCounts;
use anteroom_gateway::forwarded::Client;
use anteroom_gateway::layer::{KnownVisitor, WaitingRoomLayer, is_own_path};
use anteroom_gateway::path::Readings;
use anteroom_limits::time::Micros;
use anteroom_meter::{Figures, Surroundings};
use anteroom_node::NodeClock;
use anteroom_ratelimit::{Counts, RateLimitService};
use anteroom_valkey::ValkeyCounts;
use anyhow::Context as _;
use http::HeaderMap;
use tokio::task::JoinHandle;

/// A gateway around its limits.
pub(crate) struct Around {
    pub(crate) clock: Arc<dyn NodeClock>,
    pub(crate) rooms: WaitingRoomLayer,
}

impl Surroundings for Around {
    /// Room time: no step of the wall clock gives anybody calls back.
    fn now(&self) -> Micros {
        now(&*self.clock)
    }

    fn wall_seconds(&self) -> u64 {
        self.clock.wall().0 / 1_000
    }

    fn is_polling(&self, path: &str) -> bool {
        is_own_path(path)
    }

    fn visitor(
        &self,
        client: &Client,
        readings: &Readings<'_>,
        headers: &HeaderMap,
    ) -> Option<KnownVisitor> {
        self.rooms.visitor_of(client, readings, headers)
    }
}

fn now(clock: &dyn NodeClock) -> Micros {
    Micros(clock.now().0.saturating_mul(1_000))
}

/// Starts Envoy's rate limit service, if the file has one.
pub(crate) async fn start_service(
    config: &Config,
    clock: &Arc<dyn NodeClock>,
) -> anyhow::Result<Option<Arc<RateLimitService>>> {
    let Some(service) = &config.rate_limit_service else {
        return Ok(None);
    };
    let counts = match (service.store, &config.store) {
        (RateLimitStore::Valkey, StoreConfig::Valkey(store)) => {
            let counts = ValkeyCounts::new(&store.local, &store.prefix).context("store.local")?;
            Counts::Shared(Arc::new(counts))
        }
        _ => Counts::Local(Arc::new(MixedCounts::new(service.keys_max))),
    };
    let clock = Arc::clone(clock);
    let now = Arc::new(move || now(&*clock));
    let service = RateLimitService::start(service, counts, now).await?;
    tracing::info!("serving rate limits: {service:?}");
    Ok(Some(Arc::new(service)))
}

/// Ends the service, if there is one: it takes nobody any more, and open calls may finish.
pub(crate) fn stop_service(service: Option<&Arc<RateLimitService>>) -> JoinHandle<()> {
    let stopped = service.map(|service| service.stop());
    tokio::spawn(async move {
        if let Some(stopped) = stopped {
            stopped.await;
        }
    })
}

/// The figures of the rate limit service, as operators are shown them.
pub(crate) fn service_shown(service: &RateLimitService) -> RateLimitFigures {
    let figures = service.figures();
    let fill = figures.fill.unwrap_or_default();
    RateLimitFigures {
        answers: figures.answers,
        hits: figures.limits,
        unknown_domains: figures.domains_unknown,
        loads: figures.loads,
        failed_loads: figures.failed_loads,
        keys: u64::try_from(fill.keys).unwrap_or(u64::MAX),
        crowded: fill.crowded,
    }
}

/// The figures of one limit, by its name, as operators are shown them.
pub(crate) fn shown(figures: Figures) -> (String, LimitFigures) {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let calls = figures.events.iter();
    let shown = LimitFigures {
        calls: calls.map(|(event, count)| (event.name(), *count)).collect(),
        keys: count(figures.keys),
        keys_max: count(figures.keys_max),
        crowded: figures.crowded,
    };
    (figures.name, shown)
}
