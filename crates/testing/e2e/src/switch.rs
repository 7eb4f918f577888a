//! What if an address came to mean another server, and when does somebody speak to it? A TCP relay
//! whose server can be exchanged while it runs, and which tells that it hears something.
//!
//! It adds no delay and breaks nothing by itself: put it before or behind a relay that does.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Most bytes that are read at once: a call of a node is smaller by far.
const CHUNK_BYTES: usize = 16 * 1024;

/// An address that means one server after the other; ends, with its connections, when dropped.
#[derive(Debug)]
pub struct Switch {
    address: SocketAddr,
    server: watch::Sender<SocketAddr>,
    /// Counts what clients say, piece by piece.
    heard: Arc<watch::Sender<u64>>,
    task: JoinHandle<()>,
}

impl Switch {
    /// Carries connections to a free port of 127.0.0.1 on to `server`.
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
        let heard = Arc::new(watch::Sender::new(0));
        let task = tokio::spawn(accept(listener, present, Arc::clone(&heard)));
        Self {
            address,
            server,
            heard,
            task,
        }
    }

    /// Where to connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the address means this server; connections to the former one break.
    pub fn leads_to(&self, server: SocketAddr) {
        self.server.send_replace(server);
    }

    /// Ends when a client says something, from now on.
    ///
    /// # Panics
    ///
    /// If the switch is dropped meanwhile.
    pub fn hears(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut heard = self.heard.subscribe();
        async move {
            let heard = heard.changed().await;
            heard.expect("whoever listens keeps the switch");
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
    heard: Arc<watch::Sender<u64>>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A connection that is gone before it was taken is the client's business.
                if let Ok((client, _)) = accepted {
                    connections.spawn(carry(client, server.clone(), Arc::clone(&heard)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Carries one connection until either end closes it, or its address means another server.
async fn carry(
    mut client: TcpStream,
    mut server: watch::Receiver<SocketAddr>,
    heard: Arc<watch::Sender<u64>>,
) {
    let address = *server.borrow_and_update();
    // A server that is away closes the client's connection: nothing else can be said in TCP once
    // the client's was accepted.
    let Ok(mut onward) = TcpStream::connect(address).await else {
        return;
    };
    // Without it small messages wait for acknowledgements; a socket that refuses still works.
    let _ = (client.set_nodelay(true), onward.set_nodelay(true));
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = onward.split();
    let there = async {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = from_client.read(&mut chunk).await {
            heard.send_modify(|count| *count += 1);
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

    /// A server that answers each byte with one of its own.
    async fn says(word: u8) -> SocketAddr {
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

    /// What is answered; `None` if the connection breaks.
    async fn ask(stream: &mut TcpStream) -> Option<u8> {
        stream.write_u8(0).await.ok()?;
        stream.read_u8().await.ok()
    }

    #[tokio::test]
    async fn an_address_means_another_server_from_one_moment_on() {
        let switch = Switch::start(says(1).await).await;
        let mut stream = TcpStream::connect(switch.address()).await.unwrap();
        assert_eq!(ask(&mut stream).await, Some(1));
        switch.leads_to(says(2).await);
        assert_eq!(ask(&mut stream).await, None);
        let mut stream = TcpStream::connect(switch.address()).await.unwrap();
        assert_eq!(ask(&mut stream).await, Some(2));
    }

    #[tokio::test]
    async fn whoever_waits_for_a_word_is_told_of_the_next_one() {
        let switch = Switch::start(says(1).await).await;
        let mut stream = TcpStream::connect(switch.address()).await.unwrap();
        assert_eq!(ask(&mut stream).await, Some(1));
        let (_, answer) = tokio::join!(switch.hears(), ask(&mut stream));
        assert_eq!(answer, Some(1));
    }
}
