//! Whose word is believed, and whom do they name?
//!
//! It reads `X-Forwarded-For` from the right, and gives up at the first thing it cannot read.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};

use anteroom_config::ServerConfig;
use http::HeaderMap;
use ipnet::IpNet;

use super::claims::ProxyHeaders;
use super::names::{X_FORWARDED_FOR, is_double, is_odd, is_own, remove_where};
use crate::loops;

/// Entries of `X-Forwarded-For` that are looked at, from the right.
///
/// A chain of trusted proxies is two or three long. Too small, and a longer chain makes one of
/// its proxies the client; too large, and a client pays us to read its inventions.
const ENTRIES_MAX: usize = 32;

/// Proxies whose `X-Forwarded-*` headers are believed, and other headers that only they may send.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    headers: ProxyHeaders,
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
    pub(crate) fn believing(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
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

    /// Removes what the sender of a request may not say: our own headers; those that only a trusted
    /// proxy may send, unless `is_trusted`; and doubles of headers that mean something. Returns
    /// whether gateways have marked the request: that is seen on the way, and so needs no look-up.
    pub(crate) fn strip(&self, headers: &mut HeaderMap, is_trusted: bool) -> bool {
        let is_marked = Cell::new(false);
        remove_where(headers, |name| {
            if name == loops::NAME {
                is_marked.set(true);
                return false;
            }
            // No proxy writes an odd spelling: it is a client's, which the proxy has overlooked.
            let is_claim = self.headers.contains(name) && (!is_trusted || is_odd(name));
            is_claim || is_own(name) || is_double(name)
        });
        is_marked.get()
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::super::names::MEANINGFUL;
    use super::*;

    /// What is left of these names, in the order of the alphabet.
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
    fn who_names_the_client_must_be_trusted_and_spell_it_right() {
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
    fn the_list_is_the_operators() {
        let trusted = TrustedProxies::default().believing(["x-edge-user"]);
        let names = ["x-edge-user", "x_edge_user", "x-real-ip"];
        assert_eq!(left(&trusted, false, &names), ["x-real-ip"]);
        assert_eq!(left(&trusted, true, &names), ["x-edge-user", "x-real-ip"]);
    }

    #[test]
    fn doubles_of_headers_that_mean_something_are_dropped_whoever_sends_them() {
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
    fn our_own_headers_are_dropped_but_for_the_marks_of_gateways() {
        let names = ["anteroom-room", "anteroom_loop", "anteroom-loop"];
        let left = left(&TrustedProxies::default(), true, &names);
        assert_eq!(left, ["anteroom-loop"]);
    }
}
