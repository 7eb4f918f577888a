//! Origins of a site or a room, and the choice of one for the next request.
//!
//! Of two random origins that are up, tower's balancer chooses the one with fewer requests in
//! flight. If none is up, it chooses among those that checks have not found unhealthy, and
//! otherwise among all, so that active visitors always pass. Failed requests alone never eject more
//! than half of the origins, because visitors must not be able to leave one origin with the load of
//! all.

mod balancer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anteroom_config::{HealthCheck, OriginOwner};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::upstream::health::{CheckThresholds, Condition, Health};
use crate::upstream::origin::Origin;
use crate::upstream::outcome::{Outcome, Sign};
use crate::upstream::request::RequestBody;
use balancer::Balancer;

/// Origins of a site or a room.
#[derive(Debug)]
pub struct Group<B> {
    pub(crate) owner: OriginOwner,
    pub(crate) retries: Arc<Retries>,
    pub(crate) check: Option<HealthCheck>,
    origins: Vec<Arc<Origin<B>>>,
    balancer: Mutex<Balancer<B>>,
    /// Counter of changes of any origin's condition.
    changes: Arc<AtomicU64>,
    is_down: AtomicBool,
    is_retired: AtomicBool,
    tasks: Mutex<Vec<AbortHandle>>,
}

/// Counters of requests that were sent again.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    stale: AtomicU64,
    elsewhere: AtomicU64,
}

/// Change of an origin's condition.
struct Changed {
    was: Condition,
    /// Duration of the previous condition.
    lasted: Duration,
    after: Condition,
}

impl Retries {
    pub(crate) fn count_stale(&self) {
        self.stale.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_elsewhere(&self) {
        self.elsewhere.fetch_add(1, Relaxed);
    }

    pub(crate) fn stale(&self) -> u64 {
        self.stale.load(Relaxed)
    }

    pub(crate) fn elsewhere(&self) -> u64 {
        self.elsewhere.load(Relaxed)
    }
}

impl<B> Drop for Group<B> {
    fn drop(&mut self) {
        for task in self.tasks.get_mut() {
            task.abort();
        }
    }
}

impl<B: RequestBody> Group<B> {
    /// Creates a group; `origins` must not be empty.
    pub(crate) fn new(
        owner: OriginOwner,
        origins: Vec<Arc<Origin<B>>>,
        check: Option<HealthCheck>,
        retries: Arc<Retries>,
        changes: Arc<AtomicU64>,
    ) -> Arc<Self> {
        let balancer = Balancer::among(&origins, changes.load(Relaxed));
        let group = Self {
            owner,
            retries,
            check,
            balancer: Mutex::new(balancer),
            is_down: AtomicBool::new(false),
            is_retired: AtomicBool::new(false),
            tasks: Mutex::default(),
            origins,
            changes,
        };
        group.note_down();
        Arc::new(group)
    }

    /// Ends the checks, because another group checks the same origins from now on.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Relaxed);
        for task in self.tasks.lock().drain(..) {
            task.abort();
        }
    }

    /// Whether all origins fail their checks: then nobody new should be admitted.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.is_down.load(Relaxed)
    }

    /// Whether requests may use HTTP/2.
    #[must_use]
    pub(crate) fn may_speak_http2(&self) -> bool {
        self.origins
            .iter()
            .any(|origin| origin.pool.may_speak_http2())
    }

    /// Whether all origins are reached over HTTP/1.1 without TLS, as the fast path does it.
    #[must_use]
    pub fn takes_plain_http1(&self) -> bool {
        self.origins
            .iter()
            .all(|origin| origin.pool.takes_plain_http1())
    }

    pub(crate) fn len(&self) -> usize {
        self.origins.len()
    }

    pub(crate) fn origin(&self, index: usize) -> Arc<Origin<B>> {
        Arc::clone(&self.origins[index])
    }

    pub(crate) fn origins(&self) -> &[Arc<Origin<B>>] {
        &self.origins
    }

    pub(crate) fn hold_tasks(&self, tasks: impl IntoIterator<Item = AbortHandle>) {
        self.tasks.lock().extend(tasks);
    }

    /// Chooses the origin for the next request, which was sent to `tried` already.
    pub(crate) fn pick(&self, tried: &[usize]) -> usize {
        if self.origins.len() == 1 {
            return 0;
        }
        let mut balancer = self.balancer.lock();
        let changes = self.changes.load(Relaxed);
        let is_late = |until| Instant::now() >= until;
        if balancer.as_of != changes || balancer.until.is_some_and(is_late) {
            *balancer = Balancer::among(&self.origins, changes);
        }
        if tried.is_empty()
            && let Some(picked) = balancer.pick()
        {
            return picked;
        }
        let least = |indices: &mut dyn Iterator<Item = usize>| {
            let untried = indices.filter(|index| !tried.contains(index));
            untried.min_by_key(|index| self.origins[*index].in_flight())
        };
        least(&mut balancer.members.iter().copied())
            .or_else(|| least(&mut (0..self.origins.len())))
            .unwrap_or(0)
    }

    /// Records the outcome of a request at an origin.
    pub(crate) fn settle(&self, index: usize, outcome: Outcome, after: Duration) {
        self.count(index, outcome, after);
        self.evaluate(index, outcome);
    }

    /// Counts a request that failed together with others by one event, without its effect on
    /// health.
    pub(crate) fn count(&self, index: usize, outcome: Outcome, after: Duration) {
        self.origins[index].counts.count(outcome, after);
    }

    fn evaluate(&self, index: usize, outcome: Outcome) {
        if self.origins.len() == 1 {
            return;
        }
        let now = Instant::now();
        let is_unanswered = match outcome.sign() {
            Sign::Good => {
                let changed = self.change(index, now, |health| health.handle_good(now));
                self.log_change(index, changed, || "a good response".to_owned());
                return;
            }
            Sign::GatewayError => false,
            Sign::NoResponse => true,
        };
        let changed = {
            // Locked while the others are checked: two must not be ejected at the same time.
            let _guard = self.balancer.lock();
            let may_spare = self.may_spare(index, now);
            let fail = |health: &mut Health| health.handle_failure(is_unanswered, may_spare, now);
            self.change(index, now, fail)
        };
        self.log_change(index, changed, || match outcome {
            Outcome::Answered(status) => format!("the last of several failures: status {status}"),
            other => format!("the last of several failures: {}", other.name()),
        });
    }

    /// Whether at least half of all origins would be up without this one.
    fn may_spare(&self, index: usize, now: Instant) -> bool {
        let others = self.origins.iter().enumerate();
        let up = others.filter(|(other, origin)| {
            *other != index && origin.health.lock().condition(now) == Condition::Up
        });
        up.count() >= self.origins.len().div_ceil(2)
    }

    /// Returns how often a visitor left after a long wait without any response of the origin; it
    /// never falls while the origins stay.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        let origins = self.origins.iter();
        let counts = origins.map(|origin| origin.counts.of(Outcome::Abandoned));
        counts.sum()
    }

    /// Records the result of a check.
    pub(crate) fn note_check(&self, index: usize, result: Result<(), String>) {
        let (Some(origin), Some(check)) = (self.origins.get(index), &self.check) else {
            return;
        };
        if self.is_retired.load(Relaxed) {
            return;
        }
        let thresholds = CheckThresholds {
            healthy_after: check.healthy_after,
            unhealthy_after: check.unhealthy_after,
        };
        let is_good = result.is_ok();
        let count = if is_good {
            &origin.counts.good_checks
        } else {
            &origin.counts.bad_checks
        };
        count.fetch_add(1, Relaxed);
        let now = Instant::now();
        let check = |health: &mut Health| health.handle_check(is_good, thresholds, now);
        let changed = self.change(index, now, check);
        self.log_change(index, changed, || match &result {
            Ok(()) => "checks pass again".to_owned(),
            Err(why) => why.clone(),
        });
        if let Err(why) = result {
            *origin.last_error.lock() = Some(why);
        }
        self.note_down();
    }

    /// Changes an origin's health. Returns the change if its condition differs, or if it has passed
    /// a trial.
    fn change(
        &self,
        index: usize,
        now: Instant,
        change: impl FnOnce(&mut Health),
    ) -> Option<Changed> {
        let mut health = self.origins[index].health.lock();
        let lasted = health.age(now);
        let was_on_trial = health.is_on_trial(now);
        let before = health.condition(now);
        change(&mut health);
        let after = health.condition(now);
        let has_proved = was_on_trial && after == Condition::Up && !health.is_on_trial(now);
        drop(health);
        if before != after {
            self.changes.fetch_add(1, Relaxed);
        } else if !has_proved {
            return None;
        }
        let was = if has_proved { Condition::Out } else { before };
        Some(Changed { was, lasted, after })
    }

    /// Logs a change; not under a lock, because others may wait for it.
    fn log_change(&self, index: usize, changed: Option<Changed>, why: impl FnOnce() -> String) {
        let Some(Changed { was, lasted, after }) = changed else {
            return;
        };
        let (room, site) = (self.owner.room(), self.owner.site());
        let origin = &self.origins[index].url;
        let (was, seconds, why) = (was.name(), lasted.as_secs(), why());
        if after == Condition::Up {
            info!(room, site, origin, was, seconds, why, "origin is up again");
        } else {
            let is = after.name();
            warn!(
                room,
                site, origin, is, was, seconds, why, "origin takes no requests"
            );
        }
    }

    fn note_down(&self) {
        let unhealthy = |origin: &Arc<Origin<B>>| origin.health.lock().is_unhealthy();
        let is_down = self.check.is_some() && self.origins.iter().all(unhealthy);
        if self.is_down.swap(is_down, Relaxed) == is_down {
            return;
        }
        let (room, site) = (self.owner.room(), self.owner.site());
        if is_down {
            warn!(room, site, "no origin is healthy; nobody new is admitted");
        } else {
            info!(room, site, "an origin is healthy again");
        }
    }
}

#[cfg(test)]
mod tests;
