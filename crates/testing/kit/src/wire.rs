//! Raw ends of HTTP connections, for messages that no client and no server would send.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Raw end of a connection.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Wire {
    /// Wraps a connection.
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            read: Vec::new(),
        }
    }

    /// Connects.
    ///
    /// # Panics
    ///
    /// If nobody listens there.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).await.expect("somebody listens"))
    }

    /// Sends all of the text.
    ///
    /// # Panics
    ///
    /// If the other side does not take it.
    pub async fn send(&mut self, text: &str) {
        let sent = self.stream.write_all(text.as_bytes()).await;
        sent.expect("the other side takes it");
    }

    /// Sends bytes that the other side may cut short.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Sends until the other side takes nothing for a while; returns how much it took, at least.
    ///
    /// # Panics
    ///
    /// If the other side never stops taking.
    pub async fn send_until_blocked(&mut self) -> usize {
        let piece = vec![7; 100_000];
        let mut sent = 0;
        while let Ok(true) = timeout(Duration::from_millis(500), self.try_send(&piece)).await {
            sent += piece.len();
            assert!(sent < 500_000_000, "nobody holds it back");
        }
        sent
    }

    /// Reads up to and including `end`, and returns it.
    ///
    /// # Panics
    ///
    /// If it ends before.
    pub async fn read_until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = find(&self.read, end.as_bytes()) {
                let rest = self.read.split_off(at + end.len());
                let text = std::mem::replace(&mut self.read, rest);
                return String::from_utf8_lossy(&text).into_owned();
            }
            let read = self.stream.read_buf(&mut self.read).await;
            let read = read.expect("the other side breaks nothing off");
            let so_far = String::from_utf8_lossy(&self.read);
            assert!(read > 0, "ended before {end:?}: {so_far}");
        }
    }

    /// Reads up to and including `end`; returns `None` if the connection ended before.
    pub async fn try_read_until(&mut self, end: &str) -> Option<String> {
        loop {
            if let Some(at) = find(&self.read, end.as_bytes()) {
                return self.try_read(at + end.len()).await;
            }
            let read = self.stream.read_buf(&mut self.read).await;
            read.ok().filter(|read| *read > 0)?;
        }
    }

    /// Reads so many bytes; returns `None` if the connection ended before.
    pub async fn try_read(&mut self, count: usize) -> Option<String> {
        while self.read.len() < count {
            let read = self.stream.read_buf(&mut self.read).await;
            read.ok().filter(|read| *read > 0)?;
        }
        let rest = self.read.split_off(count);
        let text = std::mem::replace(&mut self.read, rest);
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads a head, in lower case.
    ///
    /// # Panics
    ///
    /// As [`Wire::read_until`].
    pub async fn head(&mut self) -> String {
        self.read_until("\r\n\r\n").await.to_lowercase()
    }

    /// Reads until the other side closes; a reset counts as closed.
    pub async fn rest(&mut self) -> String {
        while let Ok(1..) = self.stream.read_buf(&mut self.read).await {}
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }

    /// Reads bytes until the other side closes; a reset counts as closed.
    pub async fn rest_bytes(&mut self) -> Vec<u8> {
        while let Ok(1..) = self.stream.read_buf(&mut self.read).await {}
        std::mem::take(&mut self.read)
    }

    /// Closes the sending side only, if the other side has not closed the connection.
    pub async fn try_finish(&mut self) -> bool {
        self.stream.shutdown().await.is_ok()
    }

    /// Closes the sending side only.
    ///
    /// # Panics
    ///
    /// If it is closed already.
    pub async fn finish(&mut self) {
        self.stream.shutdown().await.expect("it is open");
    }
}

/// Raw origin: it does only what a test does.
#[derive(Debug)]
pub struct Origin {
    listener: TcpListener,
    /// Returns the address of the listener.
    pub address: SocketAddr,
}

impl Origin {
    /// Starts a listener at a free port.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a socket has an address");
        Self { listener, address }
    }

    /// Fails if anybody has connected who was not accepted.
    ///
    /// # Panics
    ///
    /// If somebody has.
    pub async fn assert_nobody_else(&self) {
        let own = TcpStream::connect(self.address).await.expect("it listens");
        let (_, first) = self.listener.accept().await.expect("it listens");
        assert_eq!(
            first,
            own.local_addr().expect("a socket has an address"),
            "somebody has connected"
        );
    }

    /// Waits for the next who connects.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub async fn accept(&self) -> Wire {
        Wire::new(self.listener.accept().await.expect("it listens").0)
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// The value of a header in a head that is in lower case.
///
/// # Panics
///
/// If it is there twice.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut values = head.lines().filter_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found == name).then_some(value.trim())
    });
    let value = values.next();
    assert_eq!(values.next(), None, "{name} twice in {head}");
    value
}
