//! Requests of the same client, and requests of different ones.

use http::{HeaderMap, HeaderValue};

use super::*;

struct Sent {
    address: &'static str,
    headers: &'static [(&'static str, &'static str)],
    path: &'static str,
    visitor: Option<[u8; 16]>,
}

const PLAIN: Sent = Sent {
    address: "192.0.2.7",
    headers: &[],
    path: "/",
    visitor: None,
};

fn keys() -> KeyMaker {
    KeyMaker::new([3; 16])
}

fn keys_by(parts: &[Part], sent: &Sent) -> Result<Vec<ClientKey>, Unknown> {
    let mut headers = HeaderMap::new();
    for (name, value) in sent.headers {
        headers.append(*name, HeaderValue::from_static(value));
    }
    let readings = Readings::of(sent.path).unwrap();
    let caller = ClientRequest {
        address: sent.address.parse().unwrap(),
        headers: (&headers).into(),
        readings: &readings,
        tokens: &ShownTokens::of(None, (&headers).into(), 0),
        visitor: sent.visitor,
    };
    keys_of(parts, 64, &keys(), &caller).map(|clients| clients.to_vec())
}

/// Returns the key of the only client.
fn key_by(parts: &[Part], sent: &Sent) -> Result<ClientKey, Unknown> {
    let keys = keys_by(parts, sent)?;
    assert_eq!(keys.len(), 1);
    Ok(keys[0])
}

fn named(parts: &[Part], texts: &[&str]) -> Option<ClientKey> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    key_of_named(parts, 64, &keys(), &texts)
}

#[test]
fn addresses_of_one_network_are_one_client() {
    let from = |address| key_by(&[Part::Address], &Sent { address, ..PLAIN }).unwrap();
    assert_eq!(from("2001:db8::1"), from("2001:db8::ffff:1"));
    assert_ne!(from("2001:db8::1"), from("2001:db8:0:1::1"));
    assert_ne!(from("192.0.2.7"), from("192.0.2.8"));
    assert_eq!(from("::ffff:192.0.2.7"), from("192.0.2.7"));
    assert_eq!(
        named(&[Part::Address], &["2001:db8::"]),
        Some(from("2001:db8::1"))
    );
}

/// Checks the clients of a request with these headers, by name.
fn check(part: &Part, headers: &'static [(&str, &str)], expected: &[&str]) {
    let parts = std::slice::from_ref(part);
    let found = keys_by(parts, &Sent { headers, ..PLAIN });
    let clients = expected.iter().map(|name| named(parts, &[name]).unwrap());
    let clients: Vec<ClientKey> = clients.collect();
    let expected = if clients.is_empty() {
        Err(Unknown::Missing)
    } else {
        Ok(clients)
    };
    assert_eq!(found, expected, "{headers:?}");
}

#[test]
fn a_repeated_header_is_two_clients() {
    let part = Part::Header(HeaderName::from_static("x-api-key"));
    check(&part, &[("x-api-key", "seven")], &["seven"]);
    check(&part, &[], &[]);
    check(&part, &[("x-api-key", "")], &[]);
    let twice = &[("x-api-key", "made-up"), ("x-api-key", "seven")];
    check(&part, twice, &["made-up", "seven"]);
    check(
        &part,
        &[("x-api-key", ""), ("x-api-key", "seven")],
        &["seven"],
    );
    check(
        &part,
        &[("x-api-key", "seven"), ("x-api-key", "seven")],
        &["seven"],
    );
}

#[test]
fn a_cookie_is_parsed_like_the_gateways_own() {
    let part = Part::Cookie("session".to_owned());
    check(&part, &[("cookie", "session=abc")], &["abc"]);
    check(&part, &[("cookie", "a=b; session=x=y;c=d")], &["x=y"]);
    check(&part, &[("cookie", "session =abc")], &["abc"]);
    check(&part, &[("cookie", "session=\"abc\"")], &["abc"]);
    check(&part, &[("cookie", "xsession=abc; session")], &[]);
    check(&part, &[("cookie", "session=")], &[]);
    check(
        &part,
        &[("cookie", "session=made-up; session=abc")],
        &["made-up", "abc"],
    );
    check(
        &part,
        &[("cookie", "session=a"), ("cookie", "session=b")],
        &["a", "b"],
    );
}

#[test]
fn another_spelling_of_a_header_does_not_bypass_a_limit() {
    let part = Part::Header(HeaderName::from_static("x-api-key"));
    check(&part, &[("x_api_key", "seven")], &["seven"]);
}

#[test]
fn many_made_up_cookies_do_not_hide_the_real_one() {
    let part = Part::Cookie("session".to_owned());
    let many = "session=made-up;".repeat(9) + "session=real";
    let many: &'static str = Box::leak(many.into_boxed_str());
    let headers: &'static [(&str, &str)] = Box::leak(Box::new([("cookie", many)]));
    check(&part, headers, &["made-up", "real"]);
}

#[test]
fn a_request_has_a_bounded_number_of_clients() {
    let parts = [
        Part::Header(HeaderName::from_static("x-api-key")),
        Part::Cookie("a".to_owned()),
    ];
    let headers = &[
        ("x-api-key", "1"),
        ("x-api-key", "2"),
        ("x-api-key", "3"),
        ("cookie", "a=1; a=2"),
    ];
    let sent = Sent { headers, ..PLAIN };
    let all = keys_by(&parts, &sent).unwrap();
    assert_eq!(all.len(), 6);
    for (header, cookie) in [("1", "1"), ("3", "2")] {
        assert!(all.contains(&named(&parts, &[header, cookie]).unwrap()));
    }
    let headers = &[
        ("x-api-key", "1"),
        ("x-api-key", "2"),
        ("x-api-key", "3"),
        ("cookie", "a=1; a=2; a=3"),
    ];
    assert_eq!(
        keys_by(&parts, &Sent { headers, ..PLAIN }),
        Err(Unknown::TooMany)
    );
}

#[test]
fn path_segments_are_compared_like_paths_of_rooms() {
    let check = |at: usize, path, expected: &[&str]| {
        let parts = [Part::PathSegment(at)];
        let found = keys_by(&parts, &Sent { path, ..PLAIN });
        let names = expected.iter().map(|name| named(&parts, &[name]).unwrap());
        let mut expected: Vec<ClientKey> = names.collect();
        let mut found = found.unwrap_or_default();
        expected.sort_by_key(|key| key.0);
        found.sort_by_key(|key| key.0);
        assert_eq!(found, expected, "{path}");
    };
    check(1, "/tenants/7/orders", &["tenants"]);
    check(2, "/tenants/7/orders", &["7"]);
    check(4, "/tenants/7/orders", &[]);
    check(2, "/tenants/", &[]);
    for path in ["/tenants/ACME", "/tenants/%61cme", "/tenants/acme/a%2Fb"] {
        check(2, path, &["acme"]);
    }
    check(2, "/tenants/acme%2Fb", &["acme", "acme%2fb"]);
    check(2, "//tenants/acme", &["tenants", "acme"]);
}

#[test]
fn several_parts_are_all_needed() {
    let both = [Part::Address, Part::PathSegment(1)];
    let sent = |path| Sent { path, ..PLAIN };
    assert_eq!(
        key_by(&both, &sent("/a")).ok(),
        named(&both, &["192.0.2.7", "a"])
    );
    assert_eq!(key_by(&both, &PLAIN), Err(Unknown::Missing));
    assert_ne!(key_by(&both, &sent("/a")), key_by(&both, &sent("/b")));
}

#[test]
fn without_parts_all_are_one_client_and_each_visitor_is_one() {
    assert!(key_by(&[], &PLAIN).is_ok(), "all requests are one client");
    assert_eq!(key_by(&[Part::Visitor], &PLAIN), Err(Unknown::Missing));
    let known = |visitor| Sent {
        visitor: Some([visitor; 16]),
        ..PLAIN
    };
    let [one, other] = [1, 2].map(|visitor| key_by(&[Part::Visitor], &known(visitor)).unwrap());
    assert_ne!(one, other);
    assert_eq!(named(&[Part::Visitor], &["1"]), None);
}

#[test]
fn a_client_without_a_key_differs_from_all_with_one() {
    let parts = [Part::Header(HeaderName::from_static("x-api-key"))];
    let instead = key_of_address(&keys(), "192.0.2.7".parse().unwrap(), 64);
    assert_ne!(named(&parts, &["192.0.2.7"]), Some(instead));
}
