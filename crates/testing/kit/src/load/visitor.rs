//! One visitor, from its arrival to its end, and its successor.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use anteroom_demo::checking_origin::LOGOUT;
use anteroom_room::time::Timestamp;
use parking_lot::Mutex;
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::browser::{Answer, Browser, Cookie, Jar, PageRequest};
use super::counters::VisitorCounts;
use super::habits::Habits;
use super::routes::NodeRoutes;
use super::routes::{Home, NodeTarget, below};
use crate::clock::now;

/// Most old tickets that a visitor keeps for replays.
const OLD_TICKETS_MAX: usize = 12;
/// Pause after a request without a response.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Time within which a visitor who returns keeps the seat while nodes and stores are reachable:
/// shorter than any session here.
const SOON_MS: u64 = 4_000;

/// Ticket that is no longer in the jar.
#[derive(Clone, Debug)]
struct OldTicket {
    jar: Jar,
    ended: Option<Logout>,
}

/// End of a session.
#[derive(Clone, Debug)]
struct Logout {
    at: Timestamp,
    node: String,
}

/// Simulated visitor.
#[derive(Debug)]
pub(super) struct Visitor {
    routes: NodeRoutes,
    browser: Browser,
    habits: Habits,
    counters: Arc<Mutex<VisitorCounts>>,
    rng: Pcg64Mcg,
    home: Home,
    jar: Jar,
    old: Vec<OldTicket>,
    /// Time of the last page; `None` for a visitor who has not been admitted.
    last_page_at: Option<Timestamp>,
    pages_left: u32,
    /// Whether the last response was a waiting page.
    is_waiting: bool,
    ask_after: Option<Duration>,
}

impl Visitor {
    pub(super) fn new(
        routes: NodeRoutes,
        browser: Browser,
        habits: Habits,
        counters: Arc<Mutex<VisitorCounts>>,
        mut rng: Pcg64Mcg,
    ) -> Self {
        let home = routes.home(habits.first_data_center_percent, &mut rng);
        let mut visitor = Self {
            routes,
            browser,
            habits,
            counters,
            rng,
            home,
            jar: Jar::default(),
            old: Vec::new(),
            last_page_at: None,
            pages_left: 0,
            is_waiting: false,
            ask_after: None,
        };
        visitor.begin();
        visitor
    }

    /// Begins as a new visitor.
    fn begin(&mut self) {
        self.jar = Jar::default();
        // Tickets of ended sessions are still replayed; the others belong to the former visitor.
        self.old.retain(|old| old.ended.is_some());
        self.last_page_at = None;
        self.pages_left = self.number(&self.habits.pages.clone());
        let percent = self.habits.first_data_center_percent;
        self.home = self.routes.home(percent, &mut self.rng);
    }

    pub(super) async fn live(mut self, arrives_after: Duration) {
        sleep(arrives_after).await;
        loop {
            let pause = self.ask().await;
            if self.happens(self.habits.replay_percent) && !self.old.is_empty() {
                let old = self.old[below(&mut self.rng, self.old.len())].clone();
                self.replay(old).await;
            }
            if self.pages_left == 0 {
                if self.happens(self.habits.log_out_percent) {
                    self.log_out().await;
                }
                if !self.habits.are_followed {
                    return;
                }
                self.begin();
            }
            sleep(pause).await;
        }
    }

    /// Sends the requests of a page, as many in parallel as the visitor does. Returns the wait
    /// until the next.
    async fn ask(&mut self) -> Duration {
        let count = match self.jar.cookie {
            Some(_) => self.habits.at_once,
            // Without a ticket each parallel request would count as another visitor.
            None => 1,
        };
        let path = self.habits.path;
        let mut asking = JoinSet::new();
        for _ in 0..count {
            let Some(goal) = self.goal() else { continue };
            let (browser, jar) = (self.browser.clone(), self.jar.clone());
            asking.spawn(async move {
                let response = browser
                    .ask(&goal, path, jar.cookie.as_deref(), PageRequest::Page)
                    .await;
                (goal, jar, response)
            });
        }
        let (mut has_page, mut has_answer) = (false, false);
        while let Some(Ok((goal, sent, response))) = asking.join_next().await {
            has_page |= matches!(response, Answer::Page { .. });
            has_answer |= !matches!(response, Answer::Nothing);
            self.take(&goal, &sent, response);
        }
        if has_page {
            self.pages_left = self.pages_left.saturating_sub(1);
            return self.duration(&self.habits.think.clone());
        }
        if has_answer {
            let poll_interval = self.ask_after.filter(|_| self.habits.is_patient);
            return poll_interval
                .unwrap_or_else(|| self.duration(&self.habits.refresh_interval.clone()));
        }
        TRY_AGAIN_AFTER
    }

    /// Records a response and updates the jar, as a browser does: the last cookie stays.
    fn take(&mut self, goal: &NodeTarget, sent: &Jar, response: Answer) {
        let now = now();
        let counters = Arc::clone(&self.counters);
        let mut counters = counters.lock();
        match response {
            Answer::Page {
                seat_ends_at,
                visitor,
                cookie,
            } => {
                self.waits(&mut counters, false);
                counters.pages += 1;
                counters.entered += u64::from(self.last_page_at.is_none());
                self.last_page_at = Some(now);
                self.keep(cookie, Some((seat_ends_at, visitor)));
            }
            Answer::Queue {
                reason,
                ask_after,
                cookie,
            } => {
                self.waits(&mut counters, true);
                self.ask_after = ask_after;
                self.check_queued(&mut counters, goal, sent, &reason, now);
                *counters.queued.entry(reason).or_default() += 1;
                self.keep(cookie, None);
            }
            Answer::Failed(status) => *counters.failed.entry(status).or_default() += 1,
            Answer::Nothing => counters.unanswered += 1,
        }
    }

    fn waits(&mut self, counters: &mut VisitorCounts, is_waiting: bool) {
        counters.waiting += usize::from(is_waiting);
        counters.waiting -= usize::from(self.is_waiting);
        self.is_waiting = is_waiting;
    }

    /// Checks a visitor who was queued.
    fn check_queued(
        &self,
        counters: &mut VisitorCounts,
        goal: &NodeTarget,
        sent: &Jar,
        reason: &str,
        now: Timestamp,
    ) {
        let Some(ends_at) = sent.ends_at else { return };
        let since_page = self.last_page_at.map_or(0, |at| now.since(at).0);
        let told = || {
            format!(
                "{} at {}: {reason}; ticket ends at {}, last page {since_page} ms ago",
                now.0, goal.name, ends_at.0
            )
        };
        if now < ends_at {
            counters.throws_out(told);
        } else if self.last_page_at.is_some() && since_page < SOON_MS {
            counters.runs_out(told);
        }
    }

    fn keep(&mut self, cookie: Cookie, seat: Option<(Timestamp, String)>) {
        let (ends_at, visitor) = seat.unzip();
        let jar = match cookie {
            Cookie::Kept => return,
            Cookie::Deleted => Jar::default(),
            Cookie::Given(pair) => Jar {
                cookie: Some(pair),
                ends_at,
                visitor,
            },
        };
        let before = std::mem::replace(&mut self.jar, jar);
        self.put_aside(before, None);
    }

    fn put_aside(&mut self, jar: Jar, ended: Option<Logout>) {
        // A waiting ticket is worth nothing to a thief.
        let is_thief = self.habits.replay_percent + self.habits.replays_after_logout > 0;
        if jar.ends_at.is_none() || !is_thief {
            return;
        }
        if self.old.len() >= OLD_TICKETS_MAX {
            self.old.remove(0);
        }
        self.old.push(OldTicket { jar, ended });
    }

    /// Sends an old ticket, as a thief would: the response does not change the jar.
    async fn replay(&mut self, old: OldTicket) {
        let Some(goal) = self.goal() else { return };
        let response = self
            .browser
            .ask(
                &goal,
                self.habits.path,
                old.jar.cookie.as_deref(),
                PageRequest::Page,
            )
            .await;
        let now = now();
        let mut counters = self.counters.lock();
        let Some(logout) = old.ended else {
            counters.replayed.0 += 1;
            let is_valid = old.jar.ends_at.is_some_and(|ends_at| now < ends_at);
            if let Answer::Queue { reason, .. } = response
                && is_valid
            {
                let (at, name) = (now.0, &goal.name);
                let ends_at = old.jar.ends_at;
                counters.throws_out(|| {
                    format!("{at} at {name}: {reason}; an older ticket, which ends at {ends_at:?}")
                });
            }
            return;
        };
        counters.replayed.1 += 1;
        // A node that knows of the logout may treat the ticket as a new visitor's.
        if let Answer::Page { visitor, .. } = response
            && old.jar.visitor == Some(visitor)
        {
            let since = now.since(logout.at);
            counters.passes_after_logout(since, &logout.node, &goal.name);
        }
    }

    async fn log_out(&mut self) {
        let Some(goal) = self.goal() else { return };
        let response = self
            .browser
            .ask(&goal, LOGOUT, self.jar.cookie.as_deref(), PageRequest::Page)
            .await;
        // The logout counts from the response on: before, the origin may not have decided yet.
        let logout = Logout {
            at: now(),
            node: goal.name,
        };
        if !matches!(response, Answer::Page { .. }) {
            return;
        }
        self.counters.lock().logged_out += 1;
        let jar = std::mem::take(&mut self.jar);
        for old in &mut self.old {
            old.ended.get_or_insert_with(|| logout.clone());
        }
        self.put_aside(jar, Some(logout));
        // These may be faster than the report of the logout.
        for _ in 0..self.habits.replays_after_logout {
            let Some(newest) = self.old.last().cloned() else {
                return;
            };
            self.replay(newest).await;
        }
    }

    fn goal(&mut self) -> Option<NodeTarget> {
        let wander = self.habits.node_choice;
        self.routes.choose(wander, &mut self.home, &mut self.rng)
    }

    fn number(&mut self, range: &RangeInclusive<u32>) -> u32 {
        let width = range.end().saturating_sub(*range.start()).saturating_add(1);
        range.start() + self.rng.next_u32() % width.max(1)
    }

    fn duration(&mut self, range: &RangeInclusive<Duration>) -> Duration {
        let width = range.end().saturating_sub(*range.start());
        *range.start() + width.mul_f64(f64::from(self.rng.next_u32()) / f64::from(u32::MAX))
    }

    fn happens(&mut self, percent: u32) -> bool {
        self.rng.next_u32() % 100 < percent
    }
}
