//! Forwarding headers that the origin gets.
//!
//! `X-Forwarded-For`, `-Proto`, `-Host` and `Forwarded` (RFC 7239). From a trusted proxy they are
//! continued; from any other peer they are untrusted claims and replaced. This module only removes
//! and writes; `client` finds out the client.

use std::io::Write as _;
use std::ops::Range;

use bytes::Bytes;
use http::header::{Entry, FORWARDED, HeaderName};
use http::{HeaderMap, HeaderValue};

use super::client::Client;
use super::names::{
    X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO, is_disguised, is_double, is_hearsay,
    is_own, remove_where,
};
use crate::header_view::HeaderView;

/// Removes every header that begins with `anteroom-`, so that no client can pass itself off as the
/// gateway. It also removes all spellings that an origin may read as such a header, see `begins`,
/// and doubles of headers that mean something.
pub(crate) fn strip_own(headers: &mut HeaderMap) {
    remove_where(headers, |name| is_own(name) || is_double(name));
}

/// Removes the claims of an untrusted peer about the client, in every spelling: `Forwarded` and
/// `X-Forwarded-*`. Further headers of that kind are a setting, see `claims`.
pub(crate) fn strip_hearsay(headers: &mut HeaderMap) {
    remove_where(headers, is_hearsay);
}

/// Writes the forwarding headers for the origin.
pub(crate) fn write(headers: &mut HeaderMap, client: &Client) {
    if client.has_trusted_peer {
        remove_where(headers, is_disguised);
        continue_chain(headers, client);
    } else {
        strip_hearsay(headers);
        begin_chain(headers, client);
    }
}

/// Writes the headers of an untrusted peer, the common case: `X-Forwarded-For` is a slice of the
/// buffer of `Forwarded`.
fn begin_chain(headers: &mut HeaderMap, client: &Client) {
    let (element, address) = forwarded_element(client);
    let address = element.slice(address);
    insert(headers, X_FORWARDED_FOR, address);
    insert(headers, FORWARDED, element);
    let proto = HeaderValue::from_static(client.scheme.as_str());
    headers.insert(X_FORWARDED_PROTO, proto);
    headers.insert(X_FORWARDED_HOST, client.host.clone());
}

fn continue_chain(headers: &mut HeaderMap, client: &Client) {
    let (element, address) = forwarded_element(client);
    append_to_list(headers, X_FORWARDED_FOR, &element[address]);
    append_to_list(headers, FORWARDED, &element);
    if let Entry::Vacant(entry) = headers.entry(X_FORWARDED_PROTO) {
        entry.insert(HeaderValue::from_static(client.scheme.as_str()));
    }
    if let Entry::Vacant(entry) = headers.entry(X_FORWARDED_HOST) {
        entry.insert(client.host.clone());
    }
}

/// Returns this hop as an element of `Forwarded`, and the range of the bare address in it.
fn forwarded_element(client: &Client) -> (Bytes, Range<usize>) {
    let mut element = Vec::with_capacity(96);
    let address = write_element(&mut element, client);
    (Bytes::from(element), address)
}

/// Appends this hop as an element of `Forwarded`. Returns the range of the bare address.
fn write_element(out: &mut Vec<u8>, client: &Client) -> Range<usize> {
    // RFC 7239, section 6: an IPv6 address has brackets, and so needs quotes.
    let (before, after): (&[u8], &[u8]) = if client.peer.is_ipv6() {
        (b"for=\"[", b"]\"")
    } else {
        (b"for=", b"")
    };
    out.extend_from_slice(before);
    let start = out.len();
    write!(out, "{}", client.peer).expect("writing to a Vec cannot fail");
    let address = start..out.len();
    out.extend_from_slice(after);
    out.extend_from_slice(b";host=\"");
    // The intake rejects quotes and backslashes; a value from another source may have them.
    let is_plain = |host: &&str| !host.contains(['"', '\\']);
    let host = Some(client.host()).filter(is_plain).unwrap_or_default();
    out.extend_from_slice(host.as_bytes());
    out.extend_from_slice(b"\";proto=");
    out.extend_from_slice(client.scheme.as_str().as_bytes());
    address
}

/// Appends the header lines of this hop, as [`write()`] puts them into a map. Those of a trusted
/// peer continue what it says in its own `headers`.
pub(crate) fn write_lines(out: &mut Vec<u8>, client: &Client, headers: HeaderView<'_>) {
    let begin_list = |out: &mut Vec<u8>, name: &HeaderName| {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        if client.has_trusted_peer {
            for line in headers.get_all(name) {
                out.extend_from_slice(line);
                out.extend_from_slice(b", ");
            }
        }
    };
    let is_missing = |name: &HeaderName| !client.has_trusted_peer || headers.get(name).is_none();
    begin_list(out, &FORWARDED);
    let address = write_element(out, client);
    out.extend_from_slice(b"\r\n");
    begin_list(out, &X_FORWARDED_FOR);
    out.extend_from_within(address);
    out.extend_from_slice(b"\r\n");
    for (name, value) in [
        (X_FORWARDED_PROTO, client.scheme.as_str().as_bytes()),
        (X_FORWARDED_HOST, client.host.as_bytes()),
    ] {
        if is_missing(&name) {
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Whether [`write_lines`] writes this header of a trusted peer anew. Case does not matter.
pub(crate) fn is_continued(name: &str) -> bool {
    [FORWARDED, X_FORWARDED_FOR]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_str()))
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: Bytes) {
    if let Ok(value) = HeaderValue::from_maybe_shared(value) {
        headers.insert(name, value);
    }
}

/// Joins all lines of `name` into one, and appends an element.
fn append_to_list(headers: &mut HeaderMap, name: HeaderName, element: &[u8]) {
    let mut list = Vec::new();
    for line in headers.get_all(&name) {
        list.extend_from_slice(line.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(element);
    insert(headers, name, Bytes::from(list));
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::super::client::Scheme;
    use super::*;

    /// Returns the names that remain, in alphabetical order.
    fn left(names: &[&'static str], strip: impl Fn(&mut HeaderMap)) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for name in names {
            headers.append(*name, HeaderValue::from_static("forged"));
        }
        strip(&mut headers);
        let mut left: Vec<_> = headers.keys().map(ToString::to_string).collect();
        left.sort_unstable();
        left
    }

    const DISGUISED: [&str; 6] = [
        "anteroom_visitor",
        "anteroom-seat_ends",
        "Anteroom.Room",
        "x_forwarded_for",
        "x-forwarded_proto",
        "x_anteroom",
    ];

    #[test]
    fn disguised_spellings_of_our_names_are_removed() {
        let claims = ["x-forwarded_proto", "x_anteroom", "x_forwarded_for"];
        assert_eq!(left(&DISGUISED, strip_own), claims);
        let own = [
            "anteroom-seat_ends",
            "anteroom.room",
            "anteroom_visitor",
            "x_anteroom",
        ];
        assert_eq!(left(&DISGUISED, strip_hearsay), own);
    }

    #[test]
    fn a_disguised_header_is_removed_even_from_a_trusted_proxy() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let client = Client {
            address,
            scheme: Scheme::Http,
            host: HeaderValue::from_static("a"),
            peer: address,
            has_trusted_peer: true,
        };
        let sent = ["x_forwarded_for", "x-forwarded-port"];
        let expected = [
            "forwarded",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-port",
            "x-forwarded-proto",
        ];
        assert_eq!(left(&sent, |headers| write(headers, &client)), expected);
    }
}
