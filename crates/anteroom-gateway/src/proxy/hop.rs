//! Which headers concern one connection only, and must not be passed on?
//!
//! RFC 9110, section 7.6.1: `Connection` and what it names, `Keep-Alive`, `Proxy-*`,
//! `Transfer-Encoding`, `Upgrade`, `TE`. `Trailer` is passed on, as the trailers are. Upgrades put
//! their two headers back themselves.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// Never a header of HTTP, but CGI makes `HTTP_PROXY` of it ("httpoxy").
const PROXY: HeaderName = HeaderName::from_static("proxy");

/// Removes what a request said to this proxy and not to the origin.
pub(super) fn clean_request(headers: &mut HeaderMap) {
    let wants_trailers = takes_trailers(headers);
    clean(headers);
    headers.remove(PROXY);
    if wants_trailers {
        // RFC 9110, section 10.1.4: whoever sends TE names it in Connection.
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
    }
}

/// Removes what an origin said to this proxy and not to the client.
pub(super) fn clean_response(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        // RFC 9112, section 6.3: then Content-Length means nothing, and passing it on would let
        // the next reader believe it.
        headers.remove(CONTENT_LENGTH);
    }
    clean(headers);
}

/// Whether the body is coded in a way that removing `Transfer-Encoding` would hide.
pub(crate) fn has_foreign_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(first) = codings.next() else {
        return false;
    };
    !first.as_bytes().eq_ignore_ascii_case(b"chunked") || codings.next().is_some()
}

fn clean(headers: &mut HeaderMap) {
    remove_named(headers);
    for name in [TRANSFER_ENCODING, UPGRADE, TE, KEEP_ALIVE] {
        headers.remove(name);
    }
    while let Some(name) = headers
        .keys()
        .find(|name| name.as_str().starts_with("proxy-"))
    {
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

/// What a client cannot have removed by naming it: what frames the message, and what this
/// gateway tells the origin.
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
    fn what_concerns_one_connection_is_removed_both_ways() {
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
    fn only_the_trailers_of_te_are_passed_on() {
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
    fn a_length_beside_a_transfer_coding_is_not_passed_on() {
        let input = [("transfer-encoding", "chunked"), ("content-length", "5")];
        check(clean_response, &input, &[]);
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
