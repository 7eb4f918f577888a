//! A connection on which every byte is ours: paths that no client library sends, and bodies that
//! are not over yet.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::PATIENCE;

/// An open connection.
pub(crate) struct Raw {
    stream: TcpStream,
    heard: Vec<u8>,
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            heard: Vec::new(),
        }
    }

    /// The same as a client at another address of this machine.
    pub(crate) async fn connect_from(source: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        Self {
            stream: socket.connect(address).await.unwrap(),
            heard: Vec::new(),
        }
    }

    /// Everything that came up to the end of the next answer, which ends so; it is forgotten then.
    /// `None` if the connection ends before.
    pub(crate) async fn take_until(&mut self, end: &str) -> Option<String> {
        while !String::from_utf8_lossy(&self.heard)
            .trim_end()
            .ends_with(end)
        {
            if !self.more().await {
                return None;
            }
        }
        let heard = std::mem::take(&mut self.heard);
        Some(String::from_utf8_lossy(&heard).into_owned())
    }

    /// Sends, if the other side has not closed.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Everything that came so far, once this is among it.
    pub(crate) async fn until(&mut self, wanted: &str) -> String {
        loop {
            let heard = String::from_utf8_lossy(&self.heard).into_owned();
            if heard.contains(wanted) {
                return heard;
            }
            assert!(self.more().await, "no {wanted:?} in {heard:?}");
        }
    }

    /// Everything that came so far.
    pub(crate) fn so_far(&mut self) -> String {
        while let Ok(count) = self.stream.try_read_buf(&mut self.heard) {
            assert!(count > 0, "it has ended");
        }
        String::from_utf8_lossy(&self.heard).into_owned()
    }

    /// Everything that came, once the other side has closed.
    pub(crate) async fn rest(mut self) -> String {
        while self.more().await {}
        String::from_utf8_lossy(&self.heard).into_owned()
    }

    async fn more(&mut self) -> bool {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.heard)).await;
        let read = read.unwrap_or_else(|_| panic!("nothing more than {:?}", self.heard));
        // A connection that was cut off has nothing more to say either.
        read.is_ok_and(|count| count > 0)
    }
}

/// Asks for a path, byte for byte, and returns the whole answer.
pub(crate) async fn ask(address: SocketAddr, host: &str, target: &str, headers: &str) -> String {
    let mut raw = Raw::connect(address).await;
    let head = format!("GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    raw.send(format!("{head}{headers}\r\n")).await;
    raw.rest().await
}

/// The status of an answer.
pub(crate) fn status_of(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).unwrap_or_default();
    status.parse().unwrap_or_else(|_| panic!("{answer:?}"))
}

/// Whether an answer is one of the gateway's own waiting answers.
pub(crate) fn is_queued(answer: &str) -> bool {
    answer.contains("\r\nanteroom-verdict: queue\r\n")
}
