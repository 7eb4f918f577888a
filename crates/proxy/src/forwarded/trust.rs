//! Whose word is believed, and whom do they name?
//!
//! It reads `X-Forwarded-For` from the right, and gives up at the first thing it cannot read.

use std::net::{IpAddr, SocketAddr};

use anteroom_config::ServerConfig;
use http::HeaderMap;
use ipnet::IpNet;

use super::X_FORWARDED_FOR;
use super::claims::ProxyHeaders;

/// Entries of `X-Forwarded-For` that are looked at, from the right.
///
/// A chain of trusted proxies is two or three long. Too small, and a longer chain makes one of
/// its proxies the client; too large, and a client pays us to read its inventions.
const ENTRIES_MAX: usize = 32;

/// Proxies whose `X-Forwarded-*` headers are believed, and other headers that only they may send.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    pub(super) headers: ProxyHeaders,
}

impl TrustedProxies {
    /// Trusts everybody in these networks.
    #[must_use]
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self {
            networks: networks.into_iter().collect(),
            headers: ProxyHeaders::default(),
        }
    }

    /// As `[server]` says.
    #[must_use]
    pub fn of(server: &ServerConfig) -> Self {
        let networks = server.trusted_proxies.iter().copied();
        Self::new(networks).believing(&server.trusted_proxy_headers)
    }

    /// The same proxies, which alone may send the headers of these names, given in lower case.
    #[must_use]
    pub fn believing(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.headers = ProxyHeaders::new(names);
        self
    }

    /// Whether this address is a trusted proxy's.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// The right-most address that is not trusted; if all are, the left-most that was read.
    pub(super) fn client_behind(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        let lines = headers.get_all(X_FORWARDED_FOR);
        // `GetAll` iterates from both ends.
        let lines = lines.iter().rev().map(|line| line.to_str().unwrap_or("?"));
        let entries = lines.flat_map(|line| line.rsplit(','));
        for entry in entries.take(ENTRIES_MAX) {
            let Some(address) = parse_entry(entry) else {
                break;
            };
            client = address;
            if !self.contains(address) {
                break;
            }
        }
        client
    }
}

/// An address with or without port, with or without brackets.
fn parse_entry(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let bare = entry
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = bare.unwrap_or(entry).parse::<IpAddr>();
    let address = address.or_else(|_| entry.parse::<SocketAddr>().map(|socket| socket.ip()));
    address.ok().map(|address| address.to_canonical())
}
