//! Counts of calls that several nodes tell each other.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use anteroom_limit::policy::Needs;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime};
use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::sync::{Mutex as AsyncMutex, oneshot, watch};
use tokio::task::JoinHandle;

use crate::behind::{Phase, SUCCESSOR_PATIENCE};
use crate::board::{COUNTERS_MAX, CounterTable};
use crate::cell::WriterId;
use crate::event_counts::Tally;
use crate::failure::OpenError;
use crate::node::{Node, NodeSettings};
use crate::outlet::listen_at;
use crate::running::Running;
use crate::seal::Secret;
use anteroom_limit_store::clock::Now;

/// How long saying goodbye may take: some datagrams. Whoever is not heard to leave is noticed to be
/// gone.
const GOODBYE: Duration = Duration::from_secs(1);

/// Where a node listens, and whom it tells.
#[derive(Clone, Debug)]
pub struct GossipSettings {
    /// Where it listens, for UDP.
    pub listen: SocketAddr,
    /// Where the others reach it, if that is another address.
    pub advertise: Option<SocketAddr>,
    /// Some of the others; the rest is heard of from them. Names are looked up again and again.
    /// This node may be among them.
    pub peers: Vec<HostPort>,
    /// How long it collects news before it tells them.
    pub interval: Duration,
}

/// Counts that nodes tell each other.
///
/// A call is decided at once, by what is known here. Its count reaches all others within an
/// interval and the time that a datagram takes.
///
/// # What holds, and what does not
///
/// - A node never admits what it knows to be over the limit, and knows all that it admitted itself:
///   alone, it counts exactly.
/// - Several nodes let through too much by what they admit while they do not know of each other:
///   once a limit is used up, all that is offered within an interval and a datagram's way still
///   goes through; and never more than one whole limit at each node. A datagram that is lost adds
///   one interval, for changes are told three times; all is repeated within ten seconds and more.
/// - Nodes that cannot reach each other let through a whole limit each, as does one that has just
///   begun until it has heard the others: some intervals.
/// - What a node counted that leaves, or is killed, stays counted with the others till its time is
///   over (but for what it told nobody: an interval's calls of one that is killed). One that leaves
///   goes on telling what it counts ([`GossipCounts::close`]), and hears nothing meanwhile. If all
///   nodes are stopped at once all is forgotten.
/// - The nodes' clocks say what time it is. While they are apart by no more than
///   [`CLOCKS_APART_MAX`], what was said holds by a clock on the wall for windows that are shorter
///   by as much. Further apart, nodes count in different stretches of time, and each may let
///   through a whole limit; `clock_apart` among the events, and the log, tell it.
/// - A refund gives back what this very node has counted, and nothing else.
/// - Memory is bounded by [`COUNTERS_MAX`]; what a flood of clients does stands in
///   [`crate::CounterTable`]'s module.
///
/// [`CLOCKS_APART_MAX`]: anteroom_limit_store::clock::CLOCKS_APART_MAX
pub struct GossipCounts {
    board: Arc<Mutex<CounterTable>>,
    event_counts: Arc<Tally>,
    now: Now,
    address: Option<SocketAddr>,
    phase: watch::Sender<Phase>,
    /// Ends when the address is free.
    leaving: AsyncMutex<Option<oneshot::Receiver<()>>>,
    running: AsyncMutex<Option<JoinHandle<()>>>,
}

impl GossipCounts {
    /// Begins to listen, and to tell others. To be called within a runtime. An address that
    /// somebody else has is tried again and again, and the node counts alone meanwhile: so a
    /// successor begins before its predecessor has gone.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the address cannot be listened at for another reason.
    pub fn open(settings: &GossipSettings, secret: &Secret, now: Now) -> Result<Self, OpenError> {
        let listen = settings.listen;
        let (socket, bound) = match listen_at(listen).and_then(with_address) {
            Ok((socket, bound)) => (Ok(socket), bound),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                tracing::warn!(%listen, "the address is taken: this node counts alone until it is \
                                         free");
                (Err(listen), listen)
            }
            Err(source) => return Err(OpenError::Bind { listen, source }),
        };
        let address = settings.advertise.unwrap_or(bound);
        let me = WriterId(random()?.max(1));
        let board = Arc::new(Mutex::new(CounterTable::new(me, secret, COUNTERS_MAX)));
        let node_settings = NodeSettings {
            address,
            generation: now().0 / 1_000,
            interval: settings.interval,
            seed: random()?,
        };
        let node = Node::new(node_settings, secret.clone(), Arc::clone(&board));
        let counts = Self::of(board, Arc::clone(&now));
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

    /// Counts on this board, of which somebody else tells the others.
    #[doc(hidden)]
    #[must_use]
    pub fn on(board: Arc<Mutex<CounterTable>>, time: TestTime) -> Self {
        Self::of(board, Arc::new(move || time.now()))
    }

    fn of(board: Arc<Mutex<CounterTable>>, now: Now) -> Self {
        let event_counts = Arc::clone(&board.lock().event_counts);
        Self {
            board,
            event_counts,
            now,
            address: None,
            phase: watch::Sender::new(Phase::Here),
            leaving: AsyncMutex::default(),
            running: AsyncMutex::default(),
        }
    }

    /// Where the others reach this node.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Tells the others what they do not know yet, and that this node goes; its address is free
    /// then. What it counts from then on it goes on telling until [`Self::finish`], from another
    /// port; it hears nothing more.
    pub async fn close(&self) {
        self.phase.send_if_modified(|phase| {
            let is_here = *phase == Phase::Here;
            if is_here {
                *phase = Phase::Left;
            }
            is_here
        });
        if let Some(leaving) = self.leaving.lock().await.take() {
            // It ends by itself in any case.
            let _ = tokio::time::timeout(GOODBYE, leaving).await;
        }
    }

    /// Nothing more is counted here: tells the last of it. A successor at this node's address is
    /// told all that this node knows, as soon as it listens; that is waited for a moment. To be
    /// called after [`Self::close`].
    pub async fn finish(&self, has_successor: bool) {
        self.phase.send_replace(Phase::Over { has_successor });
        if let Some(running) = self.running.lock().await.take() {
            // As above.
            let _ = tokio::time::timeout(GOODBYE + SUCCESSOR_PATIENCE, running).await;
        }
    }

    /// In how long all that is kept of a client of a limit is forgotten.
    #[doc(hidden)]
    #[must_use]
    pub fn forgets_after(&self, limit: &str, key: CallKey) -> Option<DurationUs> {
        let board = self.board.lock();
        let name = board.names.client(limit, key);
        board.forgets_after(name, (self.now)())
    }

    /// Charges at once.
    ///
    /// # Errors
    ///
    /// [`CountsError::Refused`] if a limit cannot be kept here, which whoever had asked would know.
    fn decide(
        &self,
        charges: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Result<(), CountsError> {
        for charge in charges {
            if let Err(error) = self.check(charge.limit, charge.policy) {
                return Err(CountsError::Refused {
                    place: self.kind().to_owned(),
                    refusal: "cannot keep a limit of this algorithm",
                    remedy: "choose another algorithm or another store",
                    source: Box::new(error),
                });
            }
        }
        let now = (self.now)();
        self.board.lock().charge_all(charges, now, verdicts);
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

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        let mut verdicts = Vec::with_capacity(charges.len());
        let decided = self.decide(charges, &mut verdicts);
        Box::pin(std::future::ready(decided.map(|()| verdicts)))
    }

    fn charge_now(
        &self,
        charges: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        Some(self.decide(charges, verdicts))
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
