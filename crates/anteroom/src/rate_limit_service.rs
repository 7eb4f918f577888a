//! Envoy's rate limit service in a gateway, and stats of limits for operators.

use std::sync::Arc;

use anteroom_admin::{LimitStats, QuotaStats, RateLimitServiceStats};
use anteroom_config::{Config, RateLimitStore};
use anteroom_envoy::{Counts, RateLimitService, ServiceSockets};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_http::LimiterStats;
use anteroom_limit_store::mixed::MixedCounts;
use anteroom_node::NodeClock;
use anteroom_tower::local_counts;
use tokio::task::JoinHandle;

fn now(clock: &dyn NodeClock) -> TimestampUs {
    TimestampUs(clock.now().0.saturating_mul(1_000))
}

/// Starts Envoy's rate limit service, if the file has one.
pub(crate) async fn start_service(
    config: &Config,
    sockets: ServiceSockets,
    clock: &Arc<dyn NodeClock>,
) -> anyhow::Result<Option<Arc<RateLimitService>>> {
    let Some(service) = &config.rate_limit_service else {
        return Ok(None);
    };
    let near = match service.store {
        RateLimitStore::Valkey => local_counts(config)?,
        RateLimitStore::Local => None,
    };
    let counts = match near {
        Some(near) => Counts::Shared(near),
        None => Counts::Local(Arc::new(MixedCounts::new(service.keys_max))),
    };
    let clock = Arc::clone(clock);
    let now = Arc::new(move || now(&*clock));
    let service = RateLimitService::start(sockets, service, counts, now).await?;
    tracing::info!(
        grpc = service.grpc().map(tracing::field::display),
        http = service.http().map(tracing::field::display),
        "serving rate limits"
    );
    Ok(Some(Arc::new(service)))
}

/// Stops the service, if there is one: it accepts no new requests, and open ones may finish.
pub(crate) fn stop_service(service: Option<&Arc<RateLimitService>>) -> JoinHandle<()> {
    let stopped = service.map(|service| service.stop());
    tokio::spawn(async move {
        if let Some(stopped) = stopped {
            stopped.await;
        }
    })
}

/// Returns the stats of the rate limit service for operators.
pub(crate) fn service_shown(service: &RateLimitService) -> RateLimitServiceStats {
    let stats = service.stats();
    let fill = stats.fill.unwrap_or_default();
    RateLimitServiceStats {
        answers: stats.answers,
        hits: stats.limits,
        unknown_domains: stats.domains_unknown,
        loads: stats.loads,
        failed_loads: stats.failed_loads,
        keys: u64::try_from(fill.keys).unwrap_or(u64::MAX),
        crowded: fill.overflows,
        quota: QuotaStats {
            streams: stats.quota.streams,
            limits: stats.quota.limits,
            buckets: stats.quota.buckets,
            requests: stats.quota.requests().into(),
            events: stats.quota.events().into(),
        },
    }
}

/// Returns the stats of one limit for operators, with its name.
pub(crate) fn shown(stats: LimiterStats) -> (String, LimitStats) {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let requests = stats.events.iter();
    let shown = LimitStats {
        requests: requests
            .map(|(event, count)| (event.name(), *count))
            .collect(),
        keys: count(stats.keys),
        keys_max: count(stats.keys_max),
        crowded: stats.overflowed,
        store_failures: stats.store_failures,
        store: stats.store,
        store_failed_ago: stats.store_failed_ago,
        store_cause: stats.store_cause,
        is_joining_store: stats.is_joining_store,
    };
    (stats.name, shown)
}
