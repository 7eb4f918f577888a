//! Drives a node: its socket, its timers, and the names of those it begins with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::behind::{DepartedNode, Phase};
use crate::event_counts::{Event, Tally};
use crate::message::DATAGRAM_LARGEST;
use crate::node::Node;
use crate::outlet::{Outlet, listen_at};
use anteroom_limit_store::clock::Now;

/// How often the configured peers are looked up, and those are spoken to that are not there: so a
/// node that starts finds the others within that, and parts of a network that was torn find each
/// other.
const LOOK_UP_PERIOD: Duration = Duration::from_secs(2);
/// How long nothing is received after the system said that it cannot.
const RECEIVE_AGAIN: Duration = Duration::from_millis(100);

/// How often an address is tried that somebody else still has.
const LISTEN_AGAIN: Duration = Duration::from_millis(50);

/// A node with its socket.
pub(crate) struct Running {
    /// Or where to listen, as soon as that is free.
    pub(crate) socket: Result<UdpSocket, SocketAddr>,
    pub(crate) node: Node,
    pub(crate) peers: Vec<HostPort>,
    pub(crate) now: Now,
    pub(crate) phase: watch::Receiver<Phase>,
    /// Dropped when the address is free.
    pub(crate) address_is_taken: oneshot::Sender<()>,
    pub(crate) event_counts: Arc<Tally>,
}

impl Running {
    /// Until it is over.
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

/// A node that listens.
struct Driving {
    outlet: Outlet,
    node: Node,
    now: Now,
}

impl Driving {
    /// Until it has left, and its address is free.
    async fn run(mut self, peers: Vec<HostPort>, phase: &mut watch::Receiver<Phase>) -> Node {
        let began = Instant::now();
        if !peers.is_empty() {
            self.node.expect_others(began.elapsed());
        }
        let (found, mut addresses) = mpsc::channel(1);
        let looking_up = tokio::spawn(look_up(peers, found));
        // One byte more, so that a datagram that is too large is not taken for one that was cut.
        let mut buffer = [0; DATAGRAM_LARGEST + 1];
        loop {
            let next = began + self.node.next_at();
            tokio::select! {
                () = left(phase) => break,
                received = self.outlet.socket.recv_from(&mut buffer) => match received {
                    Ok((length, from)) => self.receive(began.elapsed(), &buffer[..length], from),
                    Err(error) => {
                        tracing::debug!(%error, "cannot receive what other nodes tell");
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
        if !is_ours && self.outlet.event_counts.of(Event::DatagramRefused) == 1 {
            tracing::warn!(%from, "a datagram that is not sealed with our secret is refused; no \
                                   other one is told of here");
        }
    }
}

/// Listens there as soon as whoever has the address lets go of it: a predecessor that hands over,
/// as a rule.
async fn listen_when_free(address: SocketAddr) -> UdpSocket {
    loop {
        sleep(LISTEN_AGAIN).await;
        match listen_at(address) {
            Ok(socket) => {
                tracing::info!(%address, "the address is free: this node counts with others from \
                                          now on");
                return socket;
            }
            Err(error) => tracing::debug!(%error, %address, "the address is not free yet"),
        }
    }
}

/// Until somebody says that it leaves, or nobody is left who could.
async fn left(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase != Phase::Here).await;
}

/// Finds the addresses of peers, again and again: behind a name there may be others by now.
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
                Err(error) => tracing::debug!(%error, %peer, "cannot look up another node"),
            }
        }
        sleep(LOOK_UP_PERIOD).await;
    }
}
