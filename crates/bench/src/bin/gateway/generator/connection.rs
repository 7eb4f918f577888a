//! Connection of the load generator: sends one request and reads its response.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::Protocol;
use super::http1::Http1;
use super::request::Prepared;
use crate::certificate::{HOST, connector};

/// Address of a proxy, and the way to connect to it.
#[derive(Clone)]
pub(crate) struct Target {
    address: SocketAddr,
    protocol: Protocol,
    connector: Option<TlsConnector>,
}

impl Target {
    pub(crate) fn new(
        address: SocketAddr,
        protocol: Protocol,
        certificate: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let alpn: &[u8] = match protocol {
            Protocol::Http1 => {
                return Ok(Self {
                    address,
                    protocol,
                    connector: None,
                });
            }
            Protocol::Tls => b"http/1.1",
            Protocol::Http2 => b"h2",
        };
        let certificate = certificate.context("TLS needs a certificate to trust")?;
        Ok(Self {
            address,
            protocol,
            connector: Some(connector(certificate, alpn)?),
        })
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let Some(connector) = &self.connector else {
            return Ok(Connection::Http1(Http1::new(Box::new(stream))));
        };
        let name = ServerName::try_from(HOST).context("the host is a name")?;
        let stream = connector.connect(name, stream).await?;
        if self.protocol == Protocol::Tls {
            return Ok(Connection::Http1(Http1::new(Box::new(stream))));
        }
        let negotiated = stream.get_ref().1.alpn_protocol();
        ensure!(negotiated == Some(b"h2"), "the proxy speaks no HTTP/2");
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        // A failed connection fails its requests.
        tokio::spawn(connection);
        Ok(Connection::Http2(Http2 {
            sender,
            pending: None,
        }))
    }
}

/// Open connection with at most one request at a time.
pub(crate) enum Connection {
    Http1(Http1),
    Http2(Http2),
}

pub(crate) struct Http2 {
    sender: SendRequest<Empty<Bytes>>,
    pending: Option<JoinHandle<anyhow::Result<usize>>>,
}

impl Connection {
    pub(crate) async fn send(&mut self, request: &Prepared) -> anyhow::Result<()> {
        match self {
            Self::Http1(connection) => connection.send(&request.bytes).await,
            Self::Http2(connection) => {
                let response = connection.sender.send_request(request.message.clone());
                connection.pending = Some(tokio::spawn(async move {
                    let (head, body) = response.await?.into_parts();
                    ensure!(head.status.is_success(), "the status is {}", head.status);
                    Ok(body.collect().await?.to_bytes().len())
                }));
                Ok(())
            }
        }
    }

    /// Reads the response to the request sent last and returns the length of its body.
    pub(crate) async fn receive(&mut self) -> anyhow::Result<usize> {
        match self {
            Self::Http1(connection) => connection.receive().await,
            Self::Http2(connection) => {
                let pending = connection.pending.take().context("no request was sent")?;
                pending.await?
            }
        }
    }
}
