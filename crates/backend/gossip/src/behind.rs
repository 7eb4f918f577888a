//! What does a node do that has left, and still counts?
//!
//! Its address belongs to its successor by then, if it has one; it serves what is open. What it
//! counts meanwhile it tells from another port: those who were there when it left, and whoever has
//! its address now. It hears nobody any more. Counters say themselves who counted, so it does not
//! matter where they come from; the others speak for it when it is gone.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::event_counts::{Event, Tally};
use crate::node::Node;
use crate::outlet::{Outlet, listen_at};
use anteroom_limit_store::clock::Now;

/// For how long it is tried at the end to tell a successor, who listens some tenths of a second
/// after the address is free.
pub(crate) const SUCCESSOR_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether it listens.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Between datagrams that are sent at once, so that whoever hears them can keep up.
const BREATH: Duration = Duration::from_millis(2);

/// How far a node has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// It counts with the others.
    Here,
    /// It has left, and counts what it still serves.
    Left,
    /// It counts nothing more.
    Over { has_successor: bool },
}

/// A node that has left.
pub(crate) struct DepartedNode {
    pub(crate) node: Node,
    pub(crate) now: Now,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) event_counts: Arc<Tally>,
}

impl DepartedNode {
    /// Until nothing more is counted.
    pub(crate) async fn run(mut self, listened_at: SocketAddr) {
        let socket = match listen_at(SocketAddr::new(listened_at.ip(), 0)) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(%error, "what is still counted here cannot be told to other nodes");
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
                    self.node.tell_behind((self.now)());
                    outlet.send(self.node.take_outbox()).await;
                }
            }
        };
        self.node.tell_last((self.now)());
        outlet.send(self.node.take_outbox()).await;
        if has_successor {
            self.tell_successor(listened_at).await;
        }
    }

    /// Tells all to whoever has this node's address, as soon as somebody has.
    async fn tell_successor(&self, listened_at: SocketAddr) {
        let until = Instant::now() + SUCCESSOR_PATIENCE;
        let Some(socket) = connect(listened_at.ip(), self.node.address()).await else {
            return;
        };
        while !self.tell_all(&socket, until).await {
            if Instant::now() >= until {
                tracing::warn!(
                    "no successor was told all in time: what was counted last may be known to the \
                     other nodes alone"
                );
                return;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Whether somebody was there all the time. The system of a machine where nobody listens says
    /// so; what is far may not.
    async fn tell_all(&self, socket: &UdpSocket, until: Instant) -> bool {
        let mut rest = usize::MAX;
        while rest > 0 {
            let (datagrams, left) = self.node.tell_all((self.now)(), rest);
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
                sleep(BREATH).await;
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

/// Whether there is a successor.
async fn over(phase: &mut watch::Receiver<Phase>) -> bool {
    let over = phase.wait_for(|phase| matches!(phase, Phase::Over { .. }));
    // If nobody is left who could say so nobody counts here either.
    over.await.is_ok_and(|phase| {
        matches!(
            *phase,
            Phase::Over {
                has_successor: true
            }
        )
    })
}
