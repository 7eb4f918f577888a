//! Where it is decided who is assigned how much: a book for each limit that somebody shares, and
//! looks and charges that are on their way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anteroom_config::OnStoreFailure;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::quota::book::{Assignment, MemberId, Plan, Room};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::{BoxFuture, CountsError};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::asking::RequestHandler;
use crate::counting::{Counts, LocalAcquire};
use crate::quota::Clock;
use crate::quota::books::{QuotaLedgers, Route};
use crate::quota::bucket::Counted;
use crate::quota::told::Assignments;

/// How often is looked which books are due that nobody has reported for. So much later than it
/// could be is a new window shared.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks and charges at once; each is a round trip to a store.
const CALLS_MAX: usize = 256;
/// For how long everything goes through while the store is away, if it is to be so.
const OPEN_SECONDS: u32 = 5;

/// What streams tell.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    /// Somebody shares a limit from now on.
    Joined {
        member: MemberId,
        counted: Counted,
        route: Route,
    },
    /// What became of its requests since it last said so, and the limit as it is now.
    Reported {
        member: MemberId,
        policy: Policy,
        allowed: u64,
        denied: u64,
    },
    /// What went through of a limit that only counts.
    Spent { counted: Counted, calls: u64 },
    /// Somebody shares it no more.
    Gone { member: MemberId },
}

/// What came back of a look or a charge.
enum StoreResult {
    Looked,
    Charged { plan: Plan, asked_at: TimestampUs },
}

struct Done {
    key: CallKey,
    policy: Policy,
    said: StoreResult,
    verdict: Result<Verdict, CountsError>,
}

/// The desk.
pub(crate) struct QuotaActor {
    asking: Arc<RequestHandler>,
    clock: Clock,
    books: QuotaLedgers,
    members: HashMap<MemberId, CallKey>,
    calls: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl QuotaActor {
    pub(crate) fn new(asking: Arc<RequestHandler>, clock: Clock) -> Self {
        Self {
            asking,
            clock,
            books: QuotaLedgers::default(),
            members: HashMap::new(),
            calls: FuturesUnordered::new(),
        }
    }

    pub(crate) async fn run(mut self, mut facts: mpsc::Receiver<StreamEvent>) {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                fact = facts.recv() => match fact {
                    Some(fact) => self.handle(fact),
                    None => return,
                },
                Some(done) = self.calls.next() => self.handle_done(done),
                _ = looks.tick() => self.books.line_all_up(self.clock.now()),
            }
            self.look();
            let counters = &self.asking.counters.quota;
            let figure = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            counters
                .buckets
                .store(figure(self.books.len()), Ordering::Relaxed);
            counters
                .members
                .store(figure(self.members.len()), Ordering::Relaxed);
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
                let bucket = self.books.bucket(&counted);
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
                if let Some(bucket) = self.books.get_mut(&key) {
                    bucket.policy = policy;
                    bucket.book.handle_report(member, allowed, denied, now);
                }
                self.books.line_up(key, now);
            }
            StreamEvent::Spent { counted, calls } => {
                if let Some(bucket) = self.books.debtor(&counted) {
                    bucket.book.handle_unpaid(calls);
                }
                self.books.line_up(counted.key, now);
            }
            StreamEvent::Gone { member } => {
                let Some(key) = self.members.remove(&member) else {
                    return;
                };
                if let Some(bucket) = self.books.get_mut(&key) {
                    bucket.book.handle_gone(member);
                    bucket.routes.remove(&member);
                }
                if self.books.is_crowded() {
                    self.books.forgive(key);
                }
                self.books.line_up(key, now);
            }
        }
    }

    /// Looks how those limits stand whose turn it is.
    fn look(&mut self) {
        while self.calls.len() < CALLS_MAX
            && let Some((key, policy)) = self.books.next(self.clock.now())
        {
            self.call((key, policy), Cost::Peek, StoreResult::Looked);
        }
    }

    fn call(&self, (key, policy): (CallKey, Policy), cost: Cost, said: StoreResult) {
        let counts = self.asking.counts.clone();
        let wall = self.asking.now();
        self.calls.push(Box::pin(async move {
            let verdict = charge(&counts, (key, &policy), cost, wall).await;
            Done {
                key,
                policy,
                said,
                verdict,
            }
        }));
    }

    fn handle_done(&mut self, done: Done) {
        let Done {
            key,
            policy,
            said,
            verdict,
        } = done;
        let now = self.clock.now();
        let Some(bucket) = self.books.get_mut(&key) else {
            return;
        };
        bucket.rest();
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                self.asking.note_store(Some(&error));
                self.handle_failure(key, now);
                self.books.forgive(key);
                self.books.line_up(key, now);
                return;
            }
        };
        if self.asking.counts.shared().is_some() {
            self.asking.note_store(None);
        }
        let told = match said {
            StoreResult::Looked => {
                let room = room(&policy, &verdict, self.asking.now());
                let plan = bucket.book.plan(room, now);
                if plan.calls() > 0 {
                    bucket.go_on();
                    let cost = Cost::take(plan.calls());
                    let asked_at = now;
                    self.call((key, policy), cost, StoreResult::Charged { plan, asked_at });
                    return;
                }
                bucket.book.handle_nothing(verdict.full_after, now)
            }
            StoreResult::Charged { plan, asked_at } => {
                let said = (&policy, &verdict);
                bucket.book.handle_verdict(&plan, said, (asked_at, now))
            }
        };
        self.tell(key, &told);
        self.books.line_up(key, now);
    }

    fn tell(&self, key: CallKey, told: &[Assignment]) {
        let Some(bucket) = self.books.get(&key) else {
            return;
        };
        for assignment in told {
            let &Assignment {
                member,
                calls,
                seconds,
                ends_at,
            } = assignment;
            let assigned = &self.asking.counters.quota.assigned;
            assigned.fetch_add(calls.into(), Ordering::Relaxed);
            bucket.say(
                member,
                if calls == 0 {
                    Assignments::Denied { seconds }
                } else {
                    Assignments::Assigned {
                        calls,
                        seconds,
                        ends_at,
                    }
                },
            );
        }
    }

    /// Nobody knows how a limit stands.
    fn handle_failure(&mut self, key: CallKey, now: TimestampUs) {
        let Some(bucket) = self.books.get_mut(&key) else {
            return;
        };
        let without: HashSet<MemberId> = bucket.book.handle_failure(now).into_iter().collect();
        if self.asking.on_store_failure() == OnStoreFailure::Open {
            let seconds = OPEN_SECONDS;
            for member in without {
                bucket.say(member, Assignments::Allowed { seconds });
            }
        }
    }
}

/// How a limit stands by what a look said.
fn room(policy: &Policy, look: &Verdict, wall: TimestampUs) -> Room {
    let limit = policy.rate();
    let window = limit.window().0;
    Room {
        calls: look.remaining,
        limit,
        ends_in: DurationUs(window - wall.0 % window),
    }
}

async fn charge(
    counts: &Counts,
    (key, policy): (CallKey, &Policy),
    cost: Cost,
    wall: TimestampUs,
) -> Result<Verdict, CountsError> {
    let verdicts = counts
        .charge_all(&[LocalAcquire { policy, key, cost }], wall)
        .await?;
    let verdict = verdicts.into_iter().next();
    Ok(verdict.expect("one charge has one verdict"))
}

#[cfg(test)]
mod tests;
