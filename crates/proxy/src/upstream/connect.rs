//! Connecting to an origin: DNS, TCP, TLS, and the HTTP version; all within one timeout.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{Http2, Origin};
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower::Service as _;

use crate::upstream::resolve::Resolver;
use crate::upstream::trust::{Tls, TrustError};

/// Error of a connection attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The connection was not ready within `origin_connect`.
    #[error("no connection within {} ms", .after.as_millis())]
    TimedOut {
        /// Timeout.
        after: Duration,
    },
    /// The name was not found, or the connection was refused.
    #[error("cannot connect")]
    Tcp(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The certificate is not trusted, or the TLS handshake failed.
    #[error("no TLS on the connection")]
    Tls(#[source] io::Error),
    /// The origin does not speak HTTP/2.
    #[error("the origin did not choose HTTP/2, and origin_http2 is \"always\"")]
    NoHttp2,
    /// The HTTP handshake failed.
    #[error("HTTP did not begin on the connection")]
    Http(#[source] hyper::Error),
}

/// Connection before HTTP.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// Connection, and whether it uses HTTP/2.
pub(crate) struct Connected {
    pub(crate) stream: Either,
    pub(crate) is_http2: bool,
}

/// Connection with TLS or without.
pub(crate) enum Either {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Target of an origin's connections.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    uri: Uri,
    tls: Option<(Arc<Tls>, ServerName<'static>)>,
    http2: Http2,
    connector: HttpConnector<Resolver>,
}

impl Target {
    /// Creates a target. `tls` is present if the origin has TLS; `wait` is the timeout for all
    /// addresses of its name together.
    pub(crate) fn new(
        origin: &Origin,
        http2: Http2,
        tls: Option<Arc<Tls>>,
        wait: Duration,
    ) -> Result<Self, TrustError> {
        let name_error = || TrustError::Name {
            host: origin.authority().to_owned(),
        };
        let authority: Authority = origin.authority().parse().map_err(|_| name_error())?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(authority);
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
        let uri = Uri::from_parts(parts).map_err(|_| name_error())?;
        let tls = match tls {
            Some(tls) => {
                let name = ServerName::try_from(host).map_err(|_| name_error())?;
                Some((tls, name))
            }
            None => None,
        };
        let mut connector = HttpConnector::new_with_resolver(Resolver);
        connector.set_nodelay(true);
        // Divided among the addresses of a name: an unreachable one leaves time for the next.
        connector.set_connect_timeout(Some(wait));
        Ok(Self {
            uri,
            tls,
            http2,
            connector,
        })
    }

    /// Whether a connection may turn out to be HTTP/2.
    pub(crate) const fn may_speak_http2(&self) -> bool {
        match self.http2 {
            Http2::Never => false,
            Http2::Auto => self.tls.is_some(),
            Http2::Always => true,
        }
    }

    pub(crate) fn scheme(&self) -> Scheme {
        if self.tls.is_some() {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        }
    }

    /// Whether connections have no TLS and speak HTTP/1.1.
    pub(crate) const fn is_plain_http1(&self) -> bool {
        self.tls.is_none() && !matches!(self.http2, Http2::Always)
    }

    /// Connects without TLS.
    pub(crate) async fn connect_tcp(&self) -> Result<TcpStream, ConnectError> {
        let connected = self.connector.clone().call(self.uri.clone()).await;
        let tcp = connected.map_err(|error| ConnectError::Tcp(error.into()))?;
        Ok(TokioIo::into_inner(tcp))
    }

    pub(crate) async fn connect(&self, needs_http1: bool) -> Result<Connected, ConnectError> {
        let tcp = self.connect_tcp().await?;
        let Some((tls, name)) = &self.tls else {
            return Ok(Connected {
                stream: Either::Plain(tcp),
                is_http2: !needs_http1 && self.http2 == Http2::Always,
            });
        };
        let connector: &TlsConnector = match self.http2 {
            _ if needs_http1 => &tls.http1,
            Http2::Never => &tls.http1,
            Http2::Auto => &tls.either,
            Http2::Always => &tls.http2,
        };
        let stream = connector.connect(name.clone(), tcp).await;
        let stream = stream.map_err(ConnectError::Tls)?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        if !is_http2 && !needs_http1 && self.http2 == Http2::Always {
            return Err(ConnectError::NoHttp2);
        }
        Ok(Connected {
            stream: Either::Tls(Box::new(stream)),
            is_http2,
        })
    }
}
