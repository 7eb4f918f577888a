//! Counts of calls that several nodes keep on memcached together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use anteroom_counts::CallKey;
use anteroom_counts::shared::{
    self, BoxFuture, CountsError, SharedCharge, SharedCounts, TestTime, UnfitError,
};
use anteroom_limits::cost::Cost;
use anteroom_limits::policy::{Needs, Policy};
use anteroom_limits::time::{MicroSpan, Micros};
use anteroom_limits::verdict::Verdict;
use tokio::time::timeout;

use crate::counters::{self, Counted, Judged};
use crate::keys::{ClientName, Keys};
use crate::link::Link;
use crate::swaps::{Place, Swaps};

/// How far the clocks of two nodes may be apart so that a limit holds. Clocks that are kept by NTP are within some
/// milliseconds; a second is what is left where it has just begun to. More would make each node look at stretches of
/// time that nobody is in.
pub const CLOCKS_APART_MAX: MicroSpan = MicroSpan::from_secs(1);
/// How long a call waits for all that it needs: a connection, and an answer after it. Whoever has no answer by then is
/// not admitted, so this is also how late a node can read what others added.
pub(crate) const CHARGE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// The largest limit that a sliding log can have here. Each call brings the whole log and takes it back; so many
/// entries are 200 kB, a fifth of what a server takes as one value.
pub const LOG_LONGEST: u32 = 10_000;

/// What time it is by the node's own clock.
pub type Now = Arc<dyn Fn() -> Micros + Send + Sync>;

/// Counts on memcached.
///
/// One connection to each server, shared by all who call. A client's counts lie at one server, whichever its digest
/// says. Windows of all kinds cost one round trip, and another one for a call that is rejected; the others
/// cost two, and two more for each time that another node was faster. Limits are charged one after the other.
///
/// # What holds, and what does not
///
/// - However many nodes call at once, none of them admits what the algorithm would not, as long as their clocks are
///   apart by no more than [`CLOCKS_APART_MAX`]. Their clocks are what there is: memcached tells no time. What holds in
///   any window by one clock holds, where clocks are apart, in any window that is shorter by as much, by a clock on
///   the wall. With clocks further apart nodes do not see all of each other's calls, and up to twice as much may pass;
///   a node that is ahead also refills buckets early, once, by as much as it is ahead.
/// - A server that is restarted has forgotten all. One whose memory is full forgets who was not seen for longest,
///   though their calls may still count. Neither can be noticed: whoever cannot bear that needs another store.
/// - A call that does not fit counts until it is taken back, so another may be rejected for it; none is admitted for it.
///   One that was taken back in vain, or whose caller left, stays counted till its time is over.
/// - Where many nodes call for one client by an algorithm that swaps states, calls are given up uncounted: they are
///   [`CountsError::Busy`], and `cas_gave_up` among the events.
/// - A refund may undo newer calls than those it is for; they count as older ones then.
pub struct MemcachedCounts {
    links: Vec<Link>,
    keys: Keys,
    now: Now,
    swaps: Swaps,
}

impl MemcachedCounts {
    /// Counts at these servers, of which there is at least one; `prefix` begins the names of all keys. The same on all
    /// nodes, in whichever order. Opens nothing yet.
    ///
    /// # Panics
    ///
    /// If there is no server.
    #[must_use]
    pub fn new(servers: &[HostPort], prefix: &str, now: Now) -> Self {
        assert!(!servers.is_empty(), "counts lie at some server");
        let mut servers = servers.to_vec();
        servers.sort();
        servers.dedup();
        Self {
            links: servers.into_iter().map(Link::to).collect(),
            keys: Keys::new(prefix),
            now,
            swaps: Swaps::new(),
        }
    }

    /// The same at a time that a test brings along. Servers forget by their own clock.
    #[doc(hidden)]
    #[must_use]
    pub fn with_time(servers: &[HostPort], prefix: &str, time: TestTime) -> Self {
        Self::new(servers, prefix, Arc::new(move || time.now()))
    }

    /// Ends all connections; later calls fail.
    pub fn close(&self) {
        for link in &self.links {
            link.close();
        }
    }

    /// What a client's values are called; their names begin with that.
    #[doc(hidden)]
    #[must_use]
    pub fn name_of(&self, limit: &str, key: CallKey) -> String {
        self.keys.client(limit, key).state
    }

    fn link(&self, name: &ClientName) -> &Link {
        &self.links[name.spread(self.links.len())]
    }

    async fn one(
        &self,
        charge: &SharedCharge<'_>,
        is_charged: bool,
    ) -> Result<Judged, CountsError> {
        let name = self.keys.client(charge.limit, charge.key);
        let link = self.link(&name);
        let judged = match charge.policy.counters() {
            Some(counters) => {
                let counted = Counted {
                    link,
                    name: &name,
                    counters,
                    now: (self.now)(),
                };
                counted.charge(charge, is_charged).await
            }
            None => {
                let place = Place {
                    link,
                    name: &name,
                    now: &self.now,
                };
                self.swaps.charge(&place, charge, is_charged).await
            }
        };
        judged.map_err(|failure| failure.into_counts_error(&place_of(link)))
    }

    async fn all(&self, charges: &[SharedCharge<'_>]) -> Result<Vec<Verdict>, CountsError> {
        // Refunds are never rejected, so behind all others none must ever be undone.
        let is_refund = |at: &usize| matches!(charges[*at].cost, Cost::Refund(_));
        let mut order: Vec<usize> = (0..charges.len()).collect();
        order.sort_by_key(is_refund);
        let mut all: Vec<(usize, Judged)> = Vec::with_capacity(charges.len());
        let mut is_admitted = true;
        for at in order {
            match self.one(&charges[at], is_admitted).await {
                Ok(judged) => {
                    is_admitted &= judged.verdict.is_admitted();
                    all.push((at, judged));
                }
                Err(error) => {
                    self.take_back(charges, &all).await;
                    return Err(error);
                }
            }
        }
        if !is_admitted {
            self.take_back(charges, &all).await;
        }
        all.sort_by_key(|(at, _)| *at);
        let verdict = |(_, judged): &(usize, Judged)| {
            if is_admitted || !judged.verdict.is_admitted() {
                judged.verdict
            } else {
                judged.without
            }
        };
        Ok(all.iter().map(verdict).collect())
    }

    /// Takes back what was charged before one was rejected. If that fails they stay charged: fewer are admitted then,
    /// and none too many.
    async fn take_back(&self, charges: &[SharedCharge<'_>], judged: &[(usize, Judged)]) {
        let charged = judged
            .iter()
            .take_while(|(_, judged)| judged.verdict.is_admitted());
        for (at, judged) in charged {
            let Cost::Take(taken) = charges[*at].cost else {
                continue;
            };
            let charge = SharedCharge {
                cost: Cost::Refund(taken),
                ..charges[*at]
            };
            let undone = match &judged.added_to {
                Some(counter) => self.subtract(&charge, counter, taken.get()).await,
                None => self.one(&charge, true).await.map(|_| ()),
            };
            if let Err(error) = undone {
                let limit = charge.limit;
                tracing::warn!(%error, limit, "calls that were rejected stay charged");
            }
        }
    }

    /// From the very counter to which was added: another may be the newest by now.
    async fn subtract(
        &self,
        charge: &SharedCharge<'_>,
        counter: &str,
        by: u32,
    ) -> Result<(), CountsError> {
        let name = self.keys.client(charge.limit, charge.key);
        let link = self.link(&name);
        let undone = counters::take_back(link, counter, by).await;
        undone.map_err(|failure| failure.into_counts_error(&place_of(link)))
    }

    /// Whoever did not ask at the start must not be counted wrongly.
    fn check_all(&self, charges: &[SharedCharge<'_>]) -> Result<(), CountsError> {
        for charge in charges {
            if let Err(error) = self.check(charge.limit, charge.policy) {
                return Err(CountsError::Refused {
                    place: self.kind().to_owned(),
                    refusal: "cannot count by this limit",
                    remedy: "make it smaller or take another algorithm",
                    source: Box::new(error),
                });
            }
        }
        Ok(())
    }

    fn too_late(&self) -> CountsError {
        let servers: Vec<String> = self.links.iter().map(place_of).collect();
        CountsError::Late {
            place: servers.join(", "),
            source: Box::new(LateError),
        }
    }
}

/// The call has waited long enough.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} ms", CHARGE_TIMEOUT.as_millis())]
struct LateError;

fn place_of(link: &Link) -> String {
    format!("memcached at {}", link.server())
}

impl SharedCounts for MemcachedCounts {
    fn kind(&self) -> &'static str {
        "memcached"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    /// Beside what is needed: logs of up to [`LOG_LONGEST`] calls.
    fn check(&self, limit: &str, policy: &Policy) -> Result<(), UnfitError> {
        shared::check_needs(self.kind(), self.offers(), limit, policy)?;
        let calls = policy.rate().calls();
        if !matches!(policy, Policy::SlidingLog(_)) || calls <= LOG_LONGEST {
            return Ok(());
        }
        Err(UnfitError::LogTooLong {
            limit: limit.to_owned(),
            calls,
            store: self.kind(),
            calls_max: LOG_LONGEST,
        })
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("cas_lost", self.swaps.lost()),
            ("cas_gave_up", self.swaps.gave_up()),
        ]
    }

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedCharge<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            self.check_all(charges)?;
            let charging = timeout(CHARGE_TIMEOUT, self.all(charges)).await;
            charging.unwrap_or_else(|_| Err(self.too_late()))
        })
    }
}

impl fmt::Debug for MemcachedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.links.iter().map(place_of).collect();
        write!(f, "MemcachedCounts({})", servers.join(", "))
    }
}
