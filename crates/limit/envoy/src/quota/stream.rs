//! One stream: what an Envoy reports, and what it is told.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::config::{ENTRIES_MAX, RateLimits};
use anteroom_limit::quota::book::MemberId;
use anteroom_limit::time::{DurationUs, TimestampUs};
use futures_util::Stream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::server::StreamingService;
use tonic::{Request, Response, Status, Streaming};

use crate::budget::Budget;
use crate::quota::Quotas;
use crate::quota::actor::StreamEvent;
use crate::quota::books::Route;
use crate::quota::bucket::{BUCKET_BYTES_MAX, Pairs, Target, target};
use crate::quota::told::{Assignments, Line, answers};
use crate::wire::quota::{
    BucketId, BucketQuotaUsage, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};

/// Buckets of one stream. Those beyond are abandoned: Envoy forgets them, too.
pub(crate) const BUCKETS_MAX: usize = 1_000;
/// Lines that wait to be sent. A client that reads so slowly is not told what is older.
const LINES_MAX: usize = 2 * BUCKETS_MAX;
/// Bytes of names that wait to be sent only to say that they are not kept. As many as Envoy makes
/// of the longest headers of a few requests; a client that sends longer ones, or many and reads
/// nothing, is not told.
const REFUSED_BYTES_MAX: usize = 256 << 10;
/// What a key with its value takes beside its bytes.
const PAIR_BYTES: usize = 100;
/// Between two messages of one stream. Envoy sends one for each new bucket, and one for all every
/// second or so.
const MESSAGE_EVERY: Duration = Duration::from_millis(2);
/// A bucket that told of no request for so long is abandoned, so that nothing is kept for it.
const IDLE_AFTER: DurationUs = DurationUs::from_secs(300);
/// A stream without a report for so long is ended: it takes the place of another, and an Envoy
/// reports every few seconds, also when it has nothing to tell. It would open another one at its
/// next report.
const SILENT_AFTER: Duration = Duration::from_secs(600);
/// How often that is looked at where nobody reports.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// For how long it is told that something is unlimited, or cannot be had at all.
const BLANKET_SECONDS: u32 = 60;
/// How often: files change.
const BLANKET_EVERY: DurationUs = DurationUs::from_secs(5);

/// The service of one call.
pub(crate) struct Opened(pub(crate) Quotas);

type Answers = Pin<Box<dyn Stream<Item = Result<RateLimitQuotaResponse, Status>> + Send>>;

impl StreamingService<RateLimitQuotaUsageReports> for Opened {
    type Response = RateLimitQuotaResponse;
    type ResponseStream = Answers;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answers>, Status>> + Send>>;

    fn call(&mut self, request: Request<Streaming<RateLimitQuotaUsageReports>>) -> Self::Future {
        let quotas = self.0.clone();
        Box::pin(async move {
            let Ok(permit) = Arc::clone(&quotas.streams).try_acquire_owned() else {
                add(&quotas.counters().refused, 1);
                return Err(Status::resource_exhausted("too many streams of quotas"));
            };
            let (outbox, lines) = mpsc::channel(LINES_MAX);
            let answers: Answers = Box::pin(answers(lines, quotas.clock));
            let subscriber = Subscriber {
                quotas,
                domain: String::new(),
                limits: Arc::default(),
                subscriptions: HashMap::new(),
                outbox,
                refused: Budget::of(REFUSED_BYTES_MAX),
                _permit: permit,
            };
            tokio::spawn(subscriber.run(request.into_inner()));
            Ok(Response::new(answers))
        })
    }
}

/// A bucket that an Envoy reports.
struct Subscription {
    id: Arc<BucketId>,
    member: MemberId,
    target: Target,
    /// What the target was found in.
    limits: Arc<RateLimits>,
    /// When it last told of a request.
    busy_at: TimestampUs,
    /// When it was told for all calls at once.
    told_at: Option<TimestampUs>,
}

/// The reading end of a stream.
struct Subscriber {
    quotas: Quotas,
    domain: String,
    limits: Arc<RateLimits>,
    subscriptions: HashMap<Pairs, Subscription>,
    outbox: mpsc::Sender<Result<Line, Status>>,
    refused: Budget,
    _permit: OwnedSemaphorePermit,
}

impl Subscriber {
    async fn run(mut self, reports: Streaming<RateLimitQuotaUsageReports>) {
        add(&self.quotas.counters().streams, 1);
        if let Err(status) = self.read(reports).await {
            add(&self.quotas.counters().refused, 1);
            // Whoever reads so slowly is not told why.
            let _ = self.outbox.try_send(Err(status));
        }
        for (_, subscription) in std::mem::take(&mut self.subscriptions) {
            self.leave(subscription.member).await;
        }
        let asking = Arc::clone(&self.quotas.asking);
        // First its permit: whoever sees that it is gone finds place.
        drop(self);
        asking
            .counters
            .quota
            .streams
            .fetch_sub(1, Ordering::Relaxed);
    }

    /// Reads until the client is gone, is silent, breaks a rule, or the service ends. Then the
    /// stream ends: Envoy opens another one at its next report, at whoever listens by then, and
    /// keeps to what it was assigned meanwhile.
    async fn read(
        &mut self,
        mut reports: Streaming<RateLimitQuotaUsageReports>,
    ) -> Result<(), Status> {
        let mut stopped = self.quotas.stopped.clone();
        let outbox = self.outbox.clone();
        let mut next_at = Instant::now();
        let mut heard_at = next_at;
        loop {
            let report = tokio::select! {
                biased;
                // An error is a sender that is gone, which means the same.
                _ = stopped.wait_for(|is_stopped| *is_stopped) => return Ok(()),
                () = outbox.closed() => return Ok(()),
                report = timeout(LOOK_EVERY, async {
                    sleep_until(next_at).await;
                    reports.message().await
                }) => report,
            };
            let Ok(report) = report else {
                if heard_at.elapsed() >= SILENT_AFTER {
                    return Ok(());
                }
                self.abandon_idle().await;
                continue;
            };
            match report {
                Ok(Some(report)) => self.handle(report).await?,
                // A connection that broke is no mistake of anybody.
                Ok(None) => return Ok(()),
                Err(status) if status.code() == tonic::Code::OutOfRange => return Err(status),
                Err(_) => return Ok(()),
            }
            heard_at = Instant::now();
            next_at = heard_at + MESSAGE_EVERY;
        }
    }

    async fn handle(&mut self, report: RateLimitQuotaUsageReports) -> Result<(), Status> {
        let RateLimitQuotaUsageReports {
            domain,
            bucket_quota_usages,
        } = report;
        if self.domain.is_empty() {
            if domain.is_empty() {
                return Err(Status::invalid_argument(
                    "rate limit domain must not be empty",
                ));
            }
            if domain.len() > BUCKET_BYTES_MAX {
                return Err(Status::invalid_argument("rate limit domain is too long"));
            }
            self.domain = domain;
        } else if !domain.is_empty() && domain != self.domain {
            return Err(Status::invalid_argument("a stream has one domain"));
        }
        self.limits = self.quotas.asking.limits.load_full();
        for usage in bucket_quota_usages {
            self.handle_usage(usage).await;
        }
        self.abandon_idle().await;
        Ok(())
    }

    async fn handle_usage(&mut self, usage: BucketQuotaUsage) {
        let (allowed, denied) = (usage.num_requests_allowed, usage.num_requests_denied);
        let Some(id) = usage.bucket_id.filter(|id| !id.bucket.is_empty()) else {
            add(&self.quotas.counters().refused, 1);
            return;
        };
        let now = self.quotas.clock.now();
        let name_bytes = id.bucket.iter().map(|(key, value)| key.len() + value.len());
        let bytes = name_bytes.sum::<usize>();
        if bytes > BUCKET_BYTES_MAX || id.bucket.len() > ENTRIES_MAX {
            self.refuse(id, bytes);
            return;
        }
        let mut pairs: Pairs = id.bucket.clone().into_iter().collect();
        pairs.sort_unstable();
        if !self.subscriptions.contains_key(&pairs) && self.subscriptions.len() >= BUCKETS_MAX {
            self.refuse(id, bytes);
            return;
        }
        add(&self.quotas.counters().allowed, allowed);
        add(&self.quotas.counters().denied, denied);
        self.find_target(&pairs, id, now).await;
        let Some(subscription) = self.subscriptions.get_mut(&pairs) else {
            return;
        };
        if allowed > 0 || denied > 0 {
            subscription.busy_at = now;
        }
        let (member, target) = (subscription.member, subscription.target);
        let is_time = |told_at: TimestampUs| now.since(told_at) >= BLANKET_EVERY;
        let is_to_be_told = subscription.told_at.is_none_or(is_time);
        let seconds = BLANKET_SECONDS;
        let (fact, blanket) = match target {
            Target::Limit(counted) if counted.is_shadow => {
                let calls = allowed;
                (
                    Some(StreamEvent::Spent { counted, calls }),
                    Some(Assignments::Allowed { seconds }),
                )
            }
            Target::Limit(counted) => {
                let policy = counted.policy;
                let fact = StreamEvent::Reported {
                    member,
                    policy,
                    allowed,
                    denied,
                };
                (Some(fact), None)
            }
            Target::Unlimited => (None, Some(Assignments::Allowed { seconds })),
            Target::Unfit => (None, Some(Assignments::Denied { seconds })),
        };
        if let Some(told) = blanket.filter(|_| is_to_be_told) {
            subscription.told_at = Some(now);
            let id = Arc::clone(&subscription.id);
            self.say(&id, told);
        }
        if let Some(fact) = fact {
            self.tell_actor(fact).await;
        }
    }

    /// Sees to it that a bucket has a subscription by what files say now.
    async fn find_target(&mut self, pairs: &Pairs, id: BucketId, now: TimestampUs) {
        let known = self.subscriptions.get(pairs);
        if known.is_some_and(|known| Arc::ptr_eq(&known.limits, &self.limits)) {
            return;
        }
        let place = (&*self.limits, &*self.quotas.asking);
        let (target, unfit) = target(place, &self.domain, pairs);
        if let Some((limit, error)) = unfit {
            self.tell_unfit(&limit, &error);
        }
        let (limits, member) = (Arc::clone(&self.limits), self.quotas.member());
        let (left, id) = match self.subscriptions.entry(pairs.clone()) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.limits = limits;
                if is_same(&known.target, &target) {
                    known.target = target;
                    return;
                }
                known.target = target;
                known.told_at = None;
                let left = std::mem::replace(&mut known.member, member);
                (Some(left), Arc::clone(&known.id))
            }
            Entry::Vacant(new) => {
                let new = new.insert(Subscription {
                    id: Arc::new(id),
                    member,
                    target,
                    limits,
                    busy_at: now,
                    told_at: None,
                });
                (None, Arc::clone(&new.id))
            }
        };
        if let Some(left) = left {
            self.leave(left).await;
        }
        if let Target::Limit(counted) = target
            && !counted.is_shadow
        {
            let outbox = self.outbox.clone();
            let route = Route { id, outbox };
            self.tell_actor(StreamEvent::Joined {
                member,
                counted,
                route,
            })
            .await;
        }
    }

    /// Says once for each limit of the files as they are that nothing can be assigned out of it.
    fn tell_unfit(&self, limit: &str, error: &anteroom_limit::quota::lasting::UnfitError) {
        let told = add(&self.quotas.counters().unfit, 1);
        if told == 0 || told.is_power_of_two() {
            tracing::error!(limit, %error, "a limit that Envoy wants to be assigned ahead lets \
                                            nothing through");
        }
    }

    /// Forgets buckets without requests, and those of which nobody reports any.
    async fn abandon_idle(&mut self) {
        let now = self.quotas.clock.now();
        let is_idle = |subscription: &Subscription| now.since(subscription.busy_at) >= IDLE_AFTER;
        let idle = self
            .subscriptions
            .extract_if(|_, subscription| is_idle(subscription));
        let idle: Vec<Subscription> = idle.map(|(_, subscription)| subscription).collect();
        for subscription in idle {
            self.say(&subscription.id, Assignments::Abandoned);
            self.leave(subscription.member).await;
        }
    }

    /// Says that a bucket is not kept, so that Envoy forgets it, too. What waits to be said so is
    /// bounded: a name can be as long as a report.
    fn refuse(&self, id: BucketId, bytes: usize) {
        add(&self.quotas.counters().refused, 1);
        if let Ok(held) = self.refused.hold(bytes + id.bucket.len() * PAIR_BYTES) {
            add(&self.quotas.counters().abandoned, 1);
            let line = Line::new(Arc::new(id), Assignments::Abandoned);
            let _ = self.outbox.try_send(Ok(line.holding(held)));
        }
    }

    fn say(&self, id: &Arc<BucketId>, told: Assignments) {
        if told == Assignments::Abandoned {
            add(&self.quotas.counters().abandoned, 1);
        }
        // Whoever reads so slowly is told later, or another time.
        let line = Line::new(Arc::clone(id), told);
        let _ = self.outbox.try_send(Ok(line));
    }

    async fn leave(&self, member: MemberId) {
        self.tell_actor(StreamEvent::Gone { member }).await;
    }

    async fn tell_actor(&self, fact: StreamEvent) {
        // It ends with the service.
        let _ = self.quotas.facts.send(fact).await;
    }
}

/// Whether a bucket goes on in the same book.
fn is_same(one: &Target, other: &Target) -> bool {
    match (one, other) {
        (Target::Limit(one), Target::Limit(other)) => {
            one.key == other.key && one.is_shadow == other.is_shadow
        }
        (Target::Unlimited, Target::Unlimited) | (Target::Unfit, Target::Unfit) => true,
        _ => false,
    }
}

/// Stays at the end instead of beginning again. What it was before.
fn add(count: &AtomicU64, more: u64) -> u64 {
    let sum = |counted: u64| Some(counted.saturating_add(more));
    let order = Ordering::Relaxed;
    count
        .fetch_update(order, order, sum)
        .unwrap_or_else(|counted| counted)
}

#[cfg(test)]
mod tests;
