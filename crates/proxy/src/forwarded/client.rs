//! Who is the client? What a connection tells, or a proxy that is trusted.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderValue};

use super::names::X_FORWARDED_PROTO;
use super::trust::TrustedProxies;

/// How the visitor speaks to the site.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Scheme {
    /// In the clear.
    #[default]
    Http,
    /// Encrypted: towards this process, or as told by a trusted proxy.
    Https,
}

impl Scheme {
    /// As it is written in headers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Who sent a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Client {
    /// The visitor's address, as far as it can be known; never an IPv4 address in IPv6 clothes.
    pub address: IpAddr,
    /// How the visitor speaks to the site.
    pub scheme: Scheme,
    /// `Host` as the client sent it: visible ASCII, not empty.
    pub host: HeaderValue,
    /// The other end of the connection.
    pub peer: IpAddr,
    /// Whether that is a proxy whose `X-Forwarded-*` headers are believed.
    pub has_trusted_peer: bool,
}

impl Client {
    /// Works out who sent a request with these headers over a connection to `peer`, which is what
    /// `connection` says.
    #[must_use]
    pub fn of(
        peer: SocketAddr,
        connection: Scheme,
        host: HeaderValue,
        headers: &HeaderMap,
        trusted: &TrustedProxies,
    ) -> Self {
        let peer = peer.ip().to_canonical();
        let has_trusted_peer = trusted.contains(peer);
        let (address, scheme) = if has_trusted_peer {
            let scheme = told_scheme(headers).unwrap_or(connection);
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

    /// The host as text.
    #[must_use]
    pub fn host(&self) -> &str {
        // The intake lets nothing else in; a hand-made value that is not ASCII covers no room.
        self.host.to_str().unwrap_or_default()
    }
}

/// What a trusted proxy says about the visitor's end; the first entry is the outermost.
fn told_scheme(headers: &HeaderMap) -> Option<Scheme> {
    let told = headers.get(X_FORWARDED_PROTO)?;
    let told = told.to_str().unwrap_or_default();
    let first = told.split(',').next().unwrap_or_default();
    Some(if first.trim().eq_ignore_ascii_case("https") {
        Scheme::Https
    } else {
        Scheme::Http
    })
}
