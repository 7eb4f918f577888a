//! Envoy's rate limit service in a gateway, and how limits are shown to operators.

use std::sync::Arc;

use anteroom_admin::{LimitFigures, QuotaFigures, RateLimitFigures};
use anteroom_config::{Config, RateLimitStore};
use anteroom_envoy::{Counts, Doors, RateLimitService};
use anteroom_limit::time::Micros;
use anteroom_limit_http::Figures;
use anteroom_limit_store::mixed::MixedCounts;
use anteroom_node::NodeClock;
use anteroom_tower::near_counts;
use tokio::task::JoinHandle;

fn now(clock: &dyn NodeClock) -> Micros {
    Micros(clock.now().0.saturating_mul(1_000))
}

/// Starts Envoy's rate limit service, if the file has one.
pub(crate) async fn start_service(
    config: &Config,
    doors: Doors,
    clock: &Arc<dyn NodeClock>,
) -> anyhow::Result<Option<Arc<RateLimitService>>> {
    let Some(service) = &config.rate_limit_service else {
        return Ok(None);
    };
    let near = match service.store {
        RateLimitStore::Valkey => near_counts(config)?,
        RateLimitStore::Local => None,
    };
    let counts = match near {
        Some(near) => Counts::Shared(near),
        None => Counts::Local(Arc::new(MixedCounts::new(service.keys_max))),
    };
    let clock = Arc::clone(clock);
    let now = Arc::new(move || now(&*clock));
    let service = RateLimitService::start(doors, service, counts, now).await?;
    tracing::info!(
        grpc = service.grpc().map(tracing::field::display),
        http = service.http().map(tracing::field::display),
        "serving rate limits"
    );
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
        quota: QuotaFigures {
            streams: figures.quota.streams,
            limits: figures.quota.limits,
            buckets: figures.quota.buckets,
            calls: figures.quota.calls().into(),
            events: figures.quota.events().into(),
        },
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
        store_failures: figures.store_failures,
        store: figures.store,
        store_failed_ago: figures.store_failed_ago,
    };
    (figures.name, shown)
}
