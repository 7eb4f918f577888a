//! Host names under which the admin address may be requested.
//!
//! A page of another site can point its own name at a loopback address (DNS rebinding). The browser
//! then treats both as one site, and the page may read the admin address. The `Host` header shows
//! the foreign name. An IP address in `Host` is no such name, and is allowed where it can be ours.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

/// Allowed values of `Host`.
#[derive(Clone, Debug)]
pub(crate) struct AllowedHosts {
    own: IpAddr,
    /// Additional names, in lower case and without a port.
    names: Vec<String>,
}

impl AllowedHosts {
    /// Allows the addresses of a listener at `own`, and more names.
    pub(crate) fn new(own: IpAddr, names: Vec<String>) -> Self {
        Self { own, names }
    }

    /// Whether the listener is at a loopback address, so that only this machine reaches it.
    pub(crate) fn is_loopback(&self) -> bool {
        self.own.is_loopback()
    }

    /// Whether a request may have this `Host`. A request without one is allowed, because browsers
    /// always send it. Only a loopback address has names that we can know; another address is
    /// checked if names were given.
    pub(crate) fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        if !self.own.is_loopback() && self.names.is_empty() {
            return true;
        }
        let requested = headers.get_all(HOST).iter().map(|host| host.as_bytes());
        let requested = requested.map(|host| Authority::try_from(host).ok());
        let requested = requested.chain(uri.authority().cloned().map(Some));
        let mut requested = requested.filter(|host| {
            // HTTP prescribes an empty one for a request without a host.
            host.as_ref().is_none_or(|host| !host.as_str().is_empty())
        });
        requested.all(|host| host.is_some_and(|host| self.is_ours(host.host())))
    }

    fn is_ours(&self, host: &str) -> bool {
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        if name == "localhost" || name.ends_with(".localhost") || self.names.contains(&name) {
            return true;
        }
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        bare.unwrap_or(host).parse().is_ok_and(|address: IpAddr| {
            let address = address.to_canonical();
            address.is_loopback() || address == self.own || self.own.is_unspecified()
        })
    }
}

/// Whether the requesting page, if there is one, comes from the requested host.
pub(crate) fn is_own_origin(uri: &Uri, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).map(|host| host.as_bytes());
    let host = host.or_else(|| uri.authority().map(|host| host.as_str().as_bytes()));
    headers.get_all(ORIGIN).iter().all(|origin| {
        let origin = origin.as_bytes();
        let from = origin.strip_prefix(b"http://");
        let from = from.or_else(|| origin.strip_prefix(b"https://"));
        match (from, host) {
            (Some(from), Some(host)) => from.eq_ignore_ascii_case(host),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(name: http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn check(own: &str, names: &[&str], hosts: &[&str], is_allowed: bool) {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let allowed = AllowedHosts::new(own.parse().unwrap(), names);
        let found = allowed.allow(&Uri::from_static("/"), &headers(HOST, hosts));
        assert_eq!(found, is_allowed, "{hosts:?} at {own}");
    }

    #[test]
    fn a_loopback_address_allows_only_its_names() {
        for host in [
            "localhost",
            "LOCALHOST:8081",
            "localhost.",
            "shop.localhost:1",
            "127.0.0.1:8081",
            "127.9.9.9",
            "[::1]:8081",
            "[::ffff:127.0.0.1]",
        ] {
            check("127.0.0.1", &[], &[host], true);
        }
        for host in [
            "evil.example",
            "evil.example:8081",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "user@evil.example",
            "a b",
        ] {
            check("127.0.0.1", &[], &[host], false);
            check("127.0.0.1", &[], &["localhost", host], false);
        }
        check("127.0.0.1", &[], &[], true);
        check("127.0.0.1", &["ops.example"], &["Ops.Example:80"], true);
        check("127.0.0.1", &["ops.example"], &["evil.example"], false);
    }

    #[test]
    fn another_address_is_checked_if_names_were_given() {
        check("10.0.0.1", &[], &["anything.example"], true);
        check("10.0.0.1", &["ops.example"], &["anything.example"], false);
        check("10.0.0.1", &["ops.example"], &["10.0.0.1:8081"], true);
        check("10.0.0.1", &["ops.example"], &["10.0.0.2:8081"], false);
        check("0.0.0.0", &["ops.example"], &["10.0.0.2:8081"], true);
    }

    #[test]
    fn only_pages_of_this_address_are_allowed() {
        let check = |origins: &[&str], is_own| {
            let mut all = headers(ORIGIN, origins);
            all.insert(HOST, HeaderValue::from_static("localhost:8081"));
            assert_eq!(
                is_own_origin(&Uri::from_static("/"), &all),
                is_own,
                "{origins:?}"
            );
        };
        check(&[], true);
        check(&["http://localhost:8081"], true);
        check(&["https://LOCALHOST:8081"], true);
        check(&["http://localhost:3000"], false);
        check(&["http://evil.example"], false);
        check(&["null"], false);
        check(&["http://localhost:8081", "http://evil.example"], false);
    }
}
