//! Task that drives a node: its socket, its timers, and the lookup of the configured peers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::departed::{DepartedNode, Phase};
use crate::event_counts::{Event, EventCounts};
use crate::message::DATAGRAM_LARGEST;
use crate::node::Node;
use crate::outlet::{Outlet, listen_at};
use anteroom_limit_store::clock::Now;

/// Period of the lookup of configured peers, which the node announces itself to if they are
/// missing. A node that starts finds the others within this time, and so do the parts of a network
/// after a partition.
const LOOK_UP_PERIOD: Duration = Duration::from_secs(2);
/// Pause after a receive error.
const RECEIVE_AGAIN: Duration = Duration::from_millis(100);

/// Period of the attempts to bind an address that another process still has.
const LISTEN_AGAIN: Duration = Duration::from_millis(50);

/// Node with its socket.
pub(crate) struct Running {
    /// Bound socket, or the address to listen at as soon as it is free.
    pub(crate) socket: Result<UdpSocket, SocketAddr>,
    pub(crate) node: Node,
    pub(crate) peers: Vec<HostPort>,
    pub(crate) now: Now,
    pub(crate) phase: watch::Receiver<Phase>,
    /// Dropped when the address is free.
    pub(crate) address_is_taken: oneshot::Sender<()>,
    pub(crate) event_counts: Arc<EventCounts>,
}

impl Running {
    /// Runs the node to its end.
    pub(crate) async fn run(mut self) {
        let socket = match self.socket {
            Ok(socket) => socket,
            Err(listen) => tokio::select! {
                () = left(&mut self.phase) => return,
                socket = listen_when_free(listen) => socket,
            },
        };
        let listened_at = socket.local_addr();
        let event_counts = Arc::clone(&self.event_counts);
        let driving = Driving {
            outlet: Outlet {
                socket,
                event_counts,
            },
            node: self.node,
            now: Arc::clone(&self.now),
        };
        let node = driving.run(self.peers, &mut self.phase).await;
        drop(self.address_is_taken);
        let behind = DepartedNode {
            node,
            now: self.now,
            phase: self.phase,
            event_counts: self.event_counts,
        };
        if let Ok(listened_at) = listened_at {
            behind.run(listened_at).await;
        }
    }
}

/// Node that listens.
struct Driving {
    outlet: Outlet,
    node: Node,
    now: Now,
}

impl Driving {
    /// Runs the node until it has left and its address is free.
    async fn run(mut self, peers: Vec<HostPort>, phase: &mut watch::Receiver<Phase>) -> Node {
        let began = Instant::now();
        if !peers.is_empty() {
            self.node.expect_peers(began.elapsed());
        }
        let (found, mut addresses) = mpsc::channel(1);
        let looking_up = tokio::spawn(look_up(peers, found));
        // One more byte shows that a datagram is too large, not truncated.
        let mut buffer = [0; DATAGRAM_LARGEST + 1];
        loop {
            let next = began + self.node.next_at();
            tokio::select! {
                () = left(phase) => break,
                received = self.outlet.socket.recv_from(&mut buffer) => match received {
                    Ok((length, from)) => self.receive(began.elapsed(), &buffer[..length], from),
                    Err(error) => {
                        tracing::debug!(%error, "cannot receive from peers");
                        sleep(RECEIVE_AGAIN).await;
                    }
                },
                Some(address) = addresses.recv() => self.node.announce(began.elapsed(), address),
                () = sleep_until(next) => {
                    let by_clock = (self.now)();
                    self.node.poll(began.elapsed(), by_clock);
                }
            }
            self.outlet.send(self.node.take_outbox()).await;
        }
        looking_up.abort();
        let by_clock = (self.now)();
        self.node.leave(began.elapsed(), by_clock);
        self.outlet.send(self.node.take_outbox()).await;
        self.node
    }

    fn receive(&mut self, now: Duration, datagram: &[u8], from: SocketAddr) {
        let by_clock = (self.now)();
        let is_ours = self.node.handle_datagram(now, by_clock, datagram);
        if !is_ours && self.outlet.event_counts.of(Event::DatagramRejected) == 1 {
            tracing::warn!(%from, "a datagram that is not sealed with our secret is rejected; \
                                   further ones are not logged");
        }
    }
}

/// Binds the address as soon as the other process releases it, usually a predecessor that is being
/// replaced.
async fn listen_when_free(address: SocketAddr) -> UdpSocket {
    loop {
        sleep(LISTEN_AGAIN).await;
        match listen_at(address) {
            Ok(socket) => {
                tracing::info!(%address, "address free: this node counts with its peers from \
                                          now on");
                return socket;
            }
            Err(error) => tracing::debug!(%error, %address, "address still in use"),
        }
    }
}

/// Waits until the node leaves or its handle is dropped.
async fn left(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase != Phase::Here).await;
}

/// Resolves the addresses of peers, again and again: the hosts behind a name change.
async fn look_up(peers: Vec<HostPort>, found: mpsc::Sender<SocketAddr>) {
    loop {
        for peer in &peers {
            let addresses = tokio::net::lookup_host((peer.host.as_str(), peer.port)).await;
            match addresses {
                Ok(addresses) => {
                    for address in addresses {
                        if found.send(address).await.is_err() {
                            return;
                        }
                    }
                }
                Err(error) => tracing::debug!(%error, %peer, "cannot resolve a peer"),
            }
        }
        sleep(LOOK_UP_PERIOD).await;
    }
}
