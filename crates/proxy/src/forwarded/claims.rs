//! Which headers may only a trusted proxy send, and which nobody?
//!
//! Proxies name the client by many headers besides `X-Forwarded-*`. An origin that reads one
//! believes whoever sends it. So they pass if a trusted proxy sends them, and are dropped
//! otherwise. Which headers these are is a setting (`server.trusted_proxy_headers`).
//!
//! Nobody may send a name that an origin takes for a header that means something, see [`is_same`]:
//! `content_length` beside `Content-Length` is a message that two readers end in two places.

use std::cell::Cell;

use http::HeaderMap;

use super::TrustedProxies;
use super::headers::{is_odd, is_own, is_same, remove_where};
use crate::loops;

/// Names of more than one word that mean something to servers, proxies or frameworks. In their own
/// spelling they pass.
const MEANINGFUL: [&str; 29] = [
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "max-forwards",
    "proxy-authorization",
    "proxy-connection",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-fetch-user",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "sec-websocket-version",
    "transfer-encoding",
    "user-agent",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// Names that only a trusted proxy may send, in lower case.
#[derive(Clone, Debug)]
pub(super) struct ProxyHeaders {
    names: Vec<Box<str>>,
    /// One bit for each first letter of a name: most headers of a request are done with here.
    initials: u32,
}

impl ProxyHeaders {
    pub(super) fn new(names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let names = names.into_iter().map(|name| name.as_ref().to_owned());
        let names: Vec<Box<str>> = names.map(String::into_boxed_str).collect();
        let initials = names.iter().map(|name| initial(name));
        Self {
            initials: initials.fold(0, |all, one| all | one),
            names,
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.initials & initial(name) != 0 && self.names.iter().any(|listed| is_same(name, listed))
    }
}

impl Default for ProxyHeaders {
    fn default() -> Self {
        Self::new(anteroom_config::TRUSTED_PROXY_HEADERS)
    }
}

fn initial(name: &str) -> u32 {
    name.bytes().next().map_or(0, |byte| 1 << (byte & 31))
}

/// Whether an origin may take a name for another one that means something.
pub(super) fn is_double(name: &str) -> bool {
    is_odd(name) && MEANINGFUL.iter().any(|meant| is_same(name, meant))
}

impl TrustedProxies {
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

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
