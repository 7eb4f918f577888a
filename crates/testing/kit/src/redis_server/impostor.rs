//! Listeners that are not redis-servers.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Behaviour of the listener.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Responds to everything like an HTTP server with a bad request.
    AnswersHttp,
    /// Closes every connection at once.
    HangsUp,
    /// Accepts connections and data, and sends nothing.
    Silent,
    /// Replies to every command with these bytes.
    Answers(&'static str),
}

/// Listener that is not a redis-server, and counts connections.
#[derive(Debug)]
pub struct Impostor {
    port: u16,
    connections: Arc<AtomicU32>,
    task: JoinHandle<()>,
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Impostor {
    /// Starts a listener at a free port of 127.0.0.1.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub async fn start(manner: Behaviour) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("this machine has a free port");
        let address = listener.local_addr().expect("it is bound");
        let connections = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(behave(stream, manner.clone()));
            }
        });
        Self {
            port: address.port(),
            connections,
            task,
        }
    }

    /// Returns its port, at 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the number of connections until now.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Serves a connection until the client closes it.
async fn behave(mut stream: TcpStream, manner: Behaviour) {
    let response = match manner {
        Behaviour::HangsUp => return,
        Behaviour::AnswersHttp => {
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        }
        Behaviour::Silent => "",
        Behaviour::Answers(response) => response,
    };
    let mut received = [0; 4_096];
    while let Ok(1..) = stream.read(&mut received).await {
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}
