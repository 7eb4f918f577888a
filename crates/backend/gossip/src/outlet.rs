//! The socket of a node, and how it sends.
//!
//! A node says much at once: its news and a part of all, to each other one. What the system has no
//! room for is waited for, but not for long: what is late is better said anew. What is lost is
//! counted.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use crate::event_counts::{Event, Tally};
use crate::node::Outgoing;

/// What a socket may hold until it is read, or sent. Systems give what they allow: Linux no more
/// than `net.core.rmem_max`, which is some 90 datagrams unless somebody has raised it, and twice of
/// that in effect. This is what 25 nodes say in an interval in which each has as much to say as it
/// may.
const BUFFER_BYTES: usize = 4 << 20;
/// How long a node waits with all that it has to say, for the system to take it: half of the usual
/// interval. Meanwhile it hears nothing.
const PATIENCE: Duration = Duration::from_millis(50);

/// A socket, and what is counted of it.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) socket: UdpSocket,
    pub(crate) event_counts: Arc<Tally>,
}

impl Outlet {
    /// Sends in this order.
    pub(crate) async fn send(&self, outbox: Vec<Outgoing>) {
        let send = async |to: SocketAddr, datagram: Vec<u8>| {
            let sent = self.socket.send_to(&datagram, to).await;
            sent.map(|_| ())
        };
        send_all(outbox, &self.event_counts, send).await;
    }
}

/// Sends as long as [`PATIENCE`] lasts; what comes behind is tried once.
async fn send_all<S: Future<Output = io::Result<()>>>(
    outbox: Vec<Outgoing>,
    event_counts: &Tally,
    send: impl Fn(SocketAddr, Vec<u8>) -> S,
) {
    let until = Instant::now() + PATIENCE;
    for (to, datagram) in outbox {
        let sent = timeout_at(until, send(to, datagram)).await;
        event_counts.count(match sent {
            Ok(Ok(())) => Event::DatagramSent,
            Ok(Err(_)) | Err(_) => Event::SendFailed,
        });
    }
}

/// Listens there.
pub(crate) fn listen_at(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    let buffers = SockRef::from(&socket);
    // Less is no reason not to start.
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
    async fn what_the_system_cannot_take_is_waited_for_briefly() {
        let (event_counts, room) = (Tally::default(), Semaphore::new(2));
        let send = async |_: SocketAddr, _: Vec<u8>| {
            let room = room.acquire().await;
            room.map(tokio::sync::SemaphorePermit::forget)
                .map_err(io::Error::other)
        };
        let more = async {
            tokio::time::sleep(PATIENCE / 2).await; // tidy: paused time
            room.add_permits(3);
        };
        tokio::join!(send_all(outbox(9), &event_counts, send), more);
        assert_eq!(event_counts.of(Event::DatagramSent), 5);
        assert_eq!(event_counts.of(Event::SendFailed), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_be_reached_is_no_reason_not_to_tell_the_others() {
        let event_counts = Tally::default();
        let send = async |to: SocketAddr, _: Vec<u8>| match to.port() {
            1 => Err(io::ErrorKind::NetworkUnreachable.into()),
            _ => Ok(()),
        };
        send_all(outbox(3), &event_counts, send).await;
        assert_eq!(event_counts.of(Event::DatagramSent), 2);
        assert_eq!(event_counts.of(Event::SendFailed), 1);
    }

    #[tokio::test]
    async fn a_socket_gets_as_much_room_as_the_system_gives_anybody() {
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
