//! TCP relay on loopback that delays, stalls and cuts: a slow or broken network between a node and
//! its store.
//!
//! It knows no protocol. Bytes never get lost within a connection, as TCP promises: they come late,
//! or the connection breaks.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// Most bytes of one read.
const CHUNK_BYTES: usize = 16 * 1024;
/// Most chunks on their way in one direction of a connection: enough for any delay at the traffic
/// of a ledger. When it is full the sender waits, as with a full socket.
const CHUNKS_MAX: usize = 1_024;

/// Delays of a link. Timers count whole milliseconds, so a delay that is not zero takes up to one
/// longer. A zero delay takes only the relay's own time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Delays {
    /// Delay towards the server.
    pub there: Duration,
    /// Delay back to the client.
    pub back: Duration,
}

impl Delays {
    /// Creates equal delays in both directions; a round trip takes twice as long.
    #[must_use]
    pub const fn each_way(delay: Duration) -> Self {
        Self {
            there: delay,
            back: delay,
        }
    }
}

/// State of the link.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// Number of cuts. A connection breaks at the first cut after its start, even if the link is
    /// healed before the connection notices.
    cuts: u64,
    drops_new: bool,
    is_stalled: bool,
}

/// Relay; ends, with all its connections, when dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    link: watch::Sender<Link>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Relays connections from a free port of 127.0.0.1 to `server`.
    ///
    /// # Panics
    ///
    /// If this machine has no free port.
    pub async fn start(server: SocketAddr, delays: Delays) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("this machine has a free port");
        let address = listener
            .local_addr()
            .expect("a listener knows its own address");
        let (link, state) = watch::channel(Link::default());
        let task = tokio::spawn(accept(listener, server, delays, state));
        Self {
            address,
            link,
            task,
        }
    }

    /// Returns the address to connect to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks all connections; new ones are closed at once.
    pub fn cut(&self) {
        self.link.send_modify(|link| {
            link.cuts += 1;
            link.drops_new = true;
        });
    }

    /// Closes new connections at once; open ones continue.
    pub fn drop_new_connections(&self) {
        self.link.send_modify(|link| link.drops_new = true);
    }

    /// Delays everything, in both directions: connections stay open, new ones are accepted, and no
    /// data passes. The data arrives after [`Relay::heal`].
    pub fn stall(&self) {
        self.link.send_modify(|link| link.is_stalled = true);
    }

    /// Ends all faults of the link.
    pub fn heal(&self) {
        self.link.send_modify(|link| {
            link.drops_new = false;
            link.is_stalled = false;
        });
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    delays: Delays,
    link: watch::Receiver<Link>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A connection may be gone before it is accepted.
                if let Ok((client, _)) = accepted
                    && !link.borrow().drops_new
                {
                    connections.spawn(carry(client, server, delays, link.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Carries one connection until both ends have closed it, or it is cut.
async fn carry(
    client: TcpStream,
    server: SocketAddr,
    delays: Delays,
    mut link: watch::Receiver<Link>,
) {
    let cuts = link.borrow().cuts;
    // If the server is unavailable, close the client's connection: TCP has no other signal after
    // the accept.
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    // Without it small messages wait for acknowledgements; the relay works without it.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = pump(from_client, to_server, delays.there, link.clone());
    let back = pump(from_server, to_client, delays.back, link.clone());
    tokio::select! {
        _ = async { tokio::join!(there, back) } => {}
        _ = link.wait_for(|link| link.cuts != cuts) => {}
    }
}

/// Carries one direction, with each chunk `delay` late.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    delay: Duration,
    mut link: watch::Receiver<Link>,
) {
    let (sender, mut receiver) = mpsc::channel(CHUNKS_MAX);
    let reading = async move {
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let Ok(count @ 1..) = from.read(&mut chunk).await else {
                return;
            };
            chunk.truncate(count);
            if sender.send((Instant::now() + delay, chunk)).await.is_err() {
                return;
            }
        }
    };
    let writing = async move {
        while let Some((due_at, chunk)) = receiver.recv().await {
            // A timer that is due already would still wait for the next millisecond.
            if Instant::now() < due_at {
                sleep_until(due_at).await;
            }
            let is_over = link.wait_for(|link| !link.is_stalled).await.is_err();
            if is_over || to.write_all(&chunk).await.is_err() {
                return;
            }
        }
        // The other end may be gone, which ends the connection as well.
        let _ = to.shutdown().await;
    };
    tokio::join!(reading, writing);
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    /// Starts a server that sends back its input.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        address
    }

    async fn relay(delays: Delays) -> Relay {
        Relay::start(echo().await, delays).await
    }

    /// Sends `word` and returns the reply; `None` if the connection breaks.
    async fn send_word(stream: &mut TcpStream, word: &[u8]) -> Option<Vec<u8>> {
        stream.write_all(word).await.ok()?;
        let mut received = vec![0; word.len()];
        stream.read_exact(&mut received).await.ok()?;
        Some(received)
    }

    #[tokio::test]
    async fn bytes_come_back_in_order_after_both_delays() {
        let relay = relay(Delays {
            there: Duration::from_millis(30),
            back: Duration::from_millis(20),
        })
        .await;
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        let began = Instant::now();
        assert_eq!(send_word(&mut stream, b"hello").await.unwrap(), b"hello");
        assert!(began.elapsed() >= Duration::from_millis(50));
        let long = vec![7; 300_000];
        assert_eq!(send_word(&mut stream, &long).await.unwrap(), long);
    }

    #[tokio::test]
    async fn a_cut_breaks_open_and_new_connections_until_healed() {
        let relay = relay(Delays::default()).await;
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        assert!(send_word(&mut stream, b"one").await.is_some());
        relay.cut();
        assert!(send_word(&mut stream, b"two").await.is_none());
        let mut other = TcpStream::connect(relay.address()).await.unwrap();
        assert!(send_word(&mut other, b"three").await.is_none());
        relay.heal();
        let mut third = TcpStream::connect(relay.address()).await.unwrap();
        assert!(send_word(&mut third, b"four").await.is_some());
    }

    #[tokio::test]
    async fn a_cut_that_is_healed_at_once_still_breaks_connections() {
        let relay = relay(Delays::default()).await;
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        assert!(send_word(&mut stream, b"one").await.is_some());
        relay.cut();
        relay.heal();
        assert!(send_word(&mut stream, b"two").await.is_none());
    }

    #[tokio::test]
    async fn dropping_new_connections_leaves_the_others_alone() {
        let relay = relay(Delays::default()).await;
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        assert!(send_word(&mut stream, b"one").await.is_some());
        relay.drop_new_connections();
        let mut other = TcpStream::connect(relay.address()).await.unwrap();
        assert!(send_word(&mut other, b"two").await.is_none());
        assert!(send_word(&mut stream, b"three").await.is_some());
    }

    #[tokio::test]
    async fn a_stalled_link_delivers_everything_afterwards() {
        let relay = relay(Delays::default()).await;
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        assert!(send_word(&mut stream, b"one").await.is_some());
        relay.stall();
        stream.write_all(b"two").await.unwrap();
        let mut received = [0; 3];
        let silence = timeout(Duration::from_millis(200), stream.read_exact(&mut received)).await;
        assert!(silence.is_err());
        relay.heal();
        stream.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"two");
    }

    #[tokio::test]
    async fn an_unavailable_server_ends_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let unused = listener.local_addr().unwrap();
        drop(listener);
        let relay = Relay::start(unused, Delays::default()).await;
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        assert!(send_word(&mut stream, b"one").await.is_none());
    }
}
