//! TCP relay whose server can be replaced while it runs, and which reports that clients send data.
//!
//! It adds no delay and no faults. Put it before or behind a relay that does.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Most bytes of one read: a node's request is much smaller.
const CHUNK_BYTES: usize = 16 * 1024;

/// Address of one server after the other; ends, with its connections, when dropped.
#[derive(Debug)]
pub struct Switch {
    address: SocketAddr,
    server: watch::Sender<SocketAddr>,
    /// Number of chunks from clients.
    chunks: Arc<watch::Sender<u64>>,
    task: JoinHandle<()>,
}

impl Switch {
    /// Relays connections from a free port of 127.0.0.1 to `server`.
    ///
    /// # Panics
    ///
    /// If this machine has no free port.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("this machine has a free port");
        let address = listener
            .local_addr()
            .expect("a listener knows its own address");
        let (server, present) = watch::channel(server);
        let chunks = Arc::new(watch::Sender::new(0));
        let task = tokio::spawn(accept(listener, present, Arc::clone(&chunks)));
        Self {
            address,
            server,
            chunks,
            task,
        }
    }

    /// Returns the address to connect to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the server; connections to the former one break.
    pub fn leads_to(&self, server: SocketAddr) {
        self.server.send_replace(server);
    }

    /// Returns a future that ends when a client next sends data.
    ///
    /// # Panics
    ///
    /// If the switch is dropped meanwhile.
    pub fn next_data(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut chunks = self.chunks.subscribe();
        async move {
            let chunks = chunks.changed().await;
            chunks.expect("the switch outlives its listeners");
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    server: watch::Receiver<SocketAddr>,
    chunks: Arc<watch::Sender<u64>>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A connection may be gone before it is accepted.
                if let Ok((client, _)) = accepted {
                    connections.spawn(carry(client, server.clone(), Arc::clone(&chunks)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Carries one connection until either end closes it, or the server is replaced.
async fn carry(
    mut client: TcpStream,
    mut server: watch::Receiver<SocketAddr>,
    chunks: Arc<watch::Sender<u64>>,
) {
    let address = *server.borrow_and_update();
    // If the server is unavailable, close the client's connection: TCP has no other signal after
    // the accept.
    let Ok(mut onward) = TcpStream::connect(address).await else {
        return;
    };
    // Without it small messages wait for acknowledgements; the relay works without it.
    let _ = (client.set_nodelay(true), onward.set_nodelay(true));
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = onward.split();
    let there = async {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = from_client.read(&mut chunk).await {
            chunks.send_modify(|count| *count += 1);
            if to_server.write_all(&chunk[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = there => {}
        _ = copy(&mut from_server, &mut to_client) => {}
        _ = server.changed() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that replies to each byte with one of its own.
    async fn server_of(word: u8) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    while stream.read_u8().await.is_ok() && stream.write_u8(word).await.is_ok() {}
                });
            }
        });
        address
    }

    /// Sends a byte and returns the reply; `None` if the connection breaks.
    async fn ask(stream: &mut TcpStream) -> Option<u8> {
        stream.write_u8(0).await.ok()?;
        stream.read_u8().await.ok()
    }

    #[tokio::test]
    async fn an_address_switches_to_another_server_at_once() {
        let switch = Switch::start(server_of(1).await).await;
        let mut stream = TcpStream::connect(switch.address()).await.unwrap();
        assert_eq!(ask(&mut stream).await, Some(1));
        switch.leads_to(server_of(2).await);
        assert_eq!(ask(&mut stream).await, None);
        let mut stream = TcpStream::connect(switch.address()).await.unwrap();
        assert_eq!(ask(&mut stream).await, Some(2));
    }

    #[tokio::test]
    async fn a_waiting_task_learns_of_the_next_data() {
        let switch = Switch::start(server_of(1).await).await;
        let mut stream = TcpStream::connect(switch.address()).await.unwrap();
        assert_eq!(ask(&mut stream).await, Some(1));
        let (_, response) = tokio::join!(switch.next_data(), ask(&mut stream));
        assert_eq!(response, Some(1));
    }
}
