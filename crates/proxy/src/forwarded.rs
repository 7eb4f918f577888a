//! Who is the client, and what is the origin told about it?
//!
//! A connection tells an address; a proxy in front may tell another one, and is believed only if
//! it is trusted. `X-Forwarded-For` is read from the right: the right-most address that is not a
//! trusted proxy is the client, because everything to the left of it could be made up. `Forwarded`
//! is written for the origin, and never believed; two sources of one fact would have to agree.

mod claims;
mod headers;
mod trust;

use std::net::{IpAddr, SocketAddr};

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};

pub use headers::{is_same, strip_hearsay, strip_own, write};
pub use trust::TrustedProxies;

/// `X-Forwarded-For`.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// `X-Forwarded-Host`.
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// `X-Forwarded-Proto`.
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

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

#[cfg(test)]
mod tests;
