//! All limits of a process: which hold now, and what they have counted.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::LimitConfig;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::shared::{CountsError, SharedCounts};
use anteroom_proxy::forwarded::Client;
use anteroom_proxy::path::{Decoding, Readings};
use anteroom_proxy::request_context::KnownVisitor;
use arc_swap::{ArcSwap, Guard};
use futures_util::future::join_all;
use http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::counters::Event;
use crate::limit::Limit;
use crate::plan::{self, Plan, PlanError};
use crate::stores::CountStores;

/// How often limits forget, on their own, clients that are as if they had never called.
const SWEEP_PERIOD: Duration = Duration::from_secs(30);

/// How many calls that only look may ask stores at once. They keep nobody waiting, so a slow store
/// would let them pile up.
const LOOKING_MAX: usize = 1_024;

/// What a meter asks its surroundings.
pub trait Surroundings: Send + Sync + 'static {
    /// The time by which calls are counted: microseconds since the Unix epoch, on a clock that does
    /// not jump.
    fn now(&self) -> TimestampUs;

    /// Seconds since the Unix epoch, as clients count them.
    fn wall_seconds(&self) -> u64;

    /// Whether waiting rooms stand behind the limits, so that calls can be sent there to wait.
    fn has_rooms(&self) -> bool {
        false
    }

    /// Whether waiting pages ask by this path, and no service behind the limits gets to see it.
    /// Without waiting rooms there is no such path.
    fn is_polling(&self, _path: &str) -> bool {
        false
    }

    /// How often origins are taken to decode a path: a request counts as what it may be read as.
    fn decoding(&self) -> Decoding {
        Decoding::default()
    }

    /// Who shows a good ticket of the waiting room that covers a request. Without waiting rooms,
    /// nobody does.
    fn visitor(
        &self,
        _client: &Client,
        _readings: &Readings<'_>,
        _headers: &HeaderMap,
    ) -> Option<KnownVisitor> {
        None
    }
}

/// The limits of a process.
pub struct Limiter {
    plan: ArcSwap<Plan>,
    stores: CountStores,
    /// Calls that only look, at stores elsewhere; see [`LOOKING_MAX`].
    looking: Arc<Semaphore>,
    surroundings: Box<dyn Surroundings>,
}

/// How one limit does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LimiterStats {
    /// Its name.
    pub name: String,
    /// What it said to calls, since the process began.
    pub events: Vec<(Event, u64)>,
    /// Clients that it remembers.
    pub keys: usize,
    /// How many it would remember at most.
    pub keys_max: usize,
    /// How often one was charged together with others because there was no place, since the process
    /// began.
    pub crowded: u64,
    /// Calls that could not be counted because the store was away, since the process began.
    pub store_failures: u64,
    /// The store that counts it, by its word in the config file.
    pub store: &'static str,
    /// How long ago a call could not be counted last, if the store is not known to be back since.
    pub store_failed_ago: Option<Duration>,
}

impl Limiter {
    /// A meter of these limits, which are counted in these stores or here.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if one of them can never be met by a request, or needs more than its store can
    /// do.
    pub fn new(
        limits: &[LimitConfig],
        stores: CountStores,
        surroundings: impl Surroundings,
    ) -> Result<Arc<Self>, PlanError> {
        let meter = Self {
            plan: ArcSwap::default(),
            stores,
            looking: Arc::new(Semaphore::new(LOOKING_MAX)),
            surroundings: Box::new(surroundings),
        };
        meter.commit(plan::of(limits, &meter.stores, &HashMap::new())?);
        Ok(Arc::new(meter))
    }

    /// Works out other limits, which do not hold yet. What a limit of the same name has counted by
    /// the same algorithm stays, and so do the tokens that are good.
    ///
    /// # Errors
    ///
    /// As [`Limiter::new`].
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

    /// Lets other limits hold from now on.
    pub fn commit(&self, plan: Plan) {
        for limit in &plan.limits {
            limit.commit();
        }
        self.plan.store(Arc::new(plan));
    }

    /// Says whether a limit can be counted by these settings in the store that it names.
    ///
    /// # Errors
    ///
    /// [`PlanError`] with the store's words.
    pub fn check_fit(&self, limit: &LimitConfig, policy: &Policy) -> Result<(), PlanError> {
        plan::check_fit(limit, policy, &self.stores)
    }

    /// How the limits do, in the order of the config file.
    #[must_use]
    pub fn stats(&self) -> Vec<LimiterStats> {
        let stats = |limit: &Limit| {
            let fill = limit.kept.counts.fill();
            LimiterStats {
                name: limit.name.to_string(),
                events: limit.kept.counters.read().to_vec(),
                keys: fill.keys,
                keys_max: limit.keys_max,
                crowded: fill.crowded,
                store_failures: limit.kept.contact.failures(),
                store: limit.store.word(),
                store_failed_ago: limit.kept.contact.failed_ago(),
            }
        };
        self.plan.load().limits.iter().map(stats).collect()
    }

    /// What the stores elsewhere have counted of themselves since the process began, by store and
    /// word.
    #[must_use]
    pub fn store_events(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.stores.events()
    }

    /// Forgets what clients of limits that are lent have spent, on an operator's word that they
    /// have spent nothing.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if their store does not do it.
    pub async fn assume_leases_empty(&self) -> Result<(), CountsError> {
        for done in self.stores.each().filter_map(SharedCounts::assume_empty) {
            done.await?;
        }
        Ok(())
    }

    /// Lets go of what a successor on this machine waits for. Calls are still counted.
    pub async fn release_stores(&self) {
        join_all(self.stores.each().map(SharedCounts::release)).await;
    }

    /// Nothing more is counted: tells other nodes, and a successor on this machine if there is one,
    /// the last calls. To be called after [`Limiter::release_stores`].
    pub async fn finish_stores(&self, has_successor: bool) {
        let stores = self.stores.each();
        join_all(stores.map(|store| store.finish(has_successor))).await;
    }

    /// Forgets clients that are as if they had never called, now and then, for ever.
    pub async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(SWEEP_PERIOD).await;
            let plan = self.plan.load_full();
            for limit in &plan.limits {
                limit.kept.counts.sweep(&limit.policy, self.now());
                // Each takes its locks for a while; others have their turn in between.
                tokio::task::yield_now().await;
            }
        }
    }

    /// A place for a call that only looks elsewhere, while there is one.
    pub(crate) fn look_elsewhere(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.looking).try_acquire_owned().ok()
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
        headers: &HeaderMap,
    ) -> Option<KnownVisitor> {
        self.surroundings.visitor(client, readings, headers)
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meter({:?})", self.plan.load())
    }
}
