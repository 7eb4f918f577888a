//! Node that has left and still counts the requests that it serves.
//!
//! Its address belongs to its successor by then, if it has one. It serves open requests and reports
//! their counts from another port: to the peers it had when it left, and to the process at its
//! address. It receives nothing more. Counters name their writers, so it does not matter where they
//! come from. The peers report its counts once it has ended.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::event_counts::{Event, EventCounts};
use crate::node::Node;
use crate::outlet::{Outlet, listen_at};
use anteroom_limit_store::clock::Now;

/// Longest time to wait for a successor, which listens some tenths of a second after the address is
/// free.
pub(crate) const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(2);
/// Period of the attempts to reach the successor.
const RETRY_PERIOD: Duration = Duration::from_millis(20);
/// Pause between bursts of datagrams, so that the receiver can keep up.
const SEND_PAUSE: Duration = Duration::from_millis(2);

/// Phase of a node's shutdown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// The node counts with its peers.
    Here,
    /// The node has left and counts what it still serves.
    Left,
    /// The node counts nothing more.
    Over { has_successor: bool },
}

/// Node that has left.
pub(crate) struct DepartedNode {
    pub(crate) node: Node,
    pub(crate) now: Now,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) event_counts: Arc<EventCounts>,
}

impl DepartedNode {
    /// Reports counts until nothing more is counted.
    pub(crate) async fn run(mut self, listened_at: SocketAddr) {
        let socket = match listen_at(SocketAddr::new(listened_at.ip(), 0)) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(%error, "late counts cannot be reported to other nodes");
                return;
            }
        };
        let event_counts = Arc::clone(&self.event_counts);
        let outlet = Outlet {
            socket,
            event_counts,
        };
        let interval = self.node.interval();
        let has_successor = loop {
            tokio::select! {
                has_successor = over(&mut self.phase) => break has_successor,
                () = sleep(interval) => {
                    self.node.report_departed((self.now)());
                    outlet.send(self.node.take_outbox()).await;
                }
            }
        };
        self.node.report_last((self.now)());
        outlet.send(self.node.take_outbox()).await;
        if has_successor {
            self.report_to_successor(listened_at).await;
        }
    }

    /// Reports all counters to the process at this node's address, as soon as there is one.
    async fn report_to_successor(&self, listened_at: SocketAddr) {
        let until = Instant::now() + SUCCESSOR_TIMEOUT;
        let Some(socket) = connect(listened_at.ip(), self.node.address()).await else {
            return;
        };
        while !self.report_all(&socket, until).await {
            if Instant::now() >= until {
                tracing::warn!(
                    "no successor received all counts in time: the last ones may be known to the \
                     other nodes only"
                );
                return;
            }
            sleep(RETRY_PERIOD).await;
        }
    }

    /// Sends all counters and returns whether a process listened all the time. A local system
    /// reports that no process listens; a remote one may not.
    async fn report_all(&self, socket: &UdpSocket, until: Instant) -> bool {
        let mut rest = usize::MAX;
        while rest > 0 {
            let (datagrams, left) = self.node.report_all((self.now)(), rest);
            rest = left;
            for datagram in datagrams {
                let sent = socket.send(&datagram).await;
                if sent.is_err() || !matches!(socket.take_error(), Ok(None)) {
                    return false;
                }
                self.event_counts.count(Event::DatagramSent);
            }
            if rest > 0 {
                if Instant::now() >= until {
                    return false;
                }
                sleep(SEND_PAUSE).await;
            }
        }
        true
    }
}

async fn connect(from: IpAddr, to: SocketAddr) -> Option<UdpSocket> {
    let socket = listen_at(SocketAddr::new(from, 0)).ok()?;
    socket.connect(to).await.ok()?;
    Some(socket)
}

/// Waits for the end of the node and returns whether it has a successor.
async fn over(phase: &mut watch::Receiver<Phase>) -> bool {
    let over = phase.wait_for(|phase| matches!(phase, Phase::Over { .. }));
    // If the sender is gone, nothing is counted here any more.
    over.await.is_ok_and(|phase| {
        matches!(
            *phase,
            Phase::Over {
                has_successor: true
            }
        )
    })
}
