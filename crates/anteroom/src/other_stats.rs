//! Stats of the admin address that come from neither the node nor the control API.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_admin::{ConnectionStats, ExtraStats};
use anteroom_embedded::Embedded;
use anteroom_envoy::RateLimitService;
use anteroom_limit_http::Limiter;
use anteroom_proxy::downstream::connection_table::ConnectionTable;
use anteroom_proxy::downstream::observer::{
    AbortReason, ConnectionObserver, FastPathRequest, Reclaimed, TurnedAway,
};
use anteroom_proxy::downstream::tls::Tls;
use anteroom_proxy::striped_counts::StripedCounts;
use anteroom_room_http::layer::WaitingRoomLayer;
use anteroom_tower::Layers;
use parking_lot::Mutex;

use crate::rate_limit_service;

/// Counters of connections.
#[derive(Debug)]
pub(crate) struct Connections {
    table: ConnectionTable,
    accept_paused: AtomicU64,
    accept_failed: AtomicU64,
    handshakes_failed: AtomicU64,
    broken_off: Mutex<BTreeMap<AbortReason, u64>>,
    reclaimed: Mutex<BTreeMap<Reclaimed, u64>>,
    turned_away: Mutex<BTreeMap<TurnedAway, u64>>,
    fast_path: StripedCounts<{ FastPathRequest::ALL.len() }>,
}

impl Connections {
    /// Creates the counters for the connections of this table.
    pub(crate) fn of(table: ConnectionTable) -> Self {
        Self {
            table,
            accept_paused: AtomicU64::default(),
            accept_failed: AtomicU64::default(),
            handshakes_failed: AtomicU64::default(),
            broken_off: Mutex::default(),
            reclaimed: Mutex::default(),
            turned_away: Mutex::default(),
            fast_path: StripedCounts::default(),
        }
    }

    fn stats(&self) -> ConnectionStats {
        let occupancy = self.table.occupancy();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        ConnectionStats {
            open: count(occupancy.open),
            with_ticket: count(occupancy.with_ticket),
            limit: count(occupancy.limit),
            near: count(occupancy.near),
            reclaimed: by_word(Reclaimed::ALL, Reclaimed::word, &self.reclaimed),
            turned_away: by_word(TurnedAway::ALL, TurnedAway::word, &self.turned_away),
            fast_path: FastPathRequest::ALL
                .iter()
                .zip(self.fast_path.read())
                .map(|(kind, count)| (kind.word(), count))
                .collect(),
        }
    }
}

/// Returns the counts of all kinds, including zeros.
fn by_word<K: Copy + Ord, const N: usize>(
    all: [K; N],
    word: fn(K) -> &'static str,
    counts: &Mutex<BTreeMap<K, u64>>,
) -> BTreeMap<&'static str, u64> {
    let counts = counts.lock();
    all.map(|kind| (word(kind), counts.get(&kind).copied().unwrap_or(0)))
        .into()
}

impl ConnectionObserver for Connections {
    fn accept_paused(&self) {
        self.accept_paused.fetch_add(1, Ordering::Relaxed);
    }

    fn accept_failed(&self, _error: &std::io::Error) {
        self.accept_failed.fetch_add(1, Ordering::Relaxed);
    }

    fn handshake_failed(&self) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }

    fn aborted(&self, why: AbortReason) {
        *self.broken_off.lock().entry(why).or_default() += 1;
    }

    fn reclaimed(&self, why: Reclaimed) {
        *self.reclaimed.lock().entry(why).or_default() += 1;
    }

    fn fast_path(&self, taken: FastPathRequest) {
        self.fast_path.add(taken as usize, 1);
    }

    fn turned_away(&self, why: TurnedAway) {
        *self.turned_away.lock().entry(why).or_default() += 1;
    }
}

/// Counters of the other crates in a running gateway.
pub(crate) struct OtherStats {
    layer: WaitingRoomLayer,
    meter: Arc<Limiter>,
    connections: Arc<Connections>,
    /// Set only if the store is a journal.
    store: Option<Arc<Embedded>>,
    tls: Option<Tls>,
    rate_limits: Option<Arc<RateLimitService>>,
    reloads: Mutex<Reloads>,
}

#[derive(Debug, Default)]
struct Reloads {
    good: u64,
    bad: u64,
    problem: Option<String>,
}

impl OtherStats {
    pub(crate) fn new(
        layers: &Layers,
        connections: Arc<Connections>,
        tls: Option<Tls>,
        rate_limits: Option<Arc<RateLimitService>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            layer: layers.waiting_rooms(),
            meter: Arc::clone(layers.limiter()),
            connections,
            store: layers.journal().cloned(),
            tls,
            rate_limits,
            reloads: Mutex::default(),
        })
    }

    pub(crate) fn note_reload(&self, problem: Option<String>) {
        let mut reloads = self.reloads.lock();
        if problem.is_some() {
            reloads.bad += 1;
        } else {
            reloads.good += 1;
        }
        reloads.problem = problem;
    }
}

impl anteroom_admin::Extras for OtherStats {
    fn read(&self) -> ExtraStats {
        let connections = &self.connections;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let reloads = self.reloads.lock();
        let shared = self.layer.shared_tickets();
        ExtraStats {
            origins: self.layer.origin_stats(),
            connections: connections.stats(),
            accept_pauses: read(&connections.accept_paused),
            accept_failures: read(&connections.accept_failed),
            handshakes_failed: read(&connections.handshakes_failed),
            connections_broken_off: by_word(
                AbortReason::ALL,
                AbortReason::word,
                &connections.broken_off,
            ),
            certificate_expires_at: self.tls.as_ref().map(Tls::expires_at),
            bypass_failures: self.layer.bypass_failures(),
            shared_tickets: shared
                .iter()
                .map(|(room, counts)| (room.clone(), counts.tickets))
                .collect(),
            shared_ticket_requests: shared
                .into_iter()
                .map(|(room, counts)| (room, counts.requests))
                .collect(),
            tickets_evicted: self.layer.evicted_tickets(),
            journal_rewrites: self
                .store
                .as_ref()
                .map_or(0, |store| store.rewritten_total()),
            journal_loss: self
                .store
                .as_ref()
                .and_then(|store| store.loss())
                .map(|loss| loss.to_string()),
            reloads: reloads.good,
            failed_reloads: reloads.bad,
            last_reload_error: reloads.problem.clone(),
            origin_outcomes: self.layer.origin_outcomes(),
            verdicts: self.layer.verdicts(),
            limits: self
                .meter
                .stats()
                .into_iter()
                .map(rate_limit_service::shown)
                .collect(),
            limit_stores: self.meter.store_events(),
            rate_limits: self
                .rate_limits
                .as_deref()
                .map(rate_limit_service::service_shown),
        }
    }
}
