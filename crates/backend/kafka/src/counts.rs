//! Request counts that several nodes keep together over a log.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use anteroom_limit::policy::Needs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::clock::Now;
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts};
use parking_lot::Mutex;

use crate::counter_table::SLOTS_MAX;
use crate::heartbeats::UNAVAILABLE_AFTER;
use crate::link::{self, Link};
use crate::settings::{KafkaSettings, KafkaSetupError};
use crate::stats::NodeId;

/// Counts over Kafka.
///
/// A request is decided at once by the counts known here, and costs no round trip. Ten times a
/// second a node sends its absolute counts of each client to the topic `<prefix>-calls`. The nodes
/// share the partitions of that topic as one consumer group. The node that has a partition
/// publishes totals to `<prefix>-totals`, which all nodes read.
///
/// # Guarantees and limits
///
/// - **Late, not wrong.** A node does not see what others admitted since its last total. That is
///   the time until they send it (0.1 s), until it is read, until a total is published (0.1 s) and
///   read. That much more than the limit may be admitted, for each other node never more than the
///   limit itself. Late counts still count, so the next windows are right. Under load it takes
///   longer.
/// - **Nothing is counted twice or lost** for good: counts are absolute and each node has its own.
///   So messages may come twice, late or in another order, from two aggregators at once, or from
///   one that has restarted. Reports that do not come back are sent again.
/// - **Counts that a node had not sent when it crashed** are lost: a tenth of a second of its
///   requests.
/// - **Without brokers** a node decides by what it last received and what it counts itself, for
///   [`UNAVAILABLE_AFTER`]. Then it counts as cut off, and requests are
///   [`CountsError::Unreachable`]. It continues once its messages have come back for some five
///   seconds. If only some partitions are unavailable, this holds for their clients only.
/// - **A node that has just started** has not read the totals, and counts alone until it has. The
///   same holds for the first client whose window is longer than [`LookBack`](crate::LookBack)
///   says, until all totals are read again.
/// - **Clocks** are those of the nodes: two nodes whose clocks differ by a second count a second of
///   each other's requests in another sub-window.
/// - Only algorithms that count in windows are supported: there is no compare-and-swap here.
/// - Memory is bounded: 500,000 slots of clients are known. Further clients share an overflow entry
///   with others of the same limit (`overflow`).
pub struct KafkaCounts {
    link: Arc<Link>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl KafkaCounts {
    /// Starts to connect in its own threads and returns at once.
    ///
    /// # Errors
    ///
    /// [`KafkaSetupError`] if the settings are invalid. Unavailable brokers are no error.
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

    /// Sends pending reports, leaves the group and closes all connections; that takes up to some
    /// seconds. Requests that come meanwhile or later are decided as without brokers. Those counted
    /// after the last report are not reported.
    pub fn close(&self) {
        join(self.stop_threads());
    }

    /// Signals the threads to end and returns them.
    fn stop_threads(&self) -> Vec<JoinHandle<()>> {
        self.link.stop();
        std::mem::take(&mut *self.threads.lock())
    }

    fn decide(
        &self,
        acquires: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Result<(), CountsError> {
        if self.link.ended() > 0 {
            return Err(self.unreachable(NoDecision::Ended));
        }
        for counters in acquires
            .iter()
            .filter_map(|acquire| acquire.policy.counters())
        {
            self.link.look_back_for(counters.valid_for());
        }
        let now = self.link.now();
        let at = self.link.at();
        let mut node = self.link.node();
        let mut each = acquires.iter();
        if each.any(|acquire| node.is_away(acquire.limit, acquire.key, at)) {
            drop(node);
            return Err(self.unreachable(NoDecision::CutOff));
        }
        let is_counted = node.acquire(acquires, now, verdicts);
        drop(node);
        if is_counted {
            return Ok(());
        }
        Err(self.rejected(acquires))
    }

    fn unreachable(&self, reason: NoDecision) -> CountsError {
        CountsError::Unreachable {
            store_name: self.link.store_name().to_owned(),
            source: Box::new(reason),
        }
    }

    /// Returns the error of a limit that was not checked at the start.
    fn rejected(&self, acquires: &[SharedAcquire<'_>]) -> CountsError {
        let mut checks = acquires.iter();
        let unfit = checks.find_map(|acquire| self.check(acquire.limit, acquire.policy).err());
        CountsError::Rejected {
            store_name: self.link.store_name().to_owned(),
            refusal: "cannot keep a limit of this algorithm",
            remedy: "choose an algorithm that counts in windows",
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
            tracing::error!("a thread of the kafka client has panicked");
        }
    }
}

/// Reason why a request was not decided.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum NoDecision {
    #[error("reports of this node have not come back for {} s", UNAVAILABLE_AFTER.as_secs())]
    CutOff,
    #[error("a thread of the kafka client has ended")]
    Ended,
    #[error("the algorithm needs more than sums")]
    Unfit,
}

impl SharedCounts for KafkaCounts {
    fn kind(&self) -> &'static str {
        "kafka"
    }

    fn offers(&self) -> Needs {
        Needs::AtomicAdd
    }

    fn is_unavailable(&self, limit: &str, key: ClientKey) -> bool {
        let at = self.link.at();
        self.link.ended() > 0 || self.link.node().is_away(limit, key, at)
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let mut events = self.link.node().events();
        events.push(("undelivered", self.link.undelivered()));
        events.push(("thread_ended", self.link.ended()));
        events
    }

    /// Closes the client, like [`KafkaCounts::close`].
    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let threads = self.stop_threads();
            let joining = tokio::task::spawn_blocking(move || join(threads));
            if joining.await.is_err() {
                tracing::error!("the kafka client was not closed");
            }
        })
    }

    fn acquire<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let mut verdicts = Vec::with_capacity(acquires.len());
            self.decide(acquires, &mut verdicts)?;
            Ok(verdicts)
        })
    }

    fn try_acquire_now(
        &self,
        acquires: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        Some(self.decide(acquires, verdicts))
    }
}

/// Signals threads that were not joined to end.
impl Drop for KafkaCounts {
    fn drop(&mut self) {
        self.link.stop();
    }
}

impl fmt::Debug for KafkaCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KafkaCounts({})", self.link.store_name())
    }
}
