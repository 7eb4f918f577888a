//! A browser on one connection: asks, and reads an answer to its end.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// Who waits longer for an answer counts as not answered.
const PATIENCE: Duration = Duration::from_secs(5);
/// Nothing that is asked for here is longer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// How the gateway is spoken to.
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
        // A thousand addresses have ports enough; each is taken when it is connected.
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
        let stream = timeout(PATIENCE, connect(from, to)).await??;
        let wire: Box<dyn Wire> = match scheme {
            Scheme::Http => Box::new(stream),
            Scheme::Https(connector) => {
                let name = ServerName::try_from("a").context("a name")?;
                Box::new(timeout(PATIENCE, connector.connect(name, stream)).await??)
            }
        };
        Ok(Self { wire })
    }

    /// Asks for a page; the whole answer.
    pub(super) async fn ask(&mut self, path: &str, headers: &str) -> anyhow::Result<String> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: a\r\naccept: text/html\r\nsec-fetch-mode: navigate\r\n\
             {headers}\r\n"
        );
        timeout(PATIENCE, self.exchange(request.as_bytes())).await?
    }

    async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<String> {
        self.wire.write_all(request).await?;
        let mut heard = Vec::new();
        loop {
            ensure!(heard.len() < ANSWER_BYTES_MAX, "it does not end");
            let count = self.wire.read_buf(&mut heard).await?;
            let text = String::from_utf8_lossy(&heard);
            if is_whole(&text) {
                return Ok(text.into_owned());
            }
            ensure!(count > 0, "the connection ended early");
        }
    }
}

/// Asks once on a connection of its own.
pub(super) async fn open_page(
    from: Option<Ipv4Addr>,
    to: SocketAddr,
    path: &str,
    headers: &str,
) -> anyhow::Result<String> {
    let mut browser = Browser::connect(from, to, &Scheme::Http).await?;
    browser.ask(path, headers).await
}

/// Whether all of an answer with a length has come.
fn is_whole(text: &str) -> bool {
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
    fn an_answer_is_whole_with_its_last_byte() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        assert!(is_whole(&format!("{head}hi")));
        for part in ["HTTP/1.1 200 OK\r\n", head, &format!("{head}h")] {
            assert!(!is_whole(part), "{part}");
        }
    }
}
