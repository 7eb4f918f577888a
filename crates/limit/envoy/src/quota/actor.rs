//! Actor that assigns quotas. It owns a ledger for each shared limit, and the requests to the store
//! that are in flight.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anteroom_config::OnStoreFailure;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::quota::book::{Assignment, LimitStatus, MemberId, Plan};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{BoxFuture, CountsError};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::counting::{Counts, LocalAcquire};
use crate::quota::Clock;
use crate::quota::assignments::Assignments;
use crate::quota::bucket::Counted;
use crate::quota::ledgers::{QuotaLedgers, Route};
use crate::request_handler::RequestHandler;

/// Interval of checks for ledgers that are due without a report. It delays the sharing of a new
/// window by at most this much.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// Requests to the store at once; each is a round trip.
const STORE_REQUESTS_MAX: usize = 256;
/// Seconds for which everything is allowed while the store is unavailable, if the service fails
/// open.
const OPEN_SECONDS: u32 = 5;

/// Facts from streams.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    /// A bucket shares a limit from now on.
    Joined {
        member: MemberId,
        counted: Counted,
        route: Route,
    },
    /// Use of a bucket since its last report, and the limit as it is now.
    Reported {
        member: MemberId,
        policy: Policy,
        allowed: u64,
        denied: u64,
    },
    /// Requests that a shadow limit allowed.
    Spent { counted: Counted, requests: u64 },
    /// A bucket no longer shares its limit.
    Gone { member: MemberId },
}

/// Kind of a finished request to the store.
enum StoreRequest {
    Peek,
    Acquire { plan: Plan, sent_at: TimestampUs },
}

struct Done {
    key: ClientKey,
    policy: Policy,
    request: StoreRequest,
    verdict: Result<Verdict, CountsError>,
}

/// Actor that assigns quotas.
pub(crate) struct QuotaActor {
    handler: Arc<RequestHandler>,
    clock: Clock,
    ledgers: QuotaLedgers,
    members: HashMap<MemberId, ClientKey>,
    in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl QuotaActor {
    pub(crate) fn new(handler: Arc<RequestHandler>, clock: Clock) -> Self {
        Self {
            handler,
            clock,
            ledgers: QuotaLedgers::default(),
            members: HashMap::new(),
            in_flight: FuturesUnordered::new(),
        }
    }

    pub(crate) async fn run(mut self, mut facts: mpsc::Receiver<StreamEvent>) {
        let mut checks = interval(CHECK_EVERY);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                fact = facts.recv() => match fact {
                    Some(fact) => self.handle(fact),
                    None => return,
                },
                Some(done) = self.in_flight.next() => self.handle_done(done),
                _ = checks.tick() => self.ledgers.enqueue_all_due(self.clock.now()),
            }
            self.peek();
            let counters = &self.handler.counters.quota;
            let as_u64 = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            counters
                .buckets
                .store(as_u64(self.ledgers.len()), Ordering::Relaxed);
            counters
                .members
                .store(as_u64(self.members.len()), Ordering::Relaxed);
        }
    }

    fn handle(&mut self, fact: StreamEvent) {
        let now = self.clock.now();
        match fact {
            StreamEvent::Joined {
                member,
                counted,
                route,
            } => {
                self.members.insert(member, counted.key);
                let bucket = self.ledgers.bucket(&counted);
                bucket.routes.insert(member, route);
            }
            StreamEvent::Reported {
                member,
                policy,
                allowed,
                denied,
            } => {
                let Some(&key) = self.members.get(&member) else {
                    return;
                };
                if let Some(bucket) = self.ledgers.get_mut(&key) {
                    bucket.policy = policy;
                    bucket.ledger.handle_report(member, allowed, denied, now);
                }
                self.ledgers.enqueue_if_due(key, now);
            }
            StreamEvent::Spent {
                counted,
                requests: calls,
            } => {
                if let Some(bucket) = self.ledgers.bucket_for_debt(&counted) {
                    bucket.ledger.handle_unassigned(calls);
                }
                self.ledgers.enqueue_if_due(counted.key, now);
            }
            StreamEvent::Gone { member } => {
                let Some(key) = self.members.remove(&member) else {
                    return;
                };
                if let Some(bucket) = self.ledgers.get_mut(&key) {
                    bucket.ledger.handle_departure(member);
                    bucket.routes.remove(&member);
                }
                if self.ledgers.is_full() {
                    self.ledgers.drop_debt(key);
                }
                self.ledgers.enqueue_if_due(key, now);
            }
        }
    }

    /// Peeks at the limits whose turn it is.
    fn peek(&mut self) {
        while self.in_flight.len() < STORE_REQUESTS_MAX
            && let Some((key, policy)) = self.ledgers.next(self.clock.now())
        {
            self.start((key, policy), Cost::Peek, StoreRequest::Peek);
        }
    }

    fn start(&self, (key, policy): (ClientKey, Policy), cost: Cost, request: StoreRequest) {
        let counts = self.handler.counts.clone();
        let wall = self.handler.now();
        self.in_flight.push(Box::pin(async move {
            let verdict = acquire(&counts, (key, &policy), cost, wall).await;
            Done {
                key,
                policy,
                request,
                verdict,
            }
        }));
    }

    fn handle_done(&mut self, done: Done) {
        let Done {
            key,
            policy,
            request,
            verdict,
        } = done;
        let now = self.clock.now();
        let Some(bucket) = self.ledgers.get_mut(&key) else {
            return;
        };
        bucket.set_idle();
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                self.handler.handle_store_result(Some(&error));
                self.handle_failure(key, now);
                self.ledgers.drop_debt(key);
                self.ledgers.enqueue_if_due(key, now);
                return;
            }
        };
        if self.handler.counts.shared().is_some() {
            self.handler.handle_store_result(None);
        }
        let assignments = match request {
            StoreRequest::Peek => {
                let room = room(&policy, &verdict, self.handler.now());
                let plan = bucket.ledger.plan(room, now);
                if plan.requests() > 0 {
                    bucket.keep_in_flight();
                    let cost = Cost::take(plan.requests());
                    let sent_at = now;
                    self.start((key, policy), cost, StoreRequest::Acquire { plan, sent_at });
                    return;
                }
                bucket.ledger.handle_nothing(verdict.full_after, now)
            }
            StoreRequest::Acquire { plan, sent_at } => {
                let decided = (&policy, &verdict);
                bucket.ledger.handle_verdict(&plan, decided, (sent_at, now))
            }
        };
        self.send_assignments(key, &assignments);
        self.ledgers.enqueue_if_due(key, now);
    }

    fn send_assignments(&self, key: ClientKey, assignments: &[Assignment]) {
        let Some(bucket) = self.ledgers.get(&key) else {
            return;
        };
        for assignment in assignments {
            let &Assignment {
                member,
                requests,
                seconds,
                ends_at,
            } = assignment;
            let assigned = &self.handler.counters.quota.assigned;
            assigned.fetch_add(requests.into(), Ordering::Relaxed);
            bucket.send(
                member,
                if requests == 0 {
                    Assignments::Denied { seconds }
                } else {
                    Assignments::Assigned {
                        requests,
                        seconds,
                        ends_at,
                    }
                },
            );
        }
    }

    /// Handles a failure of the store: the state of the limit is unknown.
    fn handle_failure(&mut self, key: ClientKey, now: TimestampUs) {
        let Some(bucket) = self.ledgers.get_mut(&key) else {
            return;
        };
        let without: HashSet<MemberId> = bucket.ledger.handle_failure(now).into_iter().collect();
        if self.handler.on_store_failure() == OnStoreFailure::Open {
            let seconds = OPEN_SECONDS;
            for member in without {
                bucket.send(member, Assignments::Allowed { seconds });
            }
        }
    }
}

/// Returns the capacity of a limit, from a peek.
fn room(policy: &Policy, peek: &Verdict, wall: TimestampUs) -> LimitStatus {
    let limit = policy.rate();
    let window = limit.window().0;
    LimitStatus {
        requests: peek.remaining,
        limit,
        ends_in: DurationUs(window - wall.0 % window),
    }
}

async fn acquire(
    counts: &Counts,
    (key, policy): (ClientKey, &Policy),
    cost: Cost,
    wall: TimestampUs,
) -> Result<Verdict, CountsError> {
    let verdicts = counts
        .charge_all(&[LocalAcquire { policy, key, cost }], wall)
        .await?;
    let verdict = verdicts.into_iter().next();
    Ok(verdict.expect("one acquisition has one verdict"))
}

#[cfg(test)]
mod tests;
