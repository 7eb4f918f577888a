//! Trusted proxies, and the client that they name.
//!
//! `X-Forwarded-For` is read from the right, up to the first malformed entry.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};

use anteroom_config::ServerConfig;
use http::HeaderMap;
use ipnet::IpNet;

use super::claims::ProxyHeaders;
use super::names::{X_FORWARDED_FOR, is_double, is_hearsay_any_case, is_odd, is_own, remove_where};
use crate::header_view::{HeaderView, visible};
use crate::loops;

/// Maximum entries of `X-Forwarded-For` that are read, from the right.
///
/// A chain of trusted proxies has two or three. If the maximum is too small, a proxy of a longer
/// chain counts as the client. If it is too large, a client can make the gateway read many entries.
const ENTRIES_MAX: usize = 32;

/// Proxies whose `X-Forwarded-*` headers are trusted, and other headers that only they may send.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    headers: ProxyHeaders,
}

impl TrustedProxies {
    /// Trusts all peers in these networks.
    #[must_use]
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self {
            networks: networks.into_iter().collect(),
            headers: ProxyHeaders::default(),
        }
    }

    /// Returns the proxies of `[server]`.
    #[must_use]
    pub fn of(server: &ServerConfig) -> Self {
        let networks = server.trusted_proxies.iter().copied();
        Self::new(networks).believing(&server.trusted_proxy_headers)
    }

    /// Sets the headers that only these proxies may send, by names in lower case.
    #[must_use]
    pub(crate) fn believing(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.headers = ProxyHeaders::new(names);
        self
    }

    /// Whether an address is that of a trusted proxy.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// Returns the right-most address that is not trusted; if all are, the left-most that was read.
    pub(super) fn client_behind(&self, peer: IpAddr, headers: HeaderView<'_>) -> IpAddr {
        let mut client = peer;
        let name = X_FORWARDED_FOR;
        let lines = headers.get_all(&name).rev();
        let lines = lines.map(|line| visible(line).unwrap_or("?"));
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

    /// Whether a peer that is not trusted may not send this header, of a name without odd
    /// characters: a claim about the client. Case does not matter.
    pub(crate) fn is_claim(&self, name: &str) -> bool {
        self.headers.contains_any_case(name) || is_hearsay_any_case(name)
    }

    /// Removes headers that the sender of a request may not set: our own, those of trusted proxies
    /// unless `is_trusted`, and doubles of headers that mean something. Returns whether gateways
    /// have marked the request, which needs no extra look-up here.
    pub(crate) fn strip(&self, headers: &mut HeaderMap, is_trusted: bool) -> bool {
        let is_marked = Cell::new(false);
        remove_where(headers, |name| {
            if name == loops::NAME {
                is_marked.set(true);
                return false;
            }
            // No proxy writes an odd spelling: a client sent it, and the proxy overlooked it.
            let is_claim = self.headers.contains(name) && (!is_trusted || is_odd(name));
            is_claim || is_own(name) || is_double(name)
        });
        is_marked.get()
    }
}

/// Parses an address with or without port, with or without brackets.
fn parse_entry(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let bare = entry
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = bare.unwrap_or(entry).parse::<IpAddr>();
    let address = address.or_else(|_| entry.parse::<SocketAddr>().map(|socket| socket.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::super::names::MEANINGFUL;
    use super::*;

    /// Returns the names that remain, in alphabetical order.
    fn left(trusted: &TrustedProxies, is_trusted: bool, names: &[&'static str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for name in names {
            headers.append(*name, HeaderValue::from_static("forged"));
        }
        trusted.strip(&mut headers, is_trusted);
        let mut left: Vec<_> = headers.keys().map(ToString::to_string).collect();
        left.sort_unstable();
        left
    }

    #[test]
    fn claims_pass_only_from_trusted_peers_in_exact_spelling() {
        let trusted = TrustedProxies::default();
        for name in anteroom_config::TRUSTED_PROXY_HEADERS {
            assert_eq!(left(&trusted, false, &[name]), [""; 0], "{name}");
            assert_eq!(left(&trusted, true, &[name]), [name], "{name}");
        }
        let odd = ["x_real_ip", "x-client.ip", "true_client-ip"];
        assert_eq!(left(&trusted, true, &odd), [""; 0]);
        let others = ["x-custom", "cookie", "x_custom", "true-client", "te"];
        assert_eq!(left(&trusted, false, &others).len(), others.len());
    }

    #[test]
    fn the_header_list_is_configurable() {
        let trusted = TrustedProxies::default().believing(["x-edge-user"]);
        let names = ["x-edge-user", "x_edge_user", "x-real-ip"];
        assert_eq!(left(&trusted, false, &names), ["x-real-ip"]);
        assert_eq!(left(&trusted, true, &names), ["x-edge-user", "x-real-ip"]);
    }

    #[test]
    fn doubles_of_meaningful_headers_are_always_dropped() {
        let trusted = TrustedProxies::default();
        for name in MEANINGFUL {
            assert_eq!(left(&trusted, false, &[name]), [name], "{name}");
        }
        let doubles = [
            "content_length",
            "transfer_encoding",
            "content.type",
            "user_agent",
        ];
        for is_trusted in [false, true] {
            assert_eq!(left(&trusted, is_trusted, &doubles), [""; 0]);
        }
    }

    #[test]
    fn our_own_headers_are_dropped_except_loop_marks() {
        let names = ["anteroom-room", "anteroom_loop", "anteroom-loop"];
        let left = left(&TrustedProxies::default(), true, &names);
        assert_eq!(left, ["anteroom-loop"]);
    }
}
