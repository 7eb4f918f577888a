//! Request counts that several nodes exchange with each other.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use anteroom_limit::policy::Needs;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime};
use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::sync::{Mutex as AsyncMutex, oneshot, watch};
use tokio::task::JoinHandle;

use crate::cell::WriterId;
use crate::counter_table::{COUNTERS_MAX, CounterTable};
use crate::departed::{Phase, SUCCESSOR_TIMEOUT};
use crate::event_counts::EventCounts;
use crate::failure::OpenError;
use crate::node::{Node, NodeSettings};
use crate::outlet::listen_at;
use crate::running::Running;
use crate::seal::Secret;
use anteroom_limit_store::clock::Now;

/// Longest time to send the goodbye, which takes a few datagrams. Peers also notice a node that
/// leaves without one.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Addresses and interval of a node.
#[derive(Clone, Debug)]
pub struct GossipSettings {
    /// Address to listen at, for UDP.
    pub listen: SocketAddr,
    /// Address at which the others reach the node, if it is another one.
    pub advertise: Option<SocketAddr>,
    /// Some of the peers; they name the rest. Names are resolved again and again. This node may be
    /// among them.
    pub peers: Vec<HostPort>,
    /// Time for which the node collects changes before it sends them.
    pub interval: Duration,
}

/// Request counts that nodes exchange with each other.
///
/// A request is decided at once, by the counts known here. Its count reaches all peers within an
/// interval and the time that a datagram takes.
///
/// # Guarantees and limits
///
/// - A node never admits a request that it knows to be over the limit, and knows all that it
///   admitted itself: alone, it counts exactly.
/// - Several nodes admit too much by what they admit before they know of each other. Once a limit
///   is used up, everything offered within one interval and a datagram's trip is still admitted,
///   and never more than one whole limit at each node. A lost datagram adds one interval, as
///   changes are sent three times. All counters are repeated within about ten seconds.
/// - Nodes that cannot reach each other admit a whole limit each. So does a node that has just
///   started, until it has received the counts of the others: some intervals.
/// - The requests that a node counted before it leaves or is killed stay counted with its peers
///   until their window ends. Only those that it did not report are lost: one interval's of a node
///   that is killed. A node that leaves continues to report what it counts
///   ([`GossipCounts::close`]), and receives nothing meanwhile. If all nodes stop at once, all
///   counts are lost.
/// - Windows follow the nodes' clocks. While these differ by no more than [`CLOCKS_APART_MAX`], the
///   guarantees hold by a wall clock for windows that are shorter by that difference. Beyond that,
///   nodes count in different sub-windows, and each may admit a whole limit; the event `clock_skew`
///   and the log report it.
/// - A refund returns only what this node has counted itself.
/// - Memory is bounded by [`COUNTERS_MAX`]; the module of [`crate::CounterTable`] describes what a
///   flood of clients does.
///
/// [`CLOCKS_APART_MAX`]: anteroom_limit_store::clock::CLOCKS_APART_MAX
pub struct GossipCounts {
    table: Arc<Mutex<CounterTable>>,
    event_counts: Arc<EventCounts>,
    now: Now,
    address: Option<SocketAddr>,
    phase: watch::Sender<Phase>,
    /// Resolves when the address is free.
    leaving: AsyncMutex<Option<oneshot::Receiver<()>>>,
    running: AsyncMutex<Option<JoinHandle<()>>>,
}

impl GossipCounts {
    /// Starts to listen and to report to peers; requires a runtime. An address that another process
    /// has is tried again and again, and the node counts alone meanwhile: so a successor can start
    /// before its predecessor has ended.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the address cannot be bound for another reason.
    pub fn open(settings: &GossipSettings, secret: &Secret, now: Now) -> Result<Self, OpenError> {
        let listen = settings.listen;
        let (socket, bound) = match listen_at(listen).and_then(with_address) {
            Ok((socket, bound)) => (Ok(socket), bound),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                tracing::warn!(%listen, "address in use: this node counts alone until it is \
                                         free");
                (Err(listen), listen)
            }
            Err(source) => return Err(OpenError::Bind { listen, source }),
        };
        let address = settings.advertise.unwrap_or(bound);
        let me = WriterId(random()?.max(1));
        let table = Arc::new(Mutex::new(CounterTable::new(me, secret, COUNTERS_MAX)));
        let node_settings = NodeSettings {
            address,
            generation: now().0 / 1_000,
            interval: settings.interval,
            seed: random()?,
        };
        let node = Node::new(node_settings, secret.clone(), Arc::clone(&table));
        let counts = Self::of(table, Arc::clone(&now));
        let (address_is_taken, leaving) = oneshot::channel();
        let running = Running {
            socket,
            node,
            peers: settings.peers.clone(),
            now,
            phase: counts.phase.subscribe(),
            address_is_taken,
            event_counts: Arc::clone(&counts.event_counts),
        };
        let running = tokio::spawn(running.run());
        Ok(Self {
            address: Some(address),
            leaving: AsyncMutex::new(Some(leaving)),
            running: AsyncMutex::new(Some(running)),
            ..counts
        })
    }

    /// Counts in this table; the caller exchanges it with other nodes.
    #[doc(hidden)]
    #[must_use]
    pub fn on(table: Arc<Mutex<CounterTable>>, time: TestTime) -> Self {
        Self::of(table, Arc::new(move || time.now()))
    }

    fn of(table: Arc<Mutex<CounterTable>>, now: Now) -> Self {
        let event_counts = Arc::clone(&table.lock().event_counts);
        Self {
            table,
            event_counts,
            now,
            address: None,
            phase: watch::Sender::new(Phase::Here),
            leaving: AsyncMutex::default(),
            running: AsyncMutex::default(),
        }
    }

    /// Returns the address at which the others reach this node.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Sends pending changes to the peers and leaves; the address is free then. Requests counted
    /// later are reported from another port until [`Self::finish`]; the node receives nothing more.
    pub async fn close(&self) {
        self.phase.send_if_modified(|phase| {
            let is_here = *phase == Phase::Here;
            if is_here {
                *phase = Phase::Left;
            }
            is_here
        });
        if let Some(leaving) = self.leaving.lock().await.take() {
            // The task ends without this wait, too.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, leaving).await;
        }
    }

    /// Reports the last counts. A successor at this node's address receives all that this node
    /// knows, as soon as it listens; this waits for it a moment. To be called after
    /// [`Self::close`].
    pub async fn finish(&self, has_successor: bool) {
        self.phase.send_replace(Phase::Over { has_successor });
        if let Some(running) = self.running.lock().await.take() {
            // The task ends without this wait, too.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT + SUCCESSOR_TIMEOUT, running).await;
        }
    }

    /// Returns the time until all counters of a client of a limit are forgotten.
    #[doc(hidden)]
    #[must_use]
    pub fn forgets_after(&self, limit: &str, key: ClientKey) -> Option<DurationUs> {
        let table = self.table.lock();
        let name = table.names.client(limit, key);
        table.forgets_after(name, (self.now)())
    }

    /// Acquires at once.
    ///
    /// # Errors
    ///
    /// [`CountsError::Rejected`] if a limit cannot be kept here; [`SharedCounts::check`] tells that
    /// beforehand.
    fn decide(
        &self,
        acquires: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Result<(), CountsError> {
        for acquire in acquires {
            if let Err(error) = self.check(acquire.limit, acquire.policy) {
                return Err(CountsError::Rejected {
                    store_name: self.kind().to_owned(),
                    refusal: "cannot keep a limit of this algorithm",
                    remedy: "choose another algorithm or another store",
                    source: Box::new(error),
                });
            }
        }
        let now = (self.now)();
        self.table.lock().acquire_all(acquires, now, verdicts);
        Ok(())
    }
}

impl SharedCounts for GossipCounts {
    fn kind(&self) -> &'static str {
        "gossip"
    }

    fn offers(&self) -> Needs {
        Needs::AtomicAdd
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        self.event_counts.words()
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }

    fn finish(&self, has_successor: bool) -> BoxFuture<'_, ()> {
        Box::pin(Self::finish(self, has_successor))
    }

    fn acquire<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        let mut verdicts = Vec::with_capacity(acquires.len());
        let decided = self.decide(acquires, &mut verdicts);
        Box::pin(std::future::ready(decided.map(|()| verdicts)))
    }

    fn try_acquire_now(
        &self,
        acquires: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        Some(self.decide(acquires, verdicts))
    }
}

impl fmt::Debug for GossipCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GossipCounts({:?})", self.address)
    }
}

fn with_address(socket: UdpSocket) -> io::Result<(UdpSocket, SocketAddr)> {
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

fn random() -> Result<u64, OpenError> {
    getrandom::u64().map_err(|source| OpenError::Random { source })
}
