//! How long does a request of a visitor inside take? A visitor who does one thing at a time, as the
//! run says, and stays at one node.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Doors;
use super::browser::{Answer, Asks, Browser, Cookie, Jar};
use crate::cluster::NodeAt;

/// Between two requests of somebody who is not inside yet.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Far more than anybody needs who comes to an empty room.
const TRIES_MAX: u32 = 100;

/// A visitor inside.
#[derive(Debug)]
pub struct Insider {
    browser: Browser,
    doors: Doors,
    at: NodeAt,
    jar: Jar,
    ticket_since: Instant,
}

impl Insider {
    /// Comes to a node and returns when the node has let it in.
    ///
    /// # Panics
    ///
    /// If that does not happen soon.
    pub async fn enter(doors: &Doors, at: NodeAt) -> Self {
        let mut visitor = Self {
            browser: Browser::new(),
            doors: doors.clone(),
            at,
            jar: Jar::default(),
            ticket_since: Instant::now(),
        };
        for _ in 0..TRIES_MAX {
            if visitor.send(Asks::Page).await {
                return visitor;
            }
            sleep(ASK_AGAIN_AFTER).await;
        }
        panic!("{at:?} lets nobody in");
    }

    /// Sends one request, and returns how long it takes until all of the answer is there.
    ///
    /// # Panics
    ///
    /// If the node does not let it pass: its ticket is valid.
    pub async fn ask(&mut self, what: Asks) -> Duration {
        let began = Instant::now();
        let has_passed = self.send(what).await;
        let took = began.elapsed();
        assert!(has_passed, "a valid ticket does not pass at {:?}", self.at);
        took
    }

    /// How long ago the node gave it the ticket that it has.
    #[must_use]
    pub fn ticket_age(&self) -> Duration {
        self.ticket_since.elapsed()
    }

    /// The node that it stays at.
    #[must_use]
    pub const fn at(&self) -> NodeAt {
        self.at
    }

    /// Returns whether the origin has answered.
    async fn send(&mut self, what: Asks) -> bool {
        let Some(goal) = self.doors.at(self.at) else {
            return false;
        };
        let cookie = self.jar.cookie.as_deref();
        let answer = self.browser.ask(&goal, "/", cookie, what).await;
        let (has_passed, cookie) = match answer {
            Answer::Page { cookie, .. } => (true, cookie),
            Answer::Queue { cookie, .. } => (false, cookie),
            Answer::Failed(_) | Answer::Nothing => (false, Cookie::Kept),
        };
        if let Cookie::Given(pair) = cookie {
            self.jar.cookie = Some(pair);
            self.ticket_since = Instant::now();
        }
        has_passed
    }
}

/// How long requests took.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Takes note of one more.
    pub fn note(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// How many there were.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// So many of a hundred took no longer than this; zero if there were none.
    #[must_use]
    pub fn quantile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(index).copied().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |percent| self.quantile(percent).as_secs_f64() * 1_000.0;
        let (half, most, longest) = (millis(50), millis(99), millis(100));
        let count = self.count();
        write!(
            f,
            "{count} requests: p50 {half:.1} ms, p99 {most:.1} ms, longest {longest:.1} ms"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_time_that_was_measured() {
        let mut times = Times::default();
        assert_eq!(times.quantile(50), Duration::ZERO);
        for millis in [4, 1, 3, 2] {
            times.note(Duration::from_millis(millis));
        }
        let check = |percent, millis| {
            assert_eq!(times.quantile(percent), Duration::from_millis(millis));
        };
        check(50, 2);
        check(99, 4);
        check(100, 4);
    }
}
