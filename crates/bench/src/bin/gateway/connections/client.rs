//! Browser on one connection: sends a request and reads the whole response.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::certificate::HOST;

/// Timeout of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest response.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// Scheme of a connection to the gateway.
pub(super) enum Scheme {
    Http,
    Https(TlsConnector),
}

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

pub(super) struct Browser {
    wire: Box<dyn Wire>,
}

/// Connects, from one of many addresses of this machine.
pub(super) async fn connect(
    from: Option<Ipv4Addr>,
    to: SocketAddr,
) -> Result<TcpStream, std::io::Error> {
    let socket = TcpSocket::new_v4()?;
    if let Some(from) = from {
        // A thousand addresses have enough ports; each is assigned on connect.
        socket.bind((from, 0).into())?;
    }
    socket.connect(to).await
}

impl Browser {
    pub(super) async fn connect(
        from: Option<Ipv4Addr>,
        to: SocketAddr,
        scheme: &Scheme,
    ) -> anyhow::Result<Self> {
        let stream = timeout(RESPONSE_TIMEOUT, connect(from, to)).await??;
        let wire: Box<dyn Wire> = match scheme {
            Scheme::Http => Box::new(stream),
            Scheme::Https(connector) => {
                let name = ServerName::try_from(HOST).context("a name")?;
                Box::new(timeout(RESPONSE_TIMEOUT, connector.connect(name, stream)).await??)
            }
        };
        Ok(Self { wire })
    }

    /// Requests a page and returns the whole response.
    pub(super) async fn get(&mut self, path: &str, headers: &str) -> anyhow::Result<String> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: a\r\naccept: text/html\r\nsec-fetch-mode: navigate\r\n\
             {headers}\r\n"
        );
        timeout(RESPONSE_TIMEOUT, self.exchange(request.as_bytes())).await?
    }

    async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<String> {
        self.wire.write_all(request).await?;
        let mut received = Vec::new();
        loop {
            ensure!(
                received.len() < RESPONSE_BYTES_MAX,
                "the response is too long"
            );
            let count = self.wire.read_buf(&mut received).await?;
            let text = String::from_utf8_lossy(&received);
            if is_complete(&text) {
                return Ok(text.into_owned());
            }
            ensure!(count > 0, "the connection ended early");
        }
    }
}

/// Requests a page on a new connection.
pub(super) async fn open_page(
    from: Option<Ipv4Addr>,
    to: SocketAddr,
    path: &str,
    headers: &str,
) -> anyhow::Result<String> {
    let mut browser = Browser::connect(from, to, &Scheme::Http).await?;
    browser.get(path, headers).await
}

/// Returns whether a response with a length is complete.
fn is_complete(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next().and_then(|(_, length)| length.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_complete_with_its_last_byte() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        assert!(is_complete(&format!("{head}hi")));
        for part in ["HTTP/1.1 200 OK\r\n", head, &format!("{head}h")] {
            assert!(!is_complete(part), "{part}");
        }
    }
}
