//! Client of a request, by its connection or by a trusted proxy.

use std::net::{IpAddr, SocketAddr};

use http::HeaderValue;

use super::names::X_FORWARDED_PROTO;
use super::trust::TrustedProxies;
use crate::header_view::{HeaderView, visible};

/// Scheme by which the visitor reaches the site.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Scheme {
    /// Unencrypted.
    #[default]
    Http,
    /// Encrypted: by TLS in this process, or as a trusted proxy states.
    Https,
}

impl Scheme {
    /// Returns the scheme as it is written in headers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Client of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Client {
    /// Visitor's address, as far as it is known; never an IPv4-mapped IPv6 address.
    pub address: IpAddr,
    /// Scheme by which the visitor reaches the site.
    pub scheme: Scheme,
    /// `Host` as the client sent it: visible ASCII, not empty.
    pub host: HeaderValue,
    /// Address of the connection's other end.
    pub peer: IpAddr,
    /// Whether the peer is a proxy whose `X-Forwarded-*` headers are trusted.
    pub has_trusted_peer: bool,
}

impl Client {
    /// Returns the client of a request with these headers over a connection from `peer` with the
    /// scheme `connection`.
    #[must_use]
    pub fn of<'a>(
        peer: SocketAddr,
        connection: Scheme,
        host: HeaderValue,
        headers: impl Into<HeaderView<'a>>,
        trusted: &TrustedProxies,
    ) -> Self {
        let headers = headers.into();
        let peer = peer.ip().to_canonical();
        let has_trusted_peer = trusted.contains(peer);
        let (address, scheme) = if has_trusted_peer {
            let scheme = forwarded_scheme(headers).unwrap_or(connection);
            (trusted.client_behind(peer, headers), scheme)
        } else {
            (peer, connection)
        };
        Self {
            address,
            scheme,
            host,
            peer,
            has_trusted_peer,
        }
    }

    /// Returns the host as text.
    #[must_use]
    pub fn host(&self) -> &str {
        // The intake rejects other values; one from another source covers no room.
        self.host.to_str().unwrap_or_default()
    }
}

/// Returns the scheme that a trusted proxy states; the first entry is the outermost.
fn forwarded_scheme(headers: HeaderView<'_>) -> Option<Scheme> {
    let value = headers.get(&X_FORWARDED_PROTO)?;
    let value = visible(value).unwrap_or_default();
    let first = value.split(',').next().unwrap_or_default();
    Some(if first.trim().eq_ignore_ascii_case("https") {
        Scheme::Https
    } else {
        Scheme::Http
    })
}
