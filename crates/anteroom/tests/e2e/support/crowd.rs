//! Visitors who come, wait, look around, leave and are followed by others, whatever becomes of the
//! gateway in the meantime.
//!
//! A simple crowd before one door, without dice. The one that changes nodes and replays tickets
//! is in `anteroom-e2e`, which stands above this crate, so that nothing here can use it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom::demo::judging::JUDGE_SEAT_ENDS;
use anteroom_room::time::Timestamp;
use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::client::{Answer, Client};
use super::now;

/// Where the gateway is at present. Restarted gateways are elsewhere.
#[derive(Clone)]
pub(crate) struct Door(Arc<Mutex<SocketAddr>>);

/// What visitors of a crowd do.
#[derive(Clone, Copy)]
pub(crate) struct Habits {
    /// The path they ask for.
    pub(crate) path: &'static str,
    /// How many pages each looks at before it leaves.
    pub(crate) pages: u32,
    /// Between two pages.
    pub(crate) think: Duration,
    /// Between two asks of somebody who waits; sooner than they are told to, so that nobody is
    /// overdue on a busy machine.
    pub(crate) refresh_interval: Duration,
    /// Whether they log out when they leave, so that their seats are free at once.
    pub(crate) say_goodbye: bool,
    /// Whether somebody else comes for each one who leaves.
    pub(crate) are_followed: bool,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            path: "/",
            pages: 3,
            think: Duration::from_millis(200),
            refresh_interval: Duration::from_millis(500),
            say_goodbye: true,
            are_followed: true,
        }
    }
}

impl Habits {
    /// Visitors who come in and stay.
    pub(crate) fn stay() -> Self {
        Self {
            path: "/stays",
            pages: u32::MAX,
            ..Self::default()
        }
    }
}

/// What visitors of a crowd met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Visitors who came in.
    pub(crate) entered: u64,
    /// Pages of the origin.
    pub(crate) pages: u64,
    /// Visitors who were told to wait although their seat had not ended.
    pub(crate) thrown_out: u64,
    /// Requests that were not answered at all.
    pub(crate) unanswered: u64,
    /// Other answers than pages and waiting pages, by status.
    pub(crate) failed: BTreeMap<StatusCode, u64>,
}

/// A crowd on its way; goes home when dropped.
pub(crate) struct LoadGenerator {
    counters: Arc<Mutex<Tally>>,
    visitors: JoinSet<()>,
    leave: watch::Sender<bool>,
}

impl Door {
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self(Arc::new(Mutex::new(address)))
    }

    pub(crate) fn is_at(&self, address: SocketAddr) {
        *self.0.lock() = address;
    }

    pub(crate) fn address(&self) -> SocketAddr {
        *self.0.lock()
    }
}

impl LoadGenerator {
    /// Sends `count` visitors at once.
    pub(crate) fn send(door: &Door, count: usize, habits: Habits) -> Self {
        let counters = Arc::new(Mutex::new(Tally::default()));
        let (leave, leaving) = watch::channel(false);
        let client = Client::new(door.address());
        let mut visitors = JoinSet::new();
        for _ in 0..count {
            let visitor = Visitor {
                door: door.clone(),
                client: client.somebody_else(),
                habits,
                counters: Arc::clone(&counters),
                seat_ends_at: None,
                pages: 0,
            };
            let mut leaving = leaving.clone();
            visitors.spawn(async move {
                tokio::select! {
                    () = visitor.live() => {}
                    _ = leaving.wait_for(|is_leaving| *is_leaving) => {}
                }
            });
        }
        Self {
            counters,
            visitors,
            leave,
        }
    }

    /// What they met so far.
    pub(crate) fn counters(&self) -> Tally {
        self.counters.lock().clone()
    }

    /// Sends all home, whatever they do, and tells what they met.
    pub(crate) async fn go_home(self) -> Tally {
        self.leave.send_replace(true);
        let visitors = self.visitors;
        visitors.join_all().await;
        let counters = self.counters.lock();
        counters.clone()
    }
}

/// One of a crowd, and then whoever follows.
struct Visitor {
    door: Door,
    client: Client,
    habits: Habits,
    counters: Arc<Mutex<Tally>>,
    seat_ends_at: Option<Timestamp>,
    pages: u32,
}

impl Visitor {
    async fn live(mut self) {
        loop {
            let pause = self.ask().await;
            if self.pages >= self.habits.pages {
                if self.habits.say_goodbye {
                    // Answered or not: the visitor is gone.
                    let _ = self.client.try_navigate("/logout").await;
                }
                if !self.habits.are_followed {
                    return;
                }
                self.client = self.client.somebody_else();
                self.seat_ends_at = None;
                self.pages = 0;
            }
            sleep(pause).await; // tidy: time passes
        }
    }

    /// Asks once; returns how long to wait before the next time.
    async fn ask(&mut self) -> Duration {
        self.client = self.client.at(self.door.address());
        let Some(answer) = self.client.try_navigate(self.habits.path).await else {
            self.counters.lock().unanswered += 1;
            return Duration::from_millis(50);
        };
        let mut counters = self.counters.lock();
        if answer.is_queued() {
            let had_seat = self.seat_ends_at.take().is_some_and(|end| now() < end);
            counters.thrown_out += u64::from(had_seat);
            self.pages = 0;
            return self.habits.refresh_interval;
        }
        let Some(seat_ends_at) = seat_end(&answer) else {
            *counters.failed.entry(answer.status).or_default() += 1;
            return self.habits.refresh_interval;
        };
        counters.entered += u64::from(self.seat_ends_at.is_none());
        counters.pages += 1;
        self.seat_ends_at = Some(seat_ends_at);
        self.pages += 1;
        self.habits.think
    }
}

/// Until when the seat lasts, as the origin says; `None` if it was not the origin that answered.
pub(crate) fn seat_end(answer: &Answer) -> Option<Timestamp> {
    let end = answer.headers.get(JUDGE_SEAT_ENDS)?.to_str().unwrap();
    Some(Timestamp(end.parse().unwrap()))
}
