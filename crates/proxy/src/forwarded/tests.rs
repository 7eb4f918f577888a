//! Tests of trusted proxies and of forwarding headers.

use http::{HeaderMap, HeaderValue};

use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

fn client(peer: &str, headers: &HeaderMap) -> Client {
    let trusted = ["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().unwrap());
    let trusted = TrustedProxies::new(trusted);
    let host = HeaderValue::from_static("shop.example:8080");
    Client::of(peer.parse().unwrap(), Scheme::Http, host, headers, &trusted)
}

#[track_caller]
fn check_address(peer: &str, lines: &[&'static str], expected: &str) {
    let lines: Vec<_> = lines
        .iter()
        .map(|line| ("x-forwarded-for", *line))
        .collect();
    let client = client(peer, &headers(&lines));
    assert_eq!(client.address.to_string(), expected, "{peer} {lines:?}");
}

#[test]
fn an_untrusted_peer_is_the_client_despite_its_headers() {
    check_address("192.0.2.1:1", &[], "192.0.2.1");
    check_address("192.0.2.1:1", &["10.0.0.1", "198.51.100.7"], "192.0.2.1");
    check_address("[::ffff:192.0.2.1]:1", &["1.2.3.4"], "192.0.2.1");
}

#[test]
fn behind_a_trusted_peer_the_right_most_untrusted_address_is_the_client() {
    check_address("10.0.0.1:1", &[], "10.0.0.1");
    check_address("10.0.0.1:1", &["192.0.2.1"], "192.0.2.1");
    check_address("10.0.0.1:1", &["6.6.6.6, 192.0.2.1"], "192.0.2.1");
    check_address("10.0.0.1:1", &["6.6.6.6, 192.0.2.1, 10.1.1.1"], "192.0.2.1");
    check_address(
        "10.0.0.1:1",
        &["6.6.6.6, 192.0.2.1", "10.1.1.1,10.2.2.2"],
        "192.0.2.1",
    );
    check_address("[::ffff:10.0.0.1]:1", &["192.0.2.1"], "192.0.2.1");
    check_address(
        "[2001:db8::1]:1",
        &["[2001:470::9]:443, 2001:db8::5"],
        "2001:470::9",
    );
    check_address("10.0.0.1:1", &["192.0.2.1:5000"], "192.0.2.1");
    check_address("10.0.0.1:1", &["::ffff:192.0.2.1"], "192.0.2.1");
    check_address("10.0.0.1:1", &["10.3.3.3, 10.2.2.2"], "10.3.3.3");
}

#[test]
fn a_malformed_entry_ends_the_chain() {
    check_address("10.0.0.1:1", &["192.0.2.1, unknown"], "10.0.0.1");
    check_address("10.0.0.1:1", &["192.0.2.1, unknown, 10.2.2.2"], "10.2.2.2");
    check_address("10.0.0.1:1", &["192.0.2.1,"], "10.0.0.1");
    check_address("10.0.0.1:1", &["192.0.2.1", "?"], "10.0.0.1");
}

#[test]
fn a_long_chain_is_not_read_to_its_end() {
    let chain: &'static str = Box::leak("10.0.0.2, ".repeat(5_000).into_boxed_str());
    let chain: &'static str = Box::leak(format!("192.0.2.1, {chain}10.0.0.3").into_boxed_str());
    check_address("10.0.0.1:1", &[chain], "10.0.0.2");
}

#[test]
fn only_a_trusted_proxy_sets_the_scheme() {
    let sent = headers(&[("x-forwarded-proto", "HTTPS, http")]);
    assert_eq!(client("10.0.0.1:1", &sent).scheme, Scheme::Https);
    assert_eq!(client("192.0.2.1:1", &sent).scheme, Scheme::Http);
    assert_eq!(client("10.0.0.1:1", &headers(&[])).scheme, Scheme::Http);
}

#[track_caller]
fn check_written(peer: &str, sent: &[(&'static str, &'static str)], expected: &[(&str, &str)]) {
    let mut headers = headers(sent);
    let client = client(peer, &headers);
    write(&mut headers, &client);
    let mut written: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    written.sort_unstable();
    assert_eq!(written, expected, "{peer} {sent:?}");
}

#[test]
fn claims_of_an_untrusted_peer_are_replaced() {
    let sent = [
        ("forwarded", "for=6.6.6.6"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-forwarded-for", "7.7.7.7"),
        ("x-forwarded-port", "443"),
        ("x-forwarded-proto", "https"),
        ("x-other", "kept"),
    ];
    let expected = [
        (
            "forwarded",
            "for=192.0.2.1;host=\"shop.example:8080\";proto=http",
        ),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-host", "shop.example:8080"),
        ("x-forwarded-proto", "http"),
        ("x-other", "kept"),
    ];
    check_written("192.0.2.1:1", &sent, &expected);
}

#[test]
fn an_ipv6_address_is_bracketed_in_forwarded() {
    let expected = [
        (
            "forwarded",
            "for=\"[2001:470::9]\";host=\"shop.example:8080\";proto=http",
        ),
        ("x-forwarded-for", "2001:470::9"),
        ("x-forwarded-host", "shop.example:8080"),
        ("x-forwarded-proto", "http"),
    ];
    check_written("[2001:470::9]:1", &[], &expected);
}

#[test]
fn a_trusted_chain_is_continued() {
    let sent = [
        ("forwarded", "for=192.0.2.1"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-for", "10.1.1.1"),
        ("x-forwarded-host", "outer.example"),
        ("x-forwarded-proto", "https"),
    ];
    let expected = [
        (
            "forwarded",
            "for=192.0.2.1, for=10.0.0.1;host=\"shop.example:8080\";proto=https",
        ),
        ("x-forwarded-for", "192.0.2.1, 10.1.1.1, 10.0.0.1"),
        ("x-forwarded-host", "outer.example"),
        ("x-forwarded-proto", "https"),
    ];
    check_written("10.0.0.1:1", &sent, &expected);
}

#[test]
fn our_own_headers_are_removed_from_requests() {
    let mut headers = headers(&[
        ("anteroom-seat-ends", "1"),
        ("Anteroom-Accepted-At", "2"),
        ("anteroom-seat-ends", "3"),
        ("x-anteroom", "kept"),
    ]);
    strip_own(&mut headers);
    assert_eq!(headers.len(), 1);
    assert!(headers.contains_key("x-anteroom"));
}
