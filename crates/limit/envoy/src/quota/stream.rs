//! Quota stream: reports of an Envoy, and updates to it.

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
use crate::quota::assignments::{Assignments, BucketUpdate, responses};
use crate::quota::bucket::{BUCKET_BYTES_MAX, BUCKETS_MAX, Pairs, Target, target};
use crate::quota::ledgers::Route;
use crate::wire::quota::{
    BucketId, BucketQuotaUsage, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};

/// Updates that wait to be sent. More are dropped for a client that reads so slowly.
const UPDATES_MAX: usize = 2 * BUCKETS_MAX;
/// Most bytes of names in updates that only abandon a rejected bucket. As many as Envoy makes of
/// the longest headers of a few requests. Beyond it, a client that sends longer ones, or many and
/// reads nothing, gets no such update.
const REJECTED_BYTES_MAX: usize = 256 << 10;
/// Bytes that a key with its value takes beside its text.
const PAIR_BYTES: usize = 100;
/// Shortest time between two messages of one stream. Envoy sends one for each new bucket, and one
/// for all every second or so.
const MESSAGE_EVERY: Duration = Duration::from_millis(2);
/// Time without a request after which a bucket is abandoned, so that nothing is kept for it.
const IDLE_AFTER: DurationUs = DurationUs::from_secs(300);
/// Time without a report after which a stream is closed, as it uses up one of the streams. An Envoy
/// reports every few seconds even without news, and reopens the stream with its next report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(600);
/// Interval of checks for idle buckets on a stream without reports.
const CHECK_EVERY: Duration = Duration::from_secs(60);
/// Seconds for which a blanket rule holds: for unlimited descriptors, and for limits that cannot be
/// assigned.
const BLANKET_SECONDS: u32 = 60;
/// Interval between two blanket rules, as files change.
const BLANKET_EVERY: DurationUs = DurationUs::from_secs(5);

/// Service of one stream.
pub(crate) struct QuotaService(pub(crate) Quotas);

type Responses = Pin<Box<dyn Stream<Item = Result<RateLimitQuotaResponse, Status>> + Send>>;

impl StreamingService<RateLimitQuotaUsageReports> for QuotaService {
    type Response = RateLimitQuotaResponse;
    type ResponseStream = Responses;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Responses>, Status>> + Send>>;

    fn call(&mut self, request: Request<Streaming<RateLimitQuotaUsageReports>>) -> Self::Future {
        let quotas = self.0.clone();
        Box::pin(async move {
            let Ok(permit) = Arc::clone(&quotas.streams).try_acquire_owned() else {
                add(&quotas.counters().refused, 1);
                return Err(Status::resource_exhausted("too many streams of quotas"));
            };
            let (outbox, updates) = mpsc::channel(UPDATES_MAX);
            let responses: Responses = Box::pin(responses(updates, quotas.clock));
            let subscriber = Subscriber {
                quotas,
                domain: String::new(),
                limits: Arc::default(),
                subscriptions: HashMap::new(),
                outbox,
                rejected: Budget::of(REJECTED_BYTES_MAX),
                _permit: permit,
            };
            tokio::spawn(subscriber.run(request.into_inner()));
            Ok(Response::new(responses))
        })
    }
}

/// Bucket that an Envoy reports.
struct Subscription {
    id: Arc<BucketId>,
    member: MemberId,
    target: Target,
    /// Limits that the target was found in.
    limits: Arc<RateLimits>,
    /// Time of the last report with requests.
    busy_at: TimestampUs,
    /// Time of the last blanket rule.
    blanket_at: Option<TimestampUs>,
}

/// Reading half of a stream.
struct Subscriber {
    quotas: Quotas,
    domain: String,
    limits: Arc<RateLimits>,
    subscriptions: HashMap<Pairs, Subscription>,
    outbox: mpsc::Sender<Result<BucketUpdate, Status>>,
    rejected: Budget,
    _permit: OwnedSemaphorePermit,
}

impl Subscriber {
    async fn run(mut self, reports: Streaming<RateLimitQuotaUsageReports>) {
        add(&self.quotas.counters().streams, 1);
        if let Err(status) = self.read(reports).await {
            add(&self.quotas.counters().refused, 1);
            // The client may read too slowly to get the reason.
            let _ = self.outbox.try_send(Err(status));
        }
        for (_, subscription) in std::mem::take(&mut self.subscriptions) {
            self.leave(subscription.member).await;
        }
        let handler = Arc::clone(&self.quotas.handler);
        // The permit goes first: once the stream is no longer counted, there is room for another.
        drop(self);
        handler
            .counters
            .quota
            .streams
            .fetch_sub(1, Ordering::Relaxed);
    }

    /// Reads until the client is gone, has sent nothing for too long, breaks a rule, or the service
    /// stops. Then the stream ends. Envoy opens another one at its next report, to whichever
    /// process listens by then, and keeps its assignments until then.
    async fn read(
        &mut self,
        mut reports: Streaming<RateLimitQuotaUsageReports>,
    ) -> Result<(), Status> {
        let mut stopped = self.quotas.stopped.clone();
        let outbox = self.outbox.clone();
        let mut next_at = Instant::now();
        let mut received_at = next_at;
        loop {
            let report = tokio::select! {
                biased;
                // An error means that the sender was dropped, which also stops the service.
                _ = stopped.wait_for(|is_stopped| *is_stopped) => return Ok(()),
                () = outbox.closed() => return Ok(()),
                report = timeout(CHECK_EVERY, async {
                    sleep_until(next_at).await;
                    reports.message().await
                }) => report,
            };
            let Ok(report) = report else {
                if received_at.elapsed() >= REPORT_TIMEOUT {
                    return Ok(());
                }
                self.abandon_idle().await;
                continue;
            };
            match report {
                Ok(Some(report)) => self.handle(report).await?,
                // A connection that broke is no defect on either side.
                Ok(None) => return Ok(()),
                Err(status) if status.code() == tonic::Code::OutOfRange => return Err(status),
                Err(_) => return Ok(()),
            }
            received_at = Instant::now();
            next_at = received_at + MESSAGE_EVERY;
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
        self.limits = self.quotas.handler.limits.load_full();
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
            self.reject(id, bytes);
            return;
        }
        let mut pairs: Pairs = id.bucket.clone().into_iter().collect();
        pairs.sort_unstable();
        if !self.subscriptions.contains_key(&pairs) && self.subscriptions.len() >= BUCKETS_MAX {
            self.reject(id, bytes);
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
        let is_due = |blanket_at: TimestampUs| now.since(blanket_at) >= BLANKET_EVERY;
        let is_blanket_due = subscription.blanket_at.is_none_or(is_due);
        let seconds = BLANKET_SECONDS;
        let (fact, blanket) = match target {
            Target::Limit(counted) if counted.is_shadow => {
                let calls = allowed;
                (
                    Some(StreamEvent::Spent {
                        counted,
                        requests: calls,
                    }),
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
        if let Some(assignment) = blanket.filter(|_| is_blanket_due) {
            subscription.blanket_at = Some(now);
            let id = Arc::clone(&subscription.id);
            self.send_update(&id, assignment);
        }
        if let Some(fact) = fact {
            self.notify_actor(fact).await;
        }
    }

    /// Makes sure that a bucket has a subscription by the present files.
    async fn find_target(&mut self, pairs: &Pairs, id: BucketId, now: TimestampUs) {
        let known = self.subscriptions.get(pairs);
        if known.is_some_and(|known| Arc::ptr_eq(&known.limits, &self.limits)) {
            return;
        }
        let context = (&*self.limits, &*self.quotas.handler);
        let (target, unfit) = target(context, &self.domain, pairs);
        if let Some((limit, error)) = unfit {
            self.log_unfit(&limit, &error);
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
                known.blanket_at = None;
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
                    blanket_at: None,
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
            self.notify_actor(StreamEvent::Joined {
                member,
                counted,
                route,
            })
            .await;
        }
    }

    /// Logs that a limit cannot be assigned: the first time, and then ever more rarely.
    fn log_unfit(&self, limit: &str, error: &anteroom_limit::quota::lifetime::UnfitError) {
        let earlier = add(&self.quotas.counters().unfit, 1);
        if earlier == 0 || earlier.is_power_of_two() {
            tracing::error!(
                limit,
                %error,
                "limit cannot be assigned to Envoy, so it allows no requests"
            );
        }
    }

    /// Abandons buckets without requests, including those that are no longer reported.
    async fn abandon_idle(&mut self) {
        let now = self.quotas.clock.now();
        let is_idle = |subscription: &Subscription| now.since(subscription.busy_at) >= IDLE_AFTER;
        let idle = self
            .subscriptions
            .extract_if(|_, subscription| is_idle(subscription));
        let idle: Vec<Subscription> = idle.map(|(_, subscription)| subscription).collect();
        for subscription in idle {
            self.send_update(&subscription.id, Assignments::Abandoned);
            self.leave(subscription.member).await;
        }
    }

    /// Rejects a bucket, and makes Envoy forget it. The updates that do so are bounded, as a name
    /// can be as long as a report.
    fn reject(&self, id: BucketId, bytes: usize) {
        add(&self.quotas.counters().refused, 1);
        if let Ok(permit) = self.rejected.reserve(bytes + id.bucket.len() * PAIR_BYTES) {
            add(&self.quotas.counters().abandoned, 1);
            let update = BucketUpdate::new(Arc::new(id), Assignments::Abandoned);
            let _ = self.outbox.try_send(Ok(update.with_permit(permit)));
        }
    }

    fn send_update(&self, id: &Arc<BucketId>, assignment: Assignments) {
        if assignment == Assignments::Abandoned {
            add(&self.quotas.counters().abandoned, 1);
        }
        // A client that reads too slowly gets a later update.
        let update = BucketUpdate::new(Arc::clone(id), assignment);
        let _ = self.outbox.try_send(Ok(update));
    }

    async fn leave(&self, member: MemberId) {
        self.notify_actor(StreamEvent::Gone { member }).await;
    }

    async fn notify_actor(&self, fact: StreamEvent) {
        // The actor ends with the service.
        let _ = self.quotas.facts.send(fact).await;
    }
}

/// Whether a bucket stays in the same ledger.
fn is_same(one: &Target, other: &Target) -> bool {
    match (one, other) {
        (Target::Limit(one), Target::Limit(other)) => {
            one.key == other.key && one.is_shadow == other.is_shadow
        }
        (Target::Unlimited, Target::Unlimited) | (Target::Unfit, Target::Unfit) => true,
        _ => false,
    }
}

/// Adds without wrapping. Returns the earlier value.
fn add(count: &AtomicU64, more: u64) -> u64 {
    let sum = |counted: u64| Some(counted.saturating_add(more));
    let order = Ordering::Relaxed;
    count
        .fetch_update(order, order, sum)
        .unwrap_or_else(|counted| counted)
}

#[cfg(test)]
mod tests;
