//! Limits of a process, and what they have counted.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::LimitConfig;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::shared::{CountsError, SharedCounts};
use anteroom_proxy::forwarded::Client;
use anteroom_proxy::header_view::HeaderView;
use anteroom_proxy::path::{Decoding, Readings};
use anteroom_proxy::request_context::KnownVisitor;
use arc_swap::{ArcSwap, Guard};
use futures_util::future::join_all;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::counters::Event;
use crate::limit::Limit;
use crate::plan::{self, Plan, PlanError};
use crate::stores::CountStores;

/// Interval at which limits forget idle clients.
const SWEEP_PERIOD: Duration = Duration::from_secs(30);

/// Most requests that count in shadow mode at shared stores at the same time. They delay no client,
/// so with a slow store they would pile up without bound.
const SHADOWS_MAX: usize = 1_024;

/// Environment of a limiter.
pub trait LimiterContext: Send + Sync + 'static {
    /// Returns the time for counting: microseconds since the Unix epoch, on a clock that does not
    /// jump.
    fn now(&self) -> TimestampUs;

    /// Returns seconds since the Unix epoch, by the clients' clock.
    fn wall_seconds(&self) -> u64;

    /// Whether waiting rooms are behind the limits, so that requests can be queued there.
    fn has_rooms(&self) -> bool {
        false
    }

    /// Whether waiting pages poll this path, and no service behind the limits sees it. Without
    /// waiting rooms there is no such path.
    fn is_polling(&self, _path: &str) -> bool {
        false
    }

    /// Returns how often origins may decode a path: a request counts in each possible reading.
    fn decoding(&self) -> Decoding {
        Decoding::default()
    }

    /// Returns the visitor of a valid ticket of the waiting room that covers the request. Without
    /// waiting rooms there is none.
    fn visitor(
        &self,
        _client: &Client,
        _readings: &Readings<'_>,
        _headers: HeaderView<'_>,
    ) -> Option<KnownVisitor> {
        None
    }
}

/// Limits of a process.
pub struct Limiter {
    plan: ArcSwap<Plan>,
    stores: CountStores,
    /// Permits for counting in shadow mode at shared stores; see [`SHADOWS_MAX`].
    shadows: Arc<Semaphore>,
    surroundings: Box<dyn LimiterContext>,
}

/// Statistics of one limit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LimiterStats {
    /// Name of the limit.
    pub name: String,
    /// Outcomes of requests since the process started.
    pub events: Vec<(Event, u64)>,
    /// Clients that it remembers.
    pub keys: usize,
    /// Most clients that it can remember.
    pub keys_max: usize,
    /// Requests that were counted in the overflow entry since the process started.
    pub overflowed: u64,
    /// Requests that could not be counted because the store was unavailable, since the process
    /// started.
    pub store_failures: u64,
    /// Store that counts it, as named in the config file.
    pub store: &'static str,
    /// Time since the last request that could not be counted, if the store is still failing.
    pub store_failed_ago: Option<Duration>,
    /// Cause of a recent such request.
    pub store_cause: Option<String>,
    /// Whether this node has just started and its store grants it nothing yet.
    pub is_joining_store: bool,
}

impl Limiter {
    /// Creates a limiter with these limits, counted in these stores or locally.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if one of them can never match a request, or needs more than its store offers.
    pub fn new(
        limits: &[LimitConfig],
        stores: CountStores,
        surroundings: impl LimiterContext,
    ) -> Result<Arc<Self>, PlanError> {
        let limiter = Self {
            plan: ArcSwap::default(),
            stores,
            shadows: Arc::new(Semaphore::new(SHADOWS_MAX)),
            surroundings: Box::new(surroundings),
        };
        limiter.commit(plan::of(limits, &limiter.stores, &HashMap::new())?);
        Ok(Arc::new(limiter))
    }

    /// Builds other limits without activating them. Counts stay for a limit with the same name and
    /// algorithm, and so do the tokens.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::new`].
    pub fn prepare(&self, limits: &[LimitConfig]) -> Result<Plan, PlanError> {
        let known = self.plan.load();
        let kept = known
            .limits
            .iter()
            .map(|limit| {
                let kept = (limit.store, limit.policy, Arc::clone(&limit.kept));
                (&*limit.name, kept)
            })
            .collect();
        let plan = plan::of(limits, &self.stores, &kept)?;
        Ok(Plan {
            tokens: known.tokens.clone(),
            ..plan
        })
    }

    /// Activates other limits.
    pub fn commit(&self, plan: Plan) {
        for limit in &plan.limits {
            limit.commit();
        }
        self.plan.store(Arc::new(plan));
    }

    /// Checks that the store of a limit can count it with this policy.
    ///
    /// # Errors
    ///
    /// [`PlanError`] with the message of the store.
    pub fn check_fit(&self, limit: &LimitConfig, policy: &Policy) -> Result<(), PlanError> {
        plan::check_fit(limit, policy, &self.stores)
    }

    /// Returns the statistics of all limits, in the order of the config file.
    #[must_use]
    pub fn stats(&self) -> Vec<LimiterStats> {
        let stats = |limit: &Limit| {
            let fill = limit.kept.counts.fill();
            LimiterStats {
                name: limit.name.to_string(),
                events: limit.kept.counters.read().to_vec(),
                keys: fill.keys,
                keys_max: limit.keys_max,
                overflowed: fill.overflows,
                store_failures: limit.kept.contact.failures(),
                store: limit.store.word(),
                store_failed_ago: limit.kept.contact.failed_ago(),
                store_cause: limit.kept.contact.cause(),
                is_joining_store: limit
                    .shared_store
                    .as_ref()
                    .is_some_and(|store| !store.counts.is_ready()),
            }
        };
        self.plan.load().limits.iter().map(stats).collect()
    }

    /// Returns the events that shared stores have counted since the process started, by store and
    /// event.
    #[must_use]
    pub fn store_events(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.stores.events()
    }

    /// Forgets what clients of leased limits have spent, because an operator confirms that they
    /// have spent nothing.
    ///
    /// # Errors
    ///
    /// [`CountsError`] of the store.
    pub async fn assume_leases_empty(&self) -> Result<(), CountsError> {
        for done in self.stores.each().filter_map(SharedCounts::assume_empty) {
            done.await?;
        }
        Ok(())
    }

    /// Releases resources that a successor on this machine waits for. Requests are still counted.
    pub async fn release_stores(&self) {
        join_all(self.stores.each().map(SharedCounts::release)).await;
    }

    /// Ends counting: tells other nodes, and a successor on this machine if there is one, the last
    /// requests. Call it after [`Limiter::release_stores`].
    pub async fn finish_stores(&self, has_successor: bool) {
        let stores = self.stores.each();
        join_all(stores.map(|store| store.finish(has_successor))).await;
    }

    /// Forgets idle clients at intervals, for ever.
    pub async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(SWEEP_PERIOD).await;
            let plan = self.plan.load_full();
            for limit in &plan.limits {
                limit.kept.counts.sweep(&limit.policy, self.now());
                // Each sweep holds its locks for a while; let other tasks run in between.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns a permit for counting in shadow mode at a shared store, if one is free.
    pub(crate) fn shadow_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.shadows).try_acquire_owned().ok()
    }

    pub(crate) fn plan(&self) -> Guard<Arc<Plan>> {
        self.plan.load()
    }

    pub(crate) fn now(&self) -> TimestampUs {
        self.surroundings.now()
    }

    pub(crate) fn has_rooms(&self) -> bool {
        self.surroundings.has_rooms()
    }

    pub(crate) fn is_polling(&self, path: &str) -> bool {
        self.surroundings.is_polling(path)
    }

    pub(crate) fn decoding(&self) -> Decoding {
        self.surroundings.decoding()
    }

    pub(crate) fn wall_seconds(&self) -> u64 {
        self.surroundings.wall_seconds()
    }

    pub(crate) fn visitor(
        &self,
        client: &Client,
        readings: &Readings<'_>,
        headers: HeaderView<'_>,
    ) -> Option<KnownVisitor> {
        self.surroundings.visitor(client, readings, headers)
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limiter({:?})", self.plan.load())
    }
}
