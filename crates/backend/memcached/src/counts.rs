//! Counts of calls that several nodes keep on memcached together.

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
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::{
    self, BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime, UnfitError,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::counters::{AcquireOutcome, CountedAcquire};
use crate::keys::{ClientName, Keys};
use crate::link::Link;
use crate::swaps::{StateAddress, Swaps};
use crate::turns::Turns;
use crate::undo::{Acquired, NotRefunded};
use anteroom_limit_store::clock::Now;

/// How long a call waits for all that it needs: a connection, and an answer after it. Whoever has
/// no answer by then is not admitted, so this is also how late a node can read what others added.
/// For two thirds of it a call may wait for others of its client; what is left is for the server.
const CHARGE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// The same in tests, which share their machine with others.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Counts on memcached.
///
/// One connection to each server, shared by all who call. A client's counts lie at one server,
/// whichever its digest says. Windows of all kinds cost one round trip, and another one for a call
/// that is rejected; the others cost two, and two more for each time that another node was faster.
/// Limits are charged one after the other.
///
/// # What holds, and what does not
///
/// - However many nodes call at once, none of them admits what the algorithm would not, as long as
///   their clocks are apart by no more than [`CLOCKS_APART_MAX`]. Their clocks are what there is:
///   memcached tells no time. What holds in any window by one clock holds, where clocks are apart,
///   in any window that is shorter by as much, by a clock on the wall. With clocks further apart
///   nodes do not see all of each other's calls, and up to twice as much may pass; a node that is
///   ahead also refills buckets early, once, by as much as it is ahead.
/// - A server that is restarted has forgotten all. One whose memory is full forgets who was not
///   seen for longest, though their calls may still count. Neither can be noticed: whoever cannot
///   bear that needs another store.
/// - A call that does not fit counts until it is taken back, so another may be rejected for it;
///   none is admitted for it. That happens though its caller has left, or is told that it is late.
///   Where the server cannot be reached for it (`stayed_charged` among the events), or a connection
///   breaks before the answer, it stays counted till its time is over.
/// - Where many nodes call for one client by an algorithm that swaps states, calls are given up
///   uncounted: they are [`CountsError::Busy`], and `cas_gave_up` among the events. So are those
///   that wait in vain for others of this node.
/// - A refund that does not say how old its call is may undo newer calls; they count as older ones
///   then.
///
/// [`CLOCKS_APART_MAX`]: anteroom_limit_store::clock::CLOCKS_APART_MAX
pub struct MemcachedCounts {
    servers: Vec<Server>,
    keys: Keys,
    now: Now,
    swaps: Arc<Swaps>,
    stayed: NotRefunded,
    timeout: Duration,
}

/// A server, and who waits here for its turn there.
struct Server {
    link: Link,
    turns: Turns,
}

impl MemcachedCounts {
    /// Counts at these servers, of which there is at least one; `prefix` begins the names of all
    /// keys. The same on all nodes, in whichever order. Opens nothing yet.
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
        let stayed = NotRefunded::default();
        let server = |server| Server {
            link: Link::to(server),
            turns: Turns::default(),
        };
        Self {
            servers: servers.into_iter().map(server).collect(),
            keys: Keys::new(prefix),
            now,
            swaps: Arc::new(Swaps::new(&stayed)),
            stayed,
            timeout: CHARGE_TIMEOUT,
        }
    }

    /// The same at a time that a test brings along, and with more patience. Servers forget by their
    /// own clock.
    #[doc(hidden)]
    #[must_use]
    pub fn with_time(servers: &[HostPort], prefix: &str, time: TestTime) -> Self {
        let counts = Self::new(servers, prefix, Arc::new(move || time.now()));
        counts.with_timeout(TEST_TIMEOUT)
    }

    /// The same where each call waits for so long.
    #[doc(hidden)]
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Ends all connections; later calls fail.
    pub fn close(&self) {
        for server in &self.servers {
            server.link.close();
        }
    }

    /// What a client's values are called; their names begin with that.
    #[doc(hidden)]
    #[must_use]
    pub fn name_of(&self, limit: &str, key: CallKey) -> String {
        self.keys.client(limit, key).state
    }

    /// At which of so many servers a client's values lie, in their order.
    #[doc(hidden)]
    #[must_use]
    pub fn server_of(&self, limit: &str, key: CallKey) -> usize {
        self.keys.client(limit, key).spread(self.servers.len())
    }

    fn server(&self, name: &ClientName) -> &Server {
        &self.servers[name.spread(self.servers.len())]
    }

    async fn one(
        &self,
        charge: &SharedAcquire<'_>,
        is_charged: bool,
        asked: &AcquireDeadline,
    ) -> Result<AcquireOutcome, CountsError> {
        let name = self.keys.client(charge.limit, charge.key);
        let server = self.server(&name);
        let link = server.link.clone();
        let charging = async {
            match charge.policy.counters() {
                Some(counters) => {
                    let counted = CountedAcquire {
                        link: &server.link,
                        name: &name,
                        counters,
                        now: (self.now)(),
                        timeout: self.timeout,
                        stayed: &self.stayed,
                    };
                    counted.charge(charge, is_charged, asked.age).await
                }
                None => {
                    let place = StateAddress {
                        link: server.link.clone(),
                        turns: server.turns.clone(),
                        name: name.clone(),
                        now: Arc::clone(&self.now),
                    };
                    let until = asked.begin_until;
                    self.swaps.charge(place, charge, is_charged, until).await
                }
            }
        };
        match timeout_at(asked.until, charging).await {
            Ok(judged) => judged.map_err(|failure| failure.into_counts_error(&place_of(&link))),
            Err(_) => Err(CountsError::Late {
                place: place_of(&link),
                source: Box::new(DeadlineError(self.timeout)),
            }),
        }
    }

    async fn all(
        &self,
        charges: &[SharedAcquire<'_>],
        age: Option<DurationUs>,
    ) -> Result<Vec<Verdict>, CountsError> {
        let asked = AcquireDeadline::now(self.timeout, age);
        // Refunds are never rejected, so behind all others none must ever be undone.
        let is_refund = |at: &usize| matches!(charges[*at].cost, Cost::Refund(_));
        let mut order: Vec<usize> = (0..charges.len()).collect();
        order.sort_by_key(is_refund);
        let mut all: Vec<(usize, Verdict, Verdict)> = Vec::with_capacity(charges.len());
        // Whoever leaves leaves these behind, and they are taken back.
        let mut charged: Vec<Acquired> = Vec::with_capacity(charges.len());
        let mut undone: Vec<JoinHandle<()>> = Vec::new();
        let mut is_admitted = true;
        for at in order {
            match self.one(&charges[at], is_admitted, &asked).await {
                Ok(judged) => {
                    charged.extend(judged.charged);
                    is_admitted &= judged.verdict.is_admitted();
                    if !is_admitted {
                        undone.extend(charged.drain(..).filter_map(Acquired::take_back));
                    }
                    all.push((at, judged.verdict, judged.without));
                }
                Err(error) => {
                    undone.extend(charged.drain(..).filter_map(Acquired::take_back));
                    asked.wait_for(undone).await;
                    return Err(error);
                }
            }
        }
        asked.wait_for(undone).await;
        charged.into_iter().for_each(Acquired::keep);
        all.sort_by_key(|(at, ..)| *at);
        let verdict = |(_, verdict, without): &(usize, Verdict, Verdict)| {
            if is_admitted || !verdict.is_admitted() {
                *verdict
            } else {
                *without
            }
        };
        Ok(all.iter().map(verdict).collect())
    }

    /// Whoever did not ask at the start must not be counted wrongly.
    fn check_all(&self, charges: &[SharedAcquire<'_>]) -> Result<(), CountsError> {
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
}

/// Until when a call may wait, and for what.
struct AcquireDeadline {
    /// How old at most is what a refund gives back, if that is known.
    age: Option<DurationUs>,
    /// Nobody waits for an answer after it.
    until: Instant,
    /// Whoever still waits for its turn then is told so.
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

    /// What is taken back while one waits is seen by whoever asks next. Later it is taken back all
    /// the same.
    async fn wait_for(&self, undone: Vec<JoinHandle<()>>) {
        for one in undone {
            if timeout_at(self.until, one).await.is_err() {
                return;
            }
        }
    }
}

/// The call has waited long enough.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} ms", .0.as_millis())]
struct DeadlineError(Duration);

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
        match policy.row().remembers {
            Remembers::Calls if calls > LOG_LONGEST => {}
            Remembers::Calls | Remembers::Counts | Remembers::Tokens | Remembers::Time => {
                return Ok(());
            }
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
            ("not_refunded", self.stayed.count()),
        ]
    }

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            self.check_all(charges)?;
            self.all(charges, None).await
        })
    }

    fn refund<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
        age: DurationUs,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            self.check_all(charges)?;
            self.all(charges, Some(age)).await
        })
    }
}

impl fmt::Debug for MemcachedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(|one| place_of(&one.link)).collect();
        write!(f, "MemcachedCounts({})", servers.join(", "))
    }
}
