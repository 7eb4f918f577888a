//! Listeners that are no redis-server.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How it behaves.
#[derive(Clone, Debug)]
pub enum Manner {
    /// Answers whatever comes like an HTTP server that understood nothing.
    AnswersHttp,
    /// Closes every connection at once.
    HangsUp,
    /// Takes every connection and whatever comes, and says nothing.
    SaysNothing,
    /// Answers every command with these bytes, whatever it is.
    Answers(&'static str),
}

/// A listener that is no redis-server, and counts who comes.
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
    /// Starts one at a free port of 127.0.0.1.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub async fn start(manner: Manner) -> Self {
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

    /// Its port, at 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections came so far.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Until whoever came goes.
async fn behave(mut stream: TcpStream, manner: Manner) {
    let answer = match manner {
        Manner::HangsUp => return,
        Manner::AnswersHttp => {
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        }
        Manner::SaysNothing => "",
        Manner::Answers(answer) => answer,
    };
    let mut heard = [0; 4_096];
    while let Ok(1..) = stream.read(&mut heard).await {
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
