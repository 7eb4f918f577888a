//! Socket of a node, and sending with a timeout.
//!
//! A node sends much at once: its changes and a part of all counters, to each peer. If the system's
//! send buffer is full, the node waits, but only briefly: a late message is better sent anew.
//! Datagrams that cannot be sent are counted.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use crate::event_counts::{Event, EventCounts};
use crate::node::Outgoing;

/// Requested size of the receive and send buffers. Linux gives no more than `net.core.rmem_max`,
/// which is some 90 datagrams by default, and effectively twice that. This size holds what 25 nodes
/// send in an interval in which each has as much to send as it may.
const BUFFER_BYTES: usize = 4 << 20;
/// Longest time until the system has accepted everything that a node sends at once: half of the
/// usual interval. The node receives nothing meanwhile.
const SEND_TIMEOUT: Duration = Duration::from_millis(50);

/// Socket with its event counters.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) socket: UdpSocket,
    pub(crate) event_counts: Arc<EventCounts>,
}

impl Outlet {
    /// Sends the datagrams in order.
    pub(crate) async fn send(&self, outbox: Vec<Outgoing>) {
        let send = async |to: SocketAddr, datagram: Vec<u8>| {
            let sent = self.socket.send_to(&datagram, to).await;
            sent.map(|_| ())
        };
        send_all(outbox, &self.event_counts, send).await;
    }
}

/// Sends until [`SEND_TIMEOUT`] has passed; each later datagram is tried once.
async fn send_all<S: Future<Output = io::Result<()>>>(
    outbox: Vec<Outgoing>,
    event_counts: &EventCounts,
    send: impl Fn(SocketAddr, Vec<u8>) -> S,
) {
    let until = Instant::now() + SEND_TIMEOUT;
    for (to, datagram) in outbox {
        let sent = timeout_at(until, send(to, datagram)).await;
        event_counts.count(match sent {
            Ok(Ok(())) => Event::DatagramSent,
            Ok(Err(_)) | Err(_) => Event::SendFailed,
        });
    }
}

/// Opens a socket at this address.
pub(crate) fn listen_at(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    let buffers = SockRef::from(&socket);
    // A node also works with smaller buffers.
    for set in [
        buffers.set_recv_buffer_size(BUFFER_BYTES),
        buffers.set_send_buffer_size(BUFFER_BYTES),
    ] {
        if let Err(error) = set {
            tracing::debug!(%error, "the system gives the socket no larger buffer");
        }
    }
    UdpSocket::from_std(socket)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::sync::Semaphore;

    use super::*;

    fn outbox(count: u16) -> Vec<Outgoing> {
        let datagram = |port| (SocketAddr::from((Ipv4Addr::LOCALHOST, port)), vec![1]);
        (1..=count).map(datagram).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_send_buffer_is_waited_for_briefly() {
        let (event_counts, room) = (EventCounts::default(), Semaphore::new(2));
        let send = async |_: SocketAddr, _: Vec<u8>| {
            let room = room.acquire().await;
            room.map(tokio::sync::SemaphorePermit::forget)
                .map_err(io::Error::other)
        };
        let more = async {
            tokio::time::sleep(SEND_TIMEOUT / 2).await; // tidy: paused time
            room.add_permits(3);
        };
        tokio::join!(send_all(outbox(9), &event_counts, send), more);
        assert_eq!(event_counts.of(Event::DatagramSent), 5);
        assert_eq!(event_counts.of(Event::SendFailed), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_peer_does_not_keep_others_from_receiving() {
        let event_counts = EventCounts::default();
        let send = async |to: SocketAddr, _: Vec<u8>| match to.port() {
            1 => Err(io::ErrorKind::NetworkUnreachable.into()),
            _ => Ok(()),
        };
        send_all(outbox(3), &event_counts, send).await;
        assert_eq!(event_counts.of(Event::DatagramSent), 2);
        assert_eq!(event_counts.of(Event::SendFailed), 1);
    }

    #[tokio::test]
    async fn a_socket_gets_as_large_buffers_as_the_system_allows() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (ours, plain) = (listen_at(any).unwrap(), UdpSocket::bind(any).await.unwrap());
        let room = |socket: &UdpSocket| {
            let socket = SockRef::from(socket);
            (
                socket.recv_buffer_size().unwrap(),
                socket.send_buffer_size().unwrap(),
            )
        };
        let usual = room(&plain);
        let buffers = SockRef::from(&plain);
        buffers.set_recv_buffer_size(BUFFER_BYTES).unwrap();
        buffers.set_send_buffer_size(BUFFER_BYTES).unwrap();
        assert_eq!(room(&ours), room(&plain));
        assert!(room(&ours) >= usual);
    }
}
