//! Newcomers: visitors who come at a fixed rate, however fast they are served, and a log of what
//! each of them got, and when.
//!
//! [`VisitorLoad`](super::VisitorLoad) counts what visitors meet. This keeps the times, so that
//! visitors can be compared with each other afterwards.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use anteroom_room::time::Timestamp;
use parking_lot::Mutex;
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::browser::{Answer, Browser, Cookie, PageRequest, Poll, WaitNotice};
use super::routes::{NodeAt, NodeRoutes};
use crate::arrivals::{ArrivalPlan, Arrivals};
use crate::clock::now;

/// Period in which due visitors are sent: the finest resolution of timers.
const TICK: Duration = Duration::from_millis(1);
/// Pause after a request without a response that a visitor understands.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Time after the last arrival in which first requests are served. No decision takes longer on a
/// machine that keeps up.
const LAST_SERVED_WITHIN: Duration = Duration::from_secs(1);

/// Plan of newcomers.
#[derive(Clone, Debug)]
pub struct NewcomerPlan {
    /// New visitors per second at each node.
    pub per_second_at_node: u32,
    /// Time in which they come.
    pub lasts: Duration,
    /// Most visitors; those after them do not come.
    pub at_most: usize,
    /// Time after the last arrival for which visitors go on. The log ends sooner if all have gone.
    pub goes_on: Duration,
    /// Time for which an admitted visitor opens further pages; each draws one. With zero it opens
    /// one page.
    pub stays: RangeInclusive<Duration>,
    /// Time between two pages of an admitted visitor.
    pub think: Duration,
    /// Name of the room, for polls.
    pub room: String,
    /// Seed of arrival times and nodes.
    pub seed: u64,
}

/// Log of a run. Times are durations since `began_at`.
#[derive(Clone, Debug)]
pub struct NewcomerLog {
    /// Start by the wall clock.
    pub began_at: Timestamp,
    /// Time at which the log ends. Visitors who waited then have stopped.
    pub ended_at: Duration,
    /// Visits in the order of their arrival.
    pub visits: Vec<Visit>,
}

/// One newcomer.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Node of all its requests.
    pub at: NodeAt,
    /// Time of arrival by the plan. A later first request means that this machine is too slow.
    pub due_at: Duration,
    /// Requests until the admission, in order.
    pub exchanges: Vec<Exchange>,
    /// End of the seat, as far as the visitor knows.
    pub seat_ends_at: Option<Duration>,
}

/// Request of a visitor who is not admitted yet, and the response.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Time at which the request was sent.
    pub sent_at: Duration,
    /// Response and its time; `None` if there was none when the log ended.
    pub response: Option<(Duration, RequestOutcome)>,
}

/// Outcome of a request, as the visitor understands the response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestOutcome {
    /// Admission.
    Admitted,
    /// Visitor has to wait; the facts in the response.
    Queued(WaitNotice),
    /// Nothing that a visitor understands.
    Failed,
}

impl Visit {
    /// Returns the time of the first request.
    #[must_use]
    pub fn arrived_at(&self) -> Duration {
        self.exchanges
            .first()
            .map_or(self.due_at, |first| first.sent_at)
    }

    /// Returns the time of the first response that queued the visitor.
    #[must_use]
    pub fn queued_at(&self) -> Option<Duration> {
        self.first(|outcome| matches!(outcome, RequestOutcome::Queued(_)))
    }

    /// Returns the time of the admission.
    #[must_use]
    pub fn admitted_at(&self) -> Option<Duration> {
        self.first(|outcome| outcome == RequestOutcome::Admitted)
    }

    fn first(&self, is_it: impl Fn(RequestOutcome) -> bool) -> Option<Duration> {
        let mut responses = self.exchanges.iter().filter_map(|one| one.response);
        let found = responses.find(|(_, outcome)| is_it(*outcome));
        found.map(|(at, _)| at)
    }
}

impl NewcomerLog {
    /// Sends newcomers to all of these nodes, and returns the log. The same plan makes the same
    /// arrivals.
    ///
    /// # Panics
    ///
    /// If a node of `nodes` is not in `routes`, or `nodes` is empty.
    pub async fn of(routes: &NodeRoutes, nodes: &[NodeAt], plan: &NewcomerPlan) -> Self {
        let count = u32::try_from(nodes.len()).expect("there are few nodes");
        let arrivals = Arrivals::new(ArrivalPlan {
            per_second: plan.per_second_at_node.saturating_mul(count),
            lasts: plan.lasts,
            nodes: nodes.len(),
            seed: plan.seed,
        });
        let mut arrivals = arrivals.take(plan.at_most).peekable();
        let run = Arc::new(Run {
            routes: routes.clone(),
            browser: Browser::new(),
            plan: plan.clone(),
            began: Instant::now(),
            began_at: now(),
            visits: Mutex::default(),
        });
        let mut ticks = interval(TICK);
        // After a stall all late visitors are sent at once.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut visitors = JoinSet::new();
        while arrivals.peek().is_some() {
            ticks.tick().await;
            let so_far = run.began.elapsed();
            while let Some((due_at, node)) = arrivals.next_if(|(at, _)| *at <= so_far) {
                let number = run.come(nodes[node], due_at);
                let visitor = Visitor {
                    run: Arc::clone(&run),
                    number,
                    at: nodes[node],
                    cookie: None,
                };
                visitors.spawn(visitor.live());
            }
        }
        sleep_until(run.began + plan.lasts + LAST_SERVED_WITHIN).await;
        // Those who have not gone by then are stopped.
        let all_gone = async { while visitors.join_next().await.is_some() {} };
        let _ = timeout(plan.goes_on, all_gone).await;
        visitors.shutdown().await;
        let ended_at = run.began.elapsed();
        let visits = std::mem::take(&mut *run.visits.lock());
        Self {
            began_at: run.began_at,
            ended_at,
            visits,
        }
    }
}

/// State that all newcomers share.
struct Run {
    routes: NodeRoutes,
    browser: Browser,
    plan: NewcomerPlan,
    began: Instant,
    began_at: Timestamp,
    visits: Mutex<Vec<Visit>>,
}

/// Next step of a visitor, after a pause.
#[derive(Clone, Copy, Debug)]
enum Next {
    Page(Duration),
    Poll(Duration),
    /// Visit of one who is admitted and has the page.
    Stay,
}

/// One visitor while it is here.
struct Visitor {
    run: Arc<Run>,
    number: usize,
    at: NodeAt,
    cookie: Option<String>,
}

impl Run {
    /// Enters a visitor into the log, and returns its number.
    fn come(&self, at: NodeAt, due_at: Duration) -> usize {
        let mut visits = self.visits.lock();
        visits.push(Visit {
            at,
            due_at,
            exchanges: Vec::new(),
            seat_ends_at: None,
        });
        visits.len() - 1
    }

    fn send(&self, number: usize) {
        let mut visits = self.visits.lock();
        visits[number].exchanges.push(Exchange {
            sent_at: self.began.elapsed(),
            response: None,
        });
    }

    fn respond(&self, number: usize, outcome: RequestOutcome) {
        let mut visits = self.visits.lock();
        if let Some(newest) = visits[number].exchanges.last_mut() {
            newest.response = Some((self.began.elapsed(), outcome));
        }
    }

    fn has_seat(&self, number: usize, ends_at: Timestamp) {
        let ends_at = Duration::from_millis(ends_at.since(self.began_at).0);
        self.visits.lock()[number].seat_ends_at = Some(ends_at);
    }
}

impl Visitor {
    async fn live(mut self) {
        let mut next = self.request().await;
        loop {
            next = match next {
                Next::Page(pause) => {
                    sleep(pause).await;
                    self.request().await
                }
                Next::Poll(pause) => {
                    sleep(pause).await;
                    self.poll().await
                }
                Next::Stay => break,
            };
        }
        let NewcomerPlan {
            stays, think, seed, ..
        } = &self.run.plan;
        let (think, longer) = (*think, stays.end().saturating_sub(*stays.start()));
        let mut rng = Pcg64Mcg::seed_from_u64(seed.wrapping_mul(1_000_003) ^ self.number as u64);
        let part = f64::from(rng.next_u32()) / f64::from(u32::MAX);
        let leaves_at = Instant::now() + *stays.start() + longer.mul_f64(part);
        while Instant::now() + think <= leaves_at {
            sleep(think).await;
            self.open_page().await;
        }
    }

    /// Requests the page while not admitted.
    async fn request(&mut self) -> Next {
        self.run.send(self.number);
        let (outcome, next) = match self.ask().await {
            Answer::Page {
                seat_ends_at,
                cookie,
                ..
            } => {
                self.keep(cookie);
                self.run.has_seat(self.number, seat_ends_at);
                (RequestOutcome::Admitted, Next::Stay)
            }
            Answer::Queue {
                ask_after, cookie, ..
            } => {
                self.keep(cookie);
                let outcome = RequestOutcome::Queued(WaitNotice::default());
                (outcome, Next::Poll(ask_after.unwrap_or(TRY_AGAIN_AFTER)))
            }
            Answer::Failed(_) | Answer::Nothing => {
                (RequestOutcome::Failed, Next::Page(TRY_AGAIN_AFTER))
            }
        };
        self.run.respond(self.number, outcome);
        next
    }

    /// Polls the position, and opens the page once admitted.
    async fn poll(&mut self) -> Next {
        self.run.send(self.number);
        let polled = match self.run.routes.at(self.at) {
            Some(goal) => {
                let (room, cookie) = (&self.run.plan.room, self.cookie.as_deref());
                self.run.browser.poll(&goal, room, cookie).await
            }
            None => Poll::Failed,
        };
        let (outcome, next) = match polled {
            Poll::Waits {
                ask_after,
                notice,
                cookie,
            } => {
                self.keep(cookie);
                let pause = ask_after.unwrap_or(TRY_AGAIN_AFTER);
                (RequestOutcome::Queued(notice), Next::Poll(pause))
            }
            Poll::Enters { cookie } => {
                self.keep(cookie);
                (RequestOutcome::Admitted, Next::Stay)
            }
            Poll::Failed => (RequestOutcome::Failed, Next::Page(TRY_AGAIN_AFTER)),
        };
        self.run.respond(self.number, outcome);
        if outcome == RequestOutcome::Admitted {
            self.open_page().await;
        }
        next
    }

    /// Opens a page as an admitted visitor.
    async fn open_page(&mut self) {
        if let Answer::Page {
            seat_ends_at,
            cookie,
            ..
        } = self.ask().await
        {
            self.keep(cookie);
            self.run.has_seat(self.number, seat_ends_at);
        }
    }

    async fn ask(&self) -> Answer {
        let Some(goal) = self.run.routes.at(self.at) else {
            return Answer::Nothing;
        };
        let browser = &self.run.browser;
        let cookie = self.cookie.as_deref();
        browser.ask(&goal, "/", cookie, PageRequest::Page).await
    }

    fn keep(&mut self, given: Cookie) {
        match given {
            Cookie::Kept => {}
            Cookie::Deleted => self.cookie = None,
            Cookie::Given(pair) => self.cookie = Some(pair),
        }
    }
}
