//! One simulated visitor: it arrives, waits, opens pages, perhaps buys, and leaves.
//!
//! It does one thing at a time, so that whatever happens to it has one cause.

use std::sync::Arc;
use std::time::Duration;

use anteroom_room::time::Timestamp;
use tokio::time::{Instant, sleep, sleep_until};

use super::browser::{Browser, Network, Page, PositionReply};
use super::counters::{RequestErrorKind, Stage};
use super::plan::LoadPlan;
use super::route::Route;
use crate::origin::ITEMS;
use crate::rng::ChoiceRng;

/// Most attempts to get a page before a visitor leaves.
const TRIES_MAX: u32 = 5;

/// A simulated visitor.
#[derive(Debug)]
pub(super) struct Visitor {
    network: Arc<Network>,
    plan: Arc<LoadPlan>,
    browser: Browser,
    rng: ChoiceRng,
    stage: Stage,
    seat_ends_at: Option<Timestamp>,
}

/// Outcome of waiting in the queue.
enum QueueOutcome {
    Entered,
    GaveUp,
    Failed,
}

/// Outcome of a visit.
enum VisitOutcome {
    Left,
    Queued,
    Failed,
}

/// Next action of a visitor in the shop.
enum VisitGoal {
    Item(u32),
    Order,
    Goodbye,
}

impl Visitor {
    /// Creates visitor `number` (from 0) before its arrival.
    pub(super) fn new(network: Arc<Network>, plan: Arc<LoadPlan>, number: u32) -> Self {
        let route = Route::new(&plan, number, network.nodes());
        Self {
            browser: Browser::new(Arc::clone(&network), route),
            network,
            rng: ChoiceRng::new(plan.seed, number),
            plan,
            stage: Stage::NotArrived,
            seat_ends_at: None,
        }
    }

    /// Runs the visitor from its arrival to its last page. Safe to cancel at any time.
    pub(super) async fn run(mut self, arrives_after: Duration) {
        sleep(arrives_after).await;
        self.move_to(Stage::Arriving);
        let arrived = Instant::now();
        let gives_up_at = self
            .rng
            .happens(self.plan.impatient_percent)
            .then(|| arrived + self.rng.duration(&self.plan.leaves_after));
        let mut was_inside = false;
        loop {
            match self.enter(gives_up_at.filter(|_| !was_inside)).await {
                QueueOutcome::Entered => {}
                QueueOutcome::GaveUp => return self.move_to(Stage::GaveUp),
                QueueOutcome::Failed => return self.move_to(Stage::Failed),
            }
            self.move_to(Stage::Inside);
            if !was_inside {
                self.network.counters.admitted(arrived.elapsed());
                was_inside = true;
            }
            match self.browse().await {
                VisitOutcome::Left => return self.move_to(Stage::Finished),
                VisitOutcome::Failed => return self.move_to(Stage::Failed),
                VisitOutcome::Queued => self.move_to(Stage::Waiting),
            }
        }
    }

    /// Requests the first page until it is admitted.
    async fn enter(&mut self, gives_up_at: Option<Instant>) -> QueueOutcome {
        let mut may_enter = false;
        loop {
            match self.open("/").await {
                Some(Page::Shop { .. }) => return QueueOutcome::Entered,
                Some(Page::Queue { poll_after, .. }) => {
                    if may_enter {
                        self.network.counters.turn_withdrawn();
                    }
                    self.move_to(Stage::Waiting);
                    may_enter = self.wait(poll_after, gives_up_at).await;
                    if !may_enter {
                        return QueueOutcome::GaveUp;
                    }
                }
                None => return QueueOutcome::Failed,
            }
        }
    }

    /// Polls the position until it is the visitor's turn; false if the visitor gives up first.
    ///
    /// An error is no reason to leave: the position is kept, so the visitor polls again later.
    async fn wait(&mut self, page_poll_after: Duration, gives_up_at: Option<Instant>) -> bool {
        let mut poll_after = page_poll_after;
        let mut pause = self.plan.first_poll_after.min(page_poll_after);
        loop {
            let polls_at = Instant::now() + self.with_jitter(pause);
            if let Some(gives_up_at) = gives_up_at.filter(|end| *end < polls_at) {
                sleep_until(gives_up_at).await;
                return false;
            }
            sleep_until(polls_at).await;
            match self.browser.poll_position().await {
                Ok(PositionReply::In) => return true,
                Ok(PositionReply::Queue { poll_after: next }) => poll_after = next,
                Err(kind) => self.network.counters.failed(kind),
            }
            pause = poll_after;
        }
    }

    /// Adds up to a fifth, so that visitors who arrived together do not poll together for ever.
    fn with_jitter(&mut self, pause: Duration) -> Duration {
        self.rng.duration(&(pause..=pause + pause / 5))
    }

    /// Opens pages until the visitor has seen enough.
    async fn browse(&mut self) -> VisitOutcome {
        for goal in self.goals() {
            let think = self.rng.duration(&self.plan.think);
            sleep(think).await;
            let page = match goal {
                VisitGoal::Item(number) => self.open(&format!("/item/{number}")).await,
                VisitGoal::Order => self.submit("/checkout", "item=1").await,
                VisitGoal::Goodbye => self.submit("/logout", "").await,
            };
            match page {
                Some(Page::Shop { .. }) => {}
                Some(Page::Queue { received_at, .. }) => {
                    // As of the response's arrival, so that a seat that ended on the way does not
                    // count as one that was taken away.
                    let seat_ends_at = self.seat_ends_at.take();
                    let had_seat = seat_ends_at.is_some_and(|end| received_at < end);
                    self.network.counters.queued_again(had_seat);
                    return VisitOutcome::Queued;
                }
                None => return VisitOutcome::Failed,
            }
        }
        VisitOutcome::Left
    }

    fn goals(&mut self) -> Vec<VisitGoal> {
        let pages = self.rng.number(&self.plan.pages);
        let mut goals: Vec<VisitGoal> = (1..pages)
            .map(|_| VisitGoal::Item(self.rng.number(&(1..=ITEMS))))
            .collect();
        if self.rng.happens(self.plan.buy_percent) {
            goals.push(VisitGoal::Order);
        }
        if self.rng.happens(self.plan.log_out_percent) {
            goals.push(VisitGoal::Goodbye);
        }
        goals
    }

    /// Opens a page, again after errors; `None` if it keeps failing.
    async fn open(&mut self, path: &str) -> Option<Page> {
        for try_number in 1..=TRIES_MAX {
            let outcome = self.browser.open(path).await;
            if let Some(page) = self.record_outcome(outcome) {
                return Some(page);
            }
            if try_number < TRIES_MAX {
                sleep(self.plan.retry_pause * try_number).await;
            }
        }
        None
    }

    /// Sends a form once: a lost response must not cause a second order.
    async fn submit(&mut self, path: &str, form: &str) -> Option<Page> {
        let outcome = self.browser.submit(path, form).await;
        self.record_outcome(outcome)
    }

    fn record_outcome(&mut self, outcome: Result<Page, RequestErrorKind>) -> Option<Page> {
        match outcome {
            Ok(page) => {
                if let Page::Shop { seat_ends_at } = page {
                    self.seat_ends_at = seat_ends_at;
                }
                Some(page)
            }
            Err(kind) => {
                self.network.counters.failed(kind);
                None
            }
        }
    }

    fn move_to(&mut self, stage: Stage) {
        self.network.counters.moved(self.stage, stage);
        self.stage = stage;
    }
}
