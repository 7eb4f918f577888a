//! Counts of calls that several nodes keep over a log together.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use anteroom_limit::policy::Needs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::clock::Now;
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts};
use parking_lot::Mutex;

use crate::beats::AWAY_AFTER;
use crate::board::SLOTS_MAX;
use crate::link::{self, Link};
use crate::settings::{KafkaSettings, KafkaSetupError};
use crate::stats::NodeId;

/// Counts over Kafka.
///
/// A call is decided at once by what is known here, and costs no round trip. Ten times a second a
/// node tells to the topic `<prefix>-calls` how much it has admitted of each client, in absolute
/// figures; the nodes share the partitions of that topic as one consumer group, and whoever has one
/// publishes totals to `<prefix>-totals`, which all nodes read.
///
/// # What holds, and what does not
///
/// - **Late, not wrong.** A node does not see what others admitted since its last total: what they
///   do until they tell it (0.1 s), until it is read, until a total is published (0.1 s) and read.
///   That much more than the limit may pass, for each of the other nodes never more than the limit
///   itself. When that is known all of it counts, so the next windows are right. Under load it
///   takes longer.
/// - **Nothing is counted twice or lost** for good: figures are absolute and each node's own, so
///   messages may come twice, late or in another order, from two aggregators at once, or from one
///   that begins anew. What does not come back is told again.
/// - **What a node had not told when it crashed** is not counted any more: a tenth of a second of
///   its calls.
/// - **Without brokers** a node goes on from what it last heard and what it counts itself, for
///   [`AWAY_AFTER`], and then knows itself to be away: calls are [`CountsError::Unreachable`]. It
///   goes on when what it tells has come back for some five seconds. Where only some partitions are
///   away, this is so for the clients whose partition it is, and for no others.
/// - **A node that has just started** has not heard the totals, and counts alone until it has. So
///   it does for whoever is the first to count for longer than [`LookBack`](crate::LookBack) says,
///   until all totals are read once more.
/// - **Clocks** are those of the nodes: two that are a second apart see a second of each other's
///   calls in another stretch.
/// - Only algorithms that count in stretches of time can be kept: nobody else's state is swapped
///   here.
/// - Memory is bounded: 500,000 stretches of clients are known, and whoever finds no place is
///   counted together with others of the same limit (`crowded`), never not at all.
pub struct KafkaCounts {
    link: Arc<Link>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl KafkaCounts {
    /// Starts to connect, in threads of its own, and waits for nothing.
    ///
    /// # Errors
    ///
    /// [`KafkaSetupError`] if the settings cannot be right. Brokers that are away are no error.
    ///
    /// # Panics
    ///
    /// If the system has no random bytes.
    pub fn open(settings: KafkaSettings, now: Now) -> Result<Self, KafkaSetupError> {
        settings.check()?;
        let mut id = [0; 8];
        getrandom::fill(&mut id).expect("the system has random bytes");
        let id = NodeId(u64::from_be_bytes(id));
        let (link, threads) = link::start(settings, id, SLOTS_MAX, now)?;
        Ok(Self {
            link,
            threads: Mutex::new(threads),
        })
    }

    /// Tells what is still to be told, leaves the group and ends all connections; that takes up to
    /// some seconds. Calls that come meanwhile, or later, are decided by what is known here, as
    /// without brokers; nobody is told of those that come after the last was told.
    pub fn close(&self) {
        join(self.stopped());
    }

    /// Tells the threads to end.
    fn stopped(&self) -> Vec<JoinHandle<()>> {
        self.link.stop();
        std::mem::take(&mut *self.threads.lock())
    }

    fn decide(
        &self,
        charges: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Result<(), CountsError> {
        if self.link.ended() > 0 {
            return Err(self.unreachable(NoDecision::Ended));
        }
        for counters in charges.iter().filter_map(|charge| charge.policy.counters()) {
            self.link.look_back_for(counters.matters_for());
        }
        let now = self.link.now();
        let at = self.link.at();
        let mut node = self.link.node();
        let mut asked = charges.iter();
        if asked.any(|charge| node.is_away(charge.limit, charge.key, at)) {
            drop(node);
            return Err(self.unreachable(NoDecision::Silent));
        }
        let is_counted = node.charge(charges, now, verdicts);
        drop(node);
        if is_counted {
            return Ok(());
        }
        Err(self.refused(charges))
    }

    fn unreachable(&self, why: NoDecision) -> CountsError {
        CountsError::Unreachable {
            place: self.link.place().to_owned(),
            source: Box::new(why),
        }
    }

    /// Whoever did not ask at the start must not be counted wrongly.
    fn refused(&self, charges: &[SharedAcquire<'_>]) -> CountsError {
        let mut checks = charges.iter();
        let unfit = checks.find_map(|charge| self.check(charge.limit, charge.policy).err());
        CountsError::Refused {
            place: self.link.place().to_owned(),
            refusal: "cannot count by this algorithm",
            remedy: "take one that counts in windows",
            source: match unfit {
                Some(error) => Box::new(error),
                None => Box::new(NoDecision::Unfit),
            },
        }
    }
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        if thread.join().is_err() {
            tracing::error!("a thread of the counts over kafka has panicked");
        }
    }
}

/// Why a call was not decided.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum NoDecision {
    #[error("what this node told has not come back for {} s", AWAY_AFTER.as_secs())]
    Silent,
    #[error("a thread that counts depend on has ended")]
    Ended,
    #[error("it needs more than sums")]
    Unfit,
}

impl SharedCounts for KafkaCounts {
    fn kind(&self) -> &'static str {
        "kafka"
    }

    fn offers(&self) -> Needs {
        Needs::AtomicAdd
    }

    fn is_away(&self, limit: &str, key: CallKey) -> bool {
        let at = self.link.at();
        self.link.ended() > 0 || self.link.node().is_away(limit, key, at)
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let mut events = self.link.node().events();
        events.push(("undelivered", self.link.undelivered()));
        events.push(("thread_ended", self.link.ended()));
        events
    }

    /// As [`KafkaCounts::close`].
    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let threads = self.stopped();
            let joining = tokio::task::spawn_blocking(move || join(threads));
            if joining.await.is_err() {
                tracing::error!("counts over kafka were not closed");
            }
        })
    }

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let mut verdicts = Vec::with_capacity(charges.len());
            self.decide(charges, &mut verdicts)?;
            Ok(verdicts)
        })
    }

    fn charge_now(
        &self,
        charges: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        Some(self.decide(charges, verdicts))
    }
}

/// Threads that nobody has waited for end by themselves.
impl Drop for KafkaCounts {
    fn drop(&mut self) {
        self.link.stop();
    }
}

impl fmt::Debug for KafkaCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KafkaCounts({})", self.link.place())
    }
}
