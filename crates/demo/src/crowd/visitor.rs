//! What does one visitor do? Comes, waits, looks around, perhaps buys, and leaves.
//!
//! It never does two things at once, so that whatever happens to it has one cause.

use std::sync::Arc;
use std::time::Duration;

use anteroom_room::time::Timestamp;
use tokio::time::{Instant, sleep, sleep_until};

use super::LoadPlan;
use super::browser::{Browser, Network, Page, PositionReply};
use super::counters::{RequestErrorKind, Stage};
use super::route::Route;
use crate::origin::ITEMS;
use crate::rng::Dice;

/// How often a visitor tries to get a page before it goes home.
const TRIES_MAX: u32 = 5;

/// One of the crowd.
#[derive(Debug)]
pub(super) struct Visitor {
    network: Arc<Network>,
    plan: Arc<LoadPlan>,
    browser: Browser,
    rng: Dice,
    stage: Stage,
    seat_ends_at: Option<Timestamp>,
}

/// How the line ended.
enum QueueOutcome {
    Entered,
    GaveUp,
    Failed,
}

/// How a visit ended.
enum VisitOutcome {
    Left,
    Queued,
    Failed,
}

/// What a visitor wants of the shop.
enum VisitGoal {
    Item(u32),
    Order,
    Goodbye,
}

impl Visitor {
    /// Visitor `number` (from 0) at home.
    pub(super) fn new(network: Arc<Network>, plan: Arc<LoadPlan>, number: u32) -> Self {
        let route = Route::new(&plan, number, network.nodes());
        Self {
            browser: Browser::new(Arc::clone(&network), route),
            network,
            rng: Dice::new(plan.seed, number),
            plan,
            stage: Stage::Away,
            seat_ends_at: None,
        }
    }

    /// The whole story, from leaving home to the last page. Safe to cancel at any time.
    pub(super) async fn live(mut self, arrives_after: Duration) {
        sleep(arrives_after).await;
        self.stand_at(Stage::ArrivalKind);
        let arrived = Instant::now();
        let gives_up_at = self
            .rng
            .happens(self.plan.impatient_percent)
            .then(|| arrived + self.rng.duration(&self.plan.patience));
        let mut was_inside = false;
        loop {
            match self.get_in(gives_up_at.filter(|_| !was_inside)).await {
                QueueOutcome::Entered => {}
                QueueOutcome::GaveUp => return self.stand_at(Stage::GaveUp),
                QueueOutcome::Failed => return self.stand_at(Stage::Failed),
            }
            self.stand_at(Stage::Inside);
            if !was_inside {
                self.network.counters.admitted(arrived.elapsed());
                was_inside = true;
            }
            match self.look_around().await {
                VisitOutcome::Left => return self.stand_at(Stage::Finished),
                VisitOutcome::Failed => return self.stand_at(Stage::Failed),
                VisitOutcome::Queued => self.stand_at(Stage::Waiting),
            }
        }
    }

    /// Asks for the first page until it is there.
    async fn get_in(&mut self, gives_up_at: Option<Instant>) -> QueueOutcome {
        let mut was_called = false;
        loop {
            match self.open("/").await {
                Some(Page::Shop { .. }) => return QueueOutcome::Entered,
                Some(Page::Queue { ask_after, .. }) => {
                    if was_called {
                        self.network.counters.called_in_vain();
                    }
                    self.stand_at(Stage::Waiting);
                    was_called = self.wait(ask_after, gives_up_at).await;
                    if !was_called {
                        return QueueOutcome::GaveUp;
                    }
                }
                None => return QueueOutcome::Failed,
            }
        }
    }

    /// Asks for its place until it is its turn; false if patience ends first.
    ///
    /// An error is no reason to leave: the place is kept, so the visitor asks again later.
    async fn wait(&mut self, page_says: Duration, gives_up_at: Option<Instant>) -> bool {
        let mut ask_after = page_says;
        let mut pause = self.plan.first_ask_after.min(page_says);
        loop {
            let asks_at = Instant::now() + self.with_jitter(pause);
            if let Some(gives_up_at) = gives_up_at.filter(|end| *end < asks_at) {
                sleep_until(gives_up_at).await;
                return false;
            }
            sleep_until(asks_at).await;
            match self.browser.ask_place().await {
                Ok(PositionReply::In) => return true,
                Ok(PositionReply::Queue { ask_after: next }) => ask_after = next,
                Err(kind) => self.network.counters.failed(kind),
            }
            pause = ask_after;
        }
    }

    /// Up to a fifth longer, so that those who came together do not ask together for ever.
    fn with_jitter(&mut self, pause: Duration) -> Duration {
        self.rng.duration(&(pause..=pause + pause / 5))
    }

    /// Opens pages until the visitor has seen enough.
    async fn look_around(&mut self) -> VisitOutcome {
        for wish in self.wishes() {
            let think = self.rng.duration(&self.plan.think);
            sleep(think).await;
            let page = match wish {
                VisitGoal::Item(number) => self.open(&format!("/item/{number}")).await,
                VisitGoal::Order => self.submit("/checkout", "item=1").await,
                VisitGoal::Goodbye => self.submit("/logout", "").await,
            };
            match page {
                Some(Page::Shop { .. }) => {}
                Some(Page::Queue { received_at, .. }) => {
                    // By the time of the answer, so that a seat which ended on the way is never
                    // taken for one that was taken away.
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

    fn wishes(&mut self) -> Vec<VisitGoal> {
        let pages = self.rng.number(&self.plan.pages);
        let mut wishes: Vec<VisitGoal> = (1..pages)
            .map(|_| VisitGoal::Item(self.rng.number(&(1..=ITEMS))))
            .collect();
        if self.rng.happens(self.plan.buy_percent) {
            wishes.push(VisitGoal::Order);
        }
        if self.rng.happens(self.plan.log_out_percent) {
            wishes.push(VisitGoal::Goodbye);
        }
        wishes
    }

    /// Opens a page, again after errors; `None` if it goes on failing.
    async fn open(&mut self, path: &str) -> Option<Page> {
        for try_number in 1..=TRIES_MAX {
            let outcome = self.browser.open(path).await;
            if let Some(page) = self.understand(outcome) {
                return Some(page);
            }
            if try_number < TRIES_MAX {
                sleep(self.plan.try_again_after * try_number).await;
            }
        }
        None
    }

    /// Sends a form once: nobody orders twice because the first answer was lost.
    async fn submit(&mut self, path: &str, form: &str) -> Option<Page> {
        let outcome = self.browser.submit(path, form).await;
        self.understand(outcome)
    }

    fn understand(&mut self, outcome: Result<Page, RequestErrorKind>) -> Option<Page> {
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

    fn stand_at(&mut self, stage: Stage) {
        self.network.counters.moved(self.stage, stage);
        self.stage = stage;
    }
}
