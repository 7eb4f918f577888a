//! Request counts that several nodes keep together on memcached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Needs, Policy};
use anteroom_limit::registry::Remembers;
use anteroom_limit::swapping::LOG_LONGEST;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{
    self, BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime, UnfitError,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::counters::{AcquireOutcome, CountedAcquire};
use crate::keys::{ClientName, Keys};
use crate::link::Link;
use crate::queues::Turns;
use crate::swaps::{StateAddress, Swaps};
use crate::undo::{Acquired, NotRefunded};
use anteroom_limit_store::clock::Now;

/// Timeout of a request: a connection, and a reply after it. A request without a reply by then is
/// not admitted, so this also bounds how late a node can read what others added. Two thirds of it
/// may pass waiting for other requests of the client; the rest is for the server.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Timeout in tests, which share their machine with others.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Counts on memcached.
///
/// There is one connection to each server, shared by all requests. A client's counts are at one
/// server, chosen by its digest. Windows of all kinds cost one round trip, and another one for a
/// rejected request. Other algorithms cost two, and two more for each lost compare-and-swap. Limits
/// are acquired one after the other.
///
/// # Guarantees and limits
///
/// - However many nodes send requests at once, none admits what the algorithm would not, as long as
///   their clocks differ by no more than [`CLOCKS_APART_MAX`]. The nodes' clocks are the only ones:
///   memcached has no command for the time. A guarantee for any window by one clock holds, with
///   different clocks, for windows that are shorter by the difference, by a wall clock. With a
///   larger difference nodes do not see all of each other's requests, and up to twice the limit may
///   be admitted. A node that is ahead also refills buckets early, once, by as much as it is ahead.
/// - A restarted server has lost all counts. A server with full memory evicts the clients that were
///   not seen for longest, though their requests may still count. Neither can be noticed: use
///   another store if this is not acceptable.
/// - A request that does not fit counts until it is undone, so another one may be rejected because
///   of it; none is admitted because of it. It is undone even if its caller has left or timed out.
///   If the server is unavailable for that (`not_refunded` among the events), or a connection
///   breaks before the reply, it stays counted until its window ends.
/// - Where many nodes send requests of one client by an algorithm that swaps states, some requests
///   give up uncounted: they are [`CountsError::Busy`], and `cas_gave_up` among the events. So are
///   those that wait too long for others of this node.
/// - A refund without the age of its request may undo newer requests; they count as older ones
///   then.
///
/// [`CLOCKS_APART_MAX`]: anteroom_limit_store::clock::CLOCKS_APART_MAX
pub struct MemcachedCounts {
    servers: Vec<Server>,
    keys: Keys,
    now: Now,
    swaps: Arc<Swaps>,
    not_refunded: NotRefunded,
    timeout: Duration,
}

/// Server with the queues of requests that wait for their turn.
struct Server {
    link: Link,
    turns: Turns,
}

impl MemcachedCounts {
    /// Creates counts at these servers, at least one; `prefix` begins all keys. Servers and prefix
    /// are the same on all nodes, in any order. Opens no connection yet.
    ///
    /// # Panics
    ///
    /// If there is no server.
    #[must_use]
    pub fn new(servers: &[HostPort], prefix: &str, now: Now) -> Self {
        assert!(!servers.is_empty(), "counts need a server");
        let mut servers = servers.to_vec();
        servers.sort();
        servers.dedup();
        let not_refunded = NotRefunded::default();
        let server = |server| Server {
            link: Link::to(server),
            turns: Turns::default(),
        };
        Self {
            servers: servers.into_iter().map(server).collect(),
            keys: Keys::new(prefix),
            now,
            swaps: Arc::new(Swaps::new(&not_refunded)),
            not_refunded,
            timeout: REQUEST_TIMEOUT,
        }
    }

    /// Creates counts with the clock of a test and a longer timeout. Servers expire values by their
    /// own clock.
    #[doc(hidden)]
    #[must_use]
    pub fn with_time(servers: &[HostPort], prefix: &str, time: TestTime) -> Self {
        let counts = Self::new(servers, prefix, Arc::new(move || time.now()));
        counts.with_timeout(TEST_TIMEOUT)
    }

    /// Sets the timeout of each request.
    #[doc(hidden)]
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Ends all connections; later requests fail.
    pub fn close(&self) {
        for server in &self.servers {
            server.link.close();
        }
    }

    /// Returns the prefix of the keys of a client.
    #[doc(hidden)]
    #[must_use]
    pub fn name_of(&self, limit: &str, key: ClientKey) -> String {
        self.keys.client(limit, key).state
    }

    /// Returns the index of the server that has a client's values.
    #[doc(hidden)]
    #[must_use]
    pub fn server_of(&self, limit: &str, key: ClientKey) -> usize {
        self.keys.client(limit, key).spread(self.servers.len())
    }

    fn server(&self, name: &ClientName) -> &Server {
        &self.servers[name.spread(self.servers.len())]
    }

    async fn one(
        &self,
        acquire: &SharedAcquire<'_>,
        is_acquired: bool,
        deadline: &AcquireDeadline,
    ) -> Result<AcquireOutcome, CountsError> {
        let name = self.keys.client(acquire.limit, acquire.key);
        let server = self.server(&name);
        let link = server.link.clone();
        let acquiring = async {
            match acquire.policy.counters() {
                Some(counters) => {
                    let counted = CountedAcquire {
                        link: &server.link,
                        name: &name,
                        counters,
                        now: (self.now)(),
                        timeout: self.timeout,
                        not_refunded: &self.not_refunded,
                    };
                    counted.acquire(acquire, is_acquired, deadline.age).await
                }
                None => {
                    let address = StateAddress {
                        link: server.link.clone(),
                        turns: server.turns.clone(),
                        name: name.clone(),
                        now: Arc::clone(&self.now),
                    };
                    let until = deadline.begin_until;
                    self.swaps
                        .acquire(address, acquire, is_acquired, until)
                        .await
                }
            }
        };
        match timeout_at(deadline.until, acquiring).await {
            Ok(outcome) => outcome.map_err(|failure| failure.into_counts_error(&name_of(&link))),
            Err(_) => Err(CountsError::Late {
                store_name: name_of(&link),
                source: Box::new(DeadlineError(self.timeout)),
            }),
        }
    }

    async fn all(
        &self,
        acquires: &[SharedAcquire<'_>],
        age: Option<DurationUs>,
    ) -> Result<Vec<Verdict>, CountsError> {
        let deadline = AcquireDeadline::now(self.timeout, age);
        // Refunds are never rejected, so as the last ones they never need to be undone.
        let is_refund = |at: &usize| matches!(acquires[*at].cost, Cost::Refund(_));
        let mut order: Vec<usize> = (0..acquires.len()).collect();
        order.sort_by_key(is_refund);
        let mut all: Vec<(usize, Verdict, Verdict)> = Vec::with_capacity(acquires.len());
        // If the caller leaves, these are dropped and so undone.
        let mut acquired: Vec<Acquired> = Vec::with_capacity(acquires.len());
        let mut undone: Vec<JoinHandle<()>> = Vec::new();
        let mut is_admitted = true;
        for at in order {
            match self.one(&acquires[at], is_admitted, &deadline).await {
                Ok(outcome) => {
                    acquired.extend(outcome.acquired);
                    is_admitted &= outcome.verdict.is_allowed();
                    if !is_admitted {
                        undone.extend(acquired.drain(..).filter_map(Acquired::undo));
                    }
                    all.push((at, outcome.verdict, outcome.without));
                }
                Err(error) => {
                    undone.extend(acquired.drain(..).filter_map(Acquired::undo));
                    deadline.wait_for(undone).await;
                    return Err(error);
                }
            }
        }
        deadline.wait_for(undone).await;
        acquired.into_iter().for_each(Acquired::keep);
        all.sort_by_key(|(at, ..)| *at);
        let verdict = |(_, verdict, without): &(usize, Verdict, Verdict)| {
            if is_admitted || !verdict.is_allowed() {
                *verdict
            } else {
                *without
            }
        };
        Ok(all.iter().map(verdict).collect())
    }

    /// Rejects limits that were not checked at the start.
    fn check_all(&self, acquires: &[SharedAcquire<'_>]) -> Result<(), CountsError> {
        for acquire in acquires {
            if let Err(error) = self.check(acquire.limit, acquire.policy) {
                return Err(CountsError::Rejected {
                    store_name: self.kind().to_owned(),
                    refusal: "cannot keep this limit",
                    remedy: "make it smaller or choose another algorithm",
                    source: Box::new(error),
                });
            }
        }
        Ok(())
    }
}

/// Deadlines of a request.
struct AcquireDeadline {
    /// Greatest age of the request that a refund refunds, if known.
    age: Option<DurationUs>,
    /// Time after which the caller waits no more.
    until: Instant,
    /// Time after which a request that still waits for its turn fails.
    begin_until: Instant,
}

impl AcquireDeadline {
    fn now(timeout: Duration, age: Option<DurationUs>) -> Self {
        let now = Instant::now();
        Self {
            age,
            until: now + timeout,
            begin_until: now + timeout * 2 / 3,
        }
    }

    /// Waits for undos, so that the next request sees them. After the deadline they finish without
    /// the wait.
    async fn wait_for(&self, undone: Vec<JoinHandle<()>>) {
        for one in undone {
            if timeout_at(self.until, one).await.is_err() {
                return;
            }
        }
    }
}

/// Timeout of a request.
#[derive(Debug, thiserror::Error)]
#[error("no reply within {} ms", .0.as_millis())]
struct DeadlineError(Duration);

fn name_of(link: &Link) -> String {
    format!("memcached at {}", link.server())
}

impl SharedCounts for MemcachedCounts {
    fn kind(&self) -> &'static str {
        "memcached"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    /// Checks a limit; rejects logs of more than [`LOG_LONGEST`] requests, too.
    fn check(&self, limit: &str, policy: &Policy) -> Result<(), UnfitError> {
        shared::check_needs(self.kind(), self.offers(), limit, policy)?;
        let requests = policy.rate().requests();
        match policy.row().remembers {
            Remembers::Requests if requests > LOG_LONGEST => {}
            Remembers::Requests | Remembers::Counts | Remembers::Tokens | Remembers::Time => {
                return Ok(());
            }
        }
        Err(UnfitError::LogTooLong {
            limit: limit.to_owned(),
            requests,
            store: self.kind(),
            calls_max: LOG_LONGEST,
        })
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("cas_lost", self.swaps.lost()),
            ("cas_gave_up", self.swaps.gave_up()),
            ("not_refunded", self.not_refunded.count()),
        ]
    }

    fn acquire<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            self.check_all(acquires)?;
            self.all(acquires, None).await
        })
    }

    fn refund<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
        age: DurationUs,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            self.check_all(acquires)?;
            self.all(acquires, Some(age)).await
        })
    }
}

impl fmt::Debug for MemcachedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(|one| name_of(&one.link)).collect();
        write!(f, "MemcachedCounts({})", servers.join(", "))
    }
}
