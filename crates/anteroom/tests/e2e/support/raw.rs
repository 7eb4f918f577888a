//! A connection that sends exact bytes: paths that no client library sends, and incomplete bodies.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::TIMEOUT;

/// An open connection.
pub(crate) struct Raw {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            received: Vec::new(),
        }
    }

    /// Connects like [`connect`](Self::connect), from another address of this machine.
    pub(crate) async fn connect_from(source: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        Self {
            stream: socket.connect(address).await.unwrap(),
            received: Vec::new(),
        }
    }

    /// Returns everything up to the end of the next response, and removes it. `None` if the
    /// connection ends before.
    pub(crate) async fn take_until(&mut self, end: &str) -> Option<String> {
        while !String::from_utf8_lossy(&self.received)
            .trim_end()
            .ends_with(end)
        {
            if !self.more().await {
                return None;
            }
        }
        let received = std::mem::take(&mut self.received);
        Some(String::from_utf8_lossy(&received).into_owned())
    }

    /// Sends, if the other side has not closed.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Waits for this text, and returns everything received so far.
    pub(crate) async fn until(&mut self, wanted: &str) -> String {
        loop {
            let received = String::from_utf8_lossy(&self.received).into_owned();
            if received.contains(wanted) {
                return received;
            }
            assert!(self.more().await, "no {wanted:?} in {received:?}");
        }
    }

    /// Returns everything received so far.
    pub(crate) fn received_so_far(&mut self) -> String {
        while let Ok(count) = self.stream.try_read_buf(&mut self.received) {
            assert!(count > 0, "it has ended");
        }
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// Returns everything received, once the other side has closed.
    pub(crate) async fn rest(mut self) -> String {
        while self.more().await {}
        String::from_utf8_lossy(&self.received).into_owned()
    }

    async fn more(&mut self) -> bool {
        let read = timeout(TIMEOUT, self.stream.read_buf(&mut self.received)).await;
        let read = read.unwrap_or_else(|_| panic!("nothing more than {:?}", self.received));
        // A connection that was cut off ends too.
        read.is_ok_and(|count| count > 0)
    }
}

/// Requests a path, byte for byte, and returns the whole response.
pub(crate) async fn ask(address: SocketAddr, host: &str, target: &str, headers: &str) -> String {
    let mut raw = Raw::connect(address).await;
    let head = format!("GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    raw.send(format!("{head}{headers}\r\n")).await;
    raw.rest().await
}

/// Returns the status of a response.
pub(crate) fn status_of(response: &str) -> u16 {
    let status = response.split(' ').nth(1).unwrap_or_default();
    status.parse().unwrap_or_else(|_| panic!("{response:?}"))
}

/// Whether a response is one of the gateway's own waiting responses.
pub(crate) fn is_queued(response: &str) -> bool {
    response.contains("\r\nanteroom-verdict: queue\r\n")
}
