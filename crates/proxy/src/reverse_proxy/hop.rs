//! Hop-by-hop headers, which must not be forwarded.
//!
//! RFC 9110, section 7.6.1: `Connection` and what it names, `Keep-Alive`, `Proxy-*`,
//! `Transfer-Encoding`, `Upgrade`, `TE`. `Trailer` is passed on, as the trailers are. Upgrades put
//! their two headers back themselves.
//!
//! This module also reduces the length of a response to one header, and [`via`] names this hop.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, HeaderValue, Version};

use crate::cookies;

/// Removes the hop-by-hop headers of a request.
pub(crate) fn clean_request(headers: &mut HeaderMap) {
    let wants_trailers = takes_trailers(headers);
    // Not an HTTP header, but CGI makes `HTTP_PROXY` of it ("httpoxy").
    clean(headers, |name| is_of_proxies(name) || name == "proxy");
    if wants_trailers {
        // RFC 9110, section 10.1.4: a sender of TE names it in Connection.
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
    }
}

/// Removes the hop-by-hop headers of a response, and headers that only the gateway may set.
pub(crate) fn clean_response(headers: &mut HeaderMap) {
    cookies::without_set(headers, cookies::PREFIX);
    if headers.contains_key(TRANSFER_ENCODING) {
        // RFC 9112, section 6.3: Content-Length has no meaning then, and the next reader might
        // trust it.
        headers.remove(CONTENT_LENGTH);
    }
    clean(headers, is_of_proxies);
}

/// Whether the body is coded in a way that removing `Transfer-Encoding` would hide.
pub(crate) fn has_foreign_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(first) = codings.next() else {
        return false;
    };
    !first.as_bytes().eq_ignore_ascii_case(b"chunked") || codings.next().is_some()
}

/// Adds this hop to a message of this version (RFC 9110, section 7.6.3). A new line continues the
/// list, so nothing is copied.
pub(crate) fn via(headers: &mut HeaderMap, version: Version) {
    let hop = match version {
        Version::HTTP_09 | Version::HTTP_10 => "1.0 anteroom",
        Version::HTTP_2 => "2.0 anteroom",
        _ => "1.1 anteroom",
    };
    headers.append(VIA, HeaderValue::from_static(hop));
}

/// Error of a response with two lengths, or with one that is not a number: its end is unknown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct UnclearLength;

/// Reduces the length of a response to one header. With a transfer coding it has no meaning and is
/// removed later.
pub(crate) fn unify_length(headers: &mut HeaderMap) -> Result<(), UnclearLength> {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lines.next() else {
        return Ok(());
    };
    let is_single = lines.next().is_none() && number(first.as_bytes()).is_some();
    if is_single || headers.contains_key(TRANSFER_ENCODING) {
        return Ok(());
    }
    let lines = headers.get_all(CONTENT_LENGTH).iter();
    let mut lengths = lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .map(|length| number(length.trim_ascii()));
    let length = lengths.next().flatten().ok_or(UnclearLength)?;
    if lengths.any(|other| other != Some(length)) {
        return Err(UnclearLength);
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(())
}

/// Parses a number of digits only.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Whether a header is a rare hop-by-hop header. One pass over all names is cheaper than a look-up
/// of each.
fn is_of_proxies(name: &str) -> bool {
    name.starts_with("proxy-") || name == "keep-alive"
}

fn clean(headers: &mut HeaderMap, is_dropped: impl Fn(&str) -> bool) {
    remove_named(headers);
    for name in [TRANSFER_ENCODING, UPGRADE, TE] {
        headers.remove(name);
    }
    while let Some(name) = headers.keys().find(|name| is_dropped(name.as_str())) {
        let name = name.clone();
        headers.remove(name);
    }
}

/// Removes `Connection` and the headers that it names.
fn remove_named(headers: &mut HeaderMap) {
    let is_single = headers.get_all(CONNECTION).iter().nth(1).is_none();
    if is_single {
        if let Some(line) = headers.remove(CONNECTION) {
            remove_tokens(headers, &line);
        }
        return;
    }
    let lines: Vec<_> = headers.get_all(CONNECTION).iter().cloned().collect();
    headers.remove(CONNECTION);
    for line in lines {
        remove_tokens(headers, &line);
    }
}

fn remove_tokens(headers: &mut HeaderMap, line: &HeaderValue) {
    for token in line.as_bytes().split(|byte| *byte == b',') {
        let token = token.trim_ascii();
        let is_usual = token.eq_ignore_ascii_case(b"keep-alive")
            || token.eq_ignore_ascii_case(b"close")
            || token.eq_ignore_ascii_case(b"upgrade");
        if is_usual {
            continue;
        }
        if let Ok(name) = HeaderName::from_bytes(token)
            && !is_protected(&name)
        {
            headers.remove(name);
        }
    }
}

/// Whether `Connection` cannot remove this header: framing, and the gateway's own headers for the
/// origin.
fn is_protected(name: &HeaderName) -> bool {
    *name == HOST
        || *name == CONTENT_LENGTH
        || name.as_str().starts_with("anteroom-")
        || name.as_str().starts_with("x-forwarded-")
        || name.as_str() == "forwarded"
}

fn takes_trailers(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(TE).iter();
    let mut tokens = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    type Pairs<'a> = &'a [(&'static str, &'static str)];

    #[track_caller]
    fn check(clean: fn(&mut HeaderMap), input: Pairs<'_>, expected: Pairs<'_>) {
        let mut cleaned = headers(input);
        clean(&mut cleaned);
        assert_eq!(cleaned, headers(expected), "{input:?}");
    }

    #[test]
    fn hop_by_hop_headers_are_removed_both_ways() {
        let input = [
            ("connection", "keep-alive, X-Hop"),
            ("connection", "x-other,  ,x-absent"),
            ("x-hop", "1"),
            ("x-other", "2"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "secret"),
            ("proxy-connection", "keep-alive"),
            ("upgrade", "websocket"),
            ("te", "gzip"),
            ("transfer-encoding", "chunked"),
            ("trailer", "x-sum"),
            ("accept", "*/*"),
        ];
        let expected = [("trailer", "x-sum"), ("accept", "*/*")];
        check(clean_request, &input, &expected);
        check(clean_response, &input, &expected);
    }

    #[test]
    fn only_trailers_of_te_are_forwarded() {
        let expected = [("te", "trailers"), ("connection", "te")];
        check(
            clean_request,
            &[("te", "gzip;q=0.5, Trailers"), ("connection", "TE")],
            &expected,
        );
        check(clean_request, &[("te", "deflate")], &[]);
        check(clean_response, &[("te", "trailers")], &[]);
    }

    #[test]
    fn a_client_cannot_have_our_own_headers_removed() {
        let kept = [
            ("host", "a"),
            ("content-length", "3"),
            ("anteroom-seat-ends", "1"),
            ("x-forwarded-for", "192.0.2.1"),
            ("forwarded", "for=192.0.2.1"),
        ];
        let mut input = kept.to_vec();
        input.push((
            "connection",
            "host, content-length, anteroom-seat-ends, x-forwarded-for, forwarded",
        ));
        check(clean_request, &input, &kept);
    }

    #[test]
    fn the_proxy_header_of_httpoxy_is_removed() {
        check(clean_request, &[("proxy", "http://evil")], &[]);
    }

    #[test]
    fn a_length_beside_a_transfer_coding_is_removed() {
        let input = [("transfer-encoding", "chunked"), ("content-length", "5")];
        check(clean_response, &input, &[]);
    }

    #[test]
    fn differing_lengths_are_an_error() {
        let check = |lines: &[&'static str], expected: Result<&[&'static str], UnclearLength>| {
            let pairs = |lines: &[&'static str]| -> Vec<(&'static str, &'static str)> {
                lines.iter().map(|line| ("content-length", *line)).collect()
            };
            let mut input = headers(&pairs(lines));
            let unified = unify_length(&mut input).map(|()| input);
            assert_eq!(
                unified,
                expected.map(|lines| headers(&pairs(lines))),
                "{lines:?}"
            );
        };
        check(&[], Ok(&[]));
        check(&["0"], Ok(&["0"]));
        check(&["2, 2"], Ok(&["2"]));
        check(&["2", "2,2 ,02"], Ok(&["2"]));
        check(&["18446744073709551615"], Ok(&["18446744073709551615"]));
        for unclear in [
            "2, 3",
            "2,",
            ",2",
            "",
            "+2",
            "-2",
            "2 2",
            "0x2",
            "18446744073709551616",
        ] {
            check(&[unclear], Err(UnclearLength));
        }
        check(&["2", "3"], Err(UnclearLength));
        // With a coding the length has no meaning, and is removed.
        let mut coded = headers(&[("transfer-encoding", "chunked"), ("content-length", "2, 3")]);
        assert_eq!(unify_length(&mut coded), Ok(()));
    }

    #[test]
    fn via_names_the_version_of_the_message() {
        let check = |version, expected: &'static str| {
            let mut named = headers(&[("via", "1.1 cdn")]);
            via(&mut named, version);
            assert_eq!(named, headers(&[("via", "1.1 cdn"), ("via", expected)]));
        };
        check(Version::HTTP_10, "1.0 anteroom");
        check(Version::HTTP_11, "1.1 anteroom");
        check(Version::HTTP_2, "2.0 anteroom");
    }

    #[test]
    fn a_coding_that_is_not_chunked_alone_is_foreign() {
        let check = |lines: &[&'static str], expected| {
            let lines: Vec<_> = lines
                .iter()
                .map(|line| ("transfer-encoding", *line))
                .collect();
            assert_eq!(has_foreign_coding(&headers(&lines)), expected, "{lines:?}");
        };
        check(&[], false);
        check(&["chunked"], false);
        check(&["Chunked"], false);
        check(&["gzip, chunked"], true);
        check(&["gzip", "chunked"], true);
        check(&["chunked", "chunked"], true);
        check(&["chunked;x=1"], true);
    }
}
