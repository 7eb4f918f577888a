//! Header names that origins treat as equal.
//!
//! A client must not send a name that an origin reads as a meaningful header, see [`is_same`]:
//! `content_length` beside `Content-Length` is a message that two readers end in two places.

use http::HeaderMap;
use http::header::HeaderName;

use crate::loops;

/// Name of `X-Forwarded-For`.
pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Name of `X-Forwarded-Host`.
pub(crate) const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// Name of `X-Forwarded-Proto`.
pub(crate) const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Prefix of headers that only this gateway and the origin may send.
const OWN_PREFIX: &str = "anteroom-";

/// Names of several words that mean something to servers, proxies or frameworks. In their own
/// spelling they pass.
pub(super) const MEANINGFUL: [&str; 29] = [
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

/// Whether only this gateway and the origin may send the header. The marks of gateways in front
/// pass.
pub(super) fn is_own(name: &str) -> bool {
    begins(name, OWN_PREFIX) && name != loops::NAME
}

/// Whether an origin may read a name as another, meaningful one.
pub(super) fn is_double(name: &str) -> bool {
    is_odd(name) && MEANINGFUL.iter().any(|meant| is_same(name, meant))
}

/// Whether the header is a claim about the client: `Forwarded`, `X-Forwarded-*`.
pub(super) fn is_hearsay(name: &str) -> bool {
    match name.as_bytes() {
        [b'x', ..] => begins(name, "x-forwarded-"),
        // Most names are excluded here.
        [b'f', ..] => name == "forwarded",
        _ => false,
    }
}

/// Whether a name is hearsay, as [`is_hearsay`] tells, in any case and without odd characters.
pub(super) fn is_hearsay_any_case(name: &str) -> bool {
    const PREFIX: &str = "x-forwarded-";
    let start = name.as_bytes().get(..PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX.as_bytes()))
        || name.eq_ignore_ascii_case("forwarded")
}

/// Whether the header is a claim in a spelling that no proxy writes: a client sent it, and a
/// trusted proxy overlooked it.
pub(super) fn is_disguised(name: &str) -> bool {
    is_hearsay(name) && is_odd(name)
}

/// Whether a name has anything but letters, digits and `-`.
pub(crate) fn is_odd(name: &str) -> bool {
    // No early exit, so that the compiler vectorizes it.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    name.bytes().fold(false, |odd, byte| odd | !is_plain(byte))
}

/// Whether a name has this prefix for an origin that gets its headers by CGI, WSGI or the like.
///
/// There `anteroom-visitor`, `anteroom_visitor` and, with some, `anteroom.visitor` are all
/// `HTTP_ANTEROOM_VISITOR`, and it is undefined which of them the origin sees.
fn begins(name: &str, prefix: &str) -> bool {
    let dashed = |byte: u8| {
        if byte.is_ascii_alphanumeric() {
            byte.to_ascii_lowercase()
        } else {
            b'-'
        }
    };
    name.len() >= prefix.len()
        && prefix
            .bytes()
            .map(dashed)
            .eq(name.bytes().take(prefix.len()).map(dashed))
}

/// Whether an origin may read a name as the other one, see `begins`.
#[must_use]
pub fn is_same(name: &str, other: &str) -> bool {
    name.len() == other.len() && begins(name, other)
}

pub(super) fn remove_where(headers: &mut HeaderMap, is_unwanted: impl Fn(&str) -> bool) {
    // Nearly always there is none, and nothing is allocated.
    while let Some(name) = headers.keys().find(|name| is_unwanted(name.as_str())) {
        let name = name.clone();
        headers.remove(name);
    }
}
