//! What does one visitor do, from arriving to leaving, and then whoever follows?

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use anteroom_room::time::Timestamp;
use parking_lot::Mutex;
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::browser::{Answer, Asks, Browser, Cookie, Jar};
use super::counters::Tally;
use super::doors::{Goal, Home, below};
use super::{Doors, Habits};
use crate::clock::now;
use crate::judge::LOGOUT;

/// Old tickets that somebody keeps for replays.
const OLD_TICKETS_MAX: usize = 12;
/// After a request that nobody answered.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Whoever comes again sooner than this keeps the seat while nodes and stores are in touch: shorter
/// than any session here.
const SOON_MS: u64 = 4_000;

/// A ticket that is not in the jar any more.
#[derive(Clone, Debug)]
struct OldTicket {
    jar: Jar,
    ended: Option<Logout>,
}

/// How a session was ended.
#[derive(Clone, Debug)]
struct Logout {
    at: Timestamp,
    node: String,
}

/// One of a crowd.
#[derive(Debug)]
pub(super) struct Visitor {
    doors: Doors,
    browser: Browser,
    habits: Habits,
    counters: Arc<Mutex<Tally>>,
    rng: Pcg64Mcg,
    home: Home,
    jar: Jar,
    old: Vec<OldTicket>,
    /// When the last page came; `None` for somebody who has not been inside.
    last_page_at: Option<Timestamp>,
    pages_left: u32,
    /// Whether the last answer was a waiting page, and when to ask again after the last of them.
    is_waiting: bool,
    ask_after: Option<Duration>,
}

impl Visitor {
    pub(super) fn new(
        doors: Doors,
        browser: Browser,
        habits: Habits,
        counters: Arc<Mutex<Tally>>,
        mut rng: Pcg64Mcg,
    ) -> Self {
        let home = doors.home(habits.first_data_center_percent, &mut rng);
        let mut visitor = Self {
            doors,
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

    /// Somebody new.
    fn begin(&mut self) {
        self.jar = Jar::default();
        // Tickets of ended sessions are still worth a try; the others belonged to somebody else.
        self.old.retain(|old| old.ended.is_some());
        self.last_page_at = None;
        self.pages_left = self.number(&self.habits.pages.clone());
        let percent = self.habits.first_data_center_percent;
        self.home = self.doors.home(percent, &mut self.rng);
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

    /// Asks for a page, with as many requests as the visitor sends at once. Returns how long to
    /// wait before the next.
    async fn ask(&mut self) -> Duration {
        let count = match self.jar.cookie {
            Some(_) => self.habits.at_once,
            // Whoever comes without a ticket would be taken for as many visitors.
            None => 1,
        };
        let mut asking = JoinSet::new();
        for _ in 0..count {
            let Some(goal) = self.goal() else { continue };
            let (browser, jar) = (self.browser.clone(), self.jar.clone());
            asking.spawn(async move {
                let answer = browser
                    .ask(&goal, "/", jar.cookie.as_deref(), Asks::Page)
                    .await;
                (goal, jar, answer)
            });
        }
        let (mut has_page, mut has_answer) = (false, false);
        while let Some(Ok((goal, sent, answer))) = asking.join_next().await {
            has_page |= matches!(answer, Answer::Page { .. });
            has_answer |= !matches!(answer, Answer::Nothing);
            self.take(&goal, &sent, answer);
        }
        if has_page {
            self.pages_left = self.pages_left.saturating_sub(1);
            return self.duration(&self.habits.think.clone());
        }
        if has_answer {
            let told = self.ask_after.filter(|_| self.habits.is_patient);
            return told.unwrap_or_else(|| self.duration(&self.habits.refresh_interval.clone()));
        }
        TRY_AGAIN_AFTER
    }

    /// Takes note of an answer, and puts what it brings into the jar, as a browser does: whatever
    /// comes last stays.
    fn take(&mut self, goal: &Goal, sent: &Jar, answer: Answer) {
        let now = now();
        let counters = Arc::clone(&self.counters);
        let mut counters = counters.lock();
        match answer {
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
                self.judge_queue(&mut counters, goal, sent, &reason, now);
                *counters.queued.entry(reason).or_default() += 1;
                self.keep(cookie, None);
            }
            Answer::Failed(status) => *counters.failed.entry(status).or_default() += 1,
            Answer::Nothing => counters.unanswered += 1,
        }
    }

    fn waits(&mut self, counters: &mut Tally, is_waiting: bool) {
        counters.waiting += usize::from(is_waiting);
        counters.waiting -= usize::from(self.is_waiting);
        self.is_waiting = is_waiting;
    }

    /// Whether somebody should not have been queued.
    fn judge_queue(
        &self,
        counters: &mut Tally,
        goal: &Goal,
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
        // A ticket of somebody who waits is worth nothing to a thief.
        let is_thief = self.habits.replay_percent + self.habits.replays_after_logout > 0;
        if jar.ends_at.is_none() || !is_thief {
            return;
        }
        if self.old.len() >= OLD_TICKETS_MAX {
            self.old.remove(0);
        }
        self.old.push(OldTicket { jar, ended });
    }

    /// Sends an old ticket, as somebody else would who has got hold of it: what comes back does not
    /// go into the jar.
    async fn replay(&mut self, old: OldTicket) {
        let Some(goal) = self.goal() else { return };
        let answer = self
            .browser
            .ask(&goal, "/", old.jar.cookie.as_deref(), Asks::Page)
            .await;
        let now = now();
        let mut counters = self.counters.lock();
        let Some(logout) = old.ended else {
            counters.replayed.0 += 1;
            let is_valid = old.jar.ends_at.is_some_and(|ends_at| now < ends_at);
            if let Answer::Queue { reason, .. } = answer
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
        // At a node that knows of the logout the ticket is worth nothing, and whoever brings it may
        // be let in as somebody new.
        if let Answer::Page { visitor, .. } = answer
            && old.jar.visitor == Some(visitor)
        {
            let since = now.since(logout.at);
            counters.passes_after_logout(since, &logout.node, &goal.name);
        }
    }

    async fn log_out(&mut self) {
        let Some(goal) = self.goal() else { return };
        let answer = self
            .browser
            .ask(&goal, LOGOUT, self.jar.cookie.as_deref(), Asks::Page)
            .await;
        // From the answer on: before it, the origin had not decided yet as far as anybody knows.
        let logout = Logout {
            at: now(),
            node: goal.name,
        };
        if !matches!(answer, Answer::Page { .. }) {
            return;
        }
        self.counters.lock().logged_out += 1;
        let jar = std::mem::take(&mut self.jar);
        for old in &mut self.old {
            old.ended.get_or_insert_with(|| logout.clone());
        }
        self.put_aside(jar, Some(logout));
        // Quicker than the news of the logout, perhaps.
        for _ in 0..self.habits.replays_after_logout {
            let Some(newest) = self.old.last().cloned() else {
                return;
            };
            self.replay(newest).await;
        }
    }

    fn goal(&mut self) -> Option<Goal> {
        let wander = self.habits.wander;
        self.doors.choose(wander, &mut self.home, &mut self.rng)
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
