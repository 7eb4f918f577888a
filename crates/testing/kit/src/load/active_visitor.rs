//! Active visitor who sends one request at a time to one node, and measures how long it takes.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::browser::{Answer, Browser, Cookie, Jar, PageRequest};
use super::routes::{NodeAt, NodeRoutes};

/// Time between two requests before the admission.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Far more requests than an admission to an empty room takes.
const TRIES_MAX: u32 = 100;

/// Active visitor.
#[derive(Debug)]
pub struct ActiveVisitor {
    browser: Browser,
    routes: NodeRoutes,
    at: NodeAt,
    jar: Jar,
    ticket_since: Instant,
}

impl ActiveVisitor {
    /// Comes to a node and returns when the node has admitted it.
    ///
    /// # Panics
    ///
    /// If that does not happen soon.
    pub async fn enter(routes: &NodeRoutes, at: NodeAt) -> Self {
        let mut visitor = Self {
            browser: Browser::new(),
            routes: routes.clone(),
            at,
            jar: Jar::default(),
            ticket_since: Instant::now(),
        };
        for _ in 0..TRIES_MAX {
            if visitor.send(PageRequest::Page).await {
                return visitor;
            }
            sleep(ASK_AGAIN_AFTER).await;
        }
        panic!("{at:?} admits no visitor");
    }

    /// Sends one request, and returns the time until the whole response is there.
    ///
    /// # Panics
    ///
    /// If the node does not let it pass: its ticket is valid.
    pub async fn ask(&mut self, what: PageRequest) -> Duration {
        let began = Instant::now();
        let has_passed = self.send(what).await;
        let took = began.elapsed();
        assert!(has_passed, "a valid ticket does not pass at {:?}", self.at);
        took
    }

    /// Returns the age of its ticket.
    #[must_use]
    pub fn ticket_age(&self) -> Duration {
        self.ticket_since.elapsed()
    }

    /// Returns its node.
    #[must_use]
    pub const fn at(&self) -> NodeAt {
        self.at
    }

    /// Sends a request; returns whether the origin responded.
    async fn send(&mut self, what: PageRequest) -> bool {
        let Some(goal) = self.routes.at(self.at) else {
            return false;
        };
        let cookie = self.jar.cookie.as_deref();
        let response = self.browser.ask(&goal, "/", cookie, what).await;
        let (has_passed, cookie) = match response {
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

/// Durations of requests.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// Adds a duration.
    pub fn note(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Returns the number of durations.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the quantile of so many percent; zero without durations.
    #[must_use]
    pub fn quantile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(index).copied().unwrap_or_default()
    }
}

impl fmt::Display for Latencies {
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
        let mut times = Latencies::default();
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
