//! Who is the same client, and who is another?

use http::HeaderValue;

use super::*;

struct Asked {
    address: &'static str,
    headers: &'static [(&'static str, &'static str)],
    path: &'static str,
    visitor: Option<[u8; 16]>,
}

const PLAIN: Asked = Asked {
    address: "192.0.2.7",
    headers: &[],
    path: "/",
    visitor: None,
};

fn keys() -> KeyMaker {
    KeyMaker::new([3; 16])
}

fn key_by(parts: &[Part], asked: &Asked) -> Result<CallKey, Unknown> {
    let mut headers = HeaderMap::new();
    for (name, value) in asked.headers {
        headers.append(*name, HeaderValue::from_static(value));
    }
    let readings = Readings::of(asked.path).unwrap();
    let caller = Caller {
        address: asked.address.parse().unwrap(),
        headers: &headers,
        readings: &readings,
        visitor: asked.visitor,
    };
    key(parts, 64, &keys(), &caller)
}

fn named(parts: &[Part], texts: &[&str]) -> Option<CallKey> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    key_of_named(parts, 64, &keys(), &texts)
}

#[test]
fn addresses_of_one_network_are_one_client() {
    let from = |address| key_by(&[Part::Address], &Asked { address, ..PLAIN }).unwrap();
    assert_eq!(from("2001:db8::1"), from("2001:db8::ffff:1"));
    assert_ne!(from("2001:db8::1"), from("2001:db8:0:1::1"));
    assert_ne!(from("192.0.2.7"), from("192.0.2.8"));
    assert_eq!(from("::ffff:192.0.2.7"), from("192.0.2.7"));
    assert_eq!(
        named(&[Part::Address], &["2001:db8::"]),
        Some(from("2001:db8::1"))
    );
}

/// What is told by headers like these: the client of this name, or why nobody.
fn check(part: &Part, headers: &'static [(&str, &str)], expected: Result<&str, Unknown>) {
    let parts = std::slice::from_ref(part);
    let found = key_by(parts, &Asked { headers, ..PLAIN });
    let expected = expected.map(|name| named(parts, &[name]).unwrap());
    assert_eq!(found, expected, "{headers:?}");
}

#[test]
fn a_header_that_stands_twice_is_nobodys_unless_it_says_the_same() {
    let part = Part::Header(HeaderName::from_static("x-api-key"));
    check(&part, &[("x-api-key", "seven")], Ok("seven"));
    check(&part, &[], Err(Unknown::Missing));
    check(&part, &[("x-api-key", "")], Err(Unknown::Missing));
    let twice = &[("x-api-key", "made-up"), ("x-api-key", "seven")];
    check(&part, twice, Err(Unknown::Ambiguous));
    check(
        &part,
        &[("x-api-key", ""), ("x-api-key", "seven")],
        Err(Unknown::Ambiguous),
    );
    check(
        &part,
        &[("x-api-key", "seven"), ("x-api-key", "seven")],
        Ok("seven"),
    );
}

#[test]
fn a_cookie_is_read_as_the_gateway_reads_its_own() {
    let part = Part::Cookie("session".to_owned());
    check(&part, &[("cookie", "session=abc")], Ok("abc"));
    check(&part, &[("cookie", "a=b; session=x=y;c=d")], Ok("x=y"));
    check(&part, &[("cookie", "session =abc")], Ok("abc"));
    check(&part, &[("cookie", "session=\"abc\"")], Ok("abc"));
    check(
        &part,
        &[("cookie", "xsession=abc; session")],
        Err(Unknown::Missing),
    );
    check(&part, &[("cookie", "session=")], Err(Unknown::Missing));
    check(
        &part,
        &[("cookie", "session=made-up; session=abc")],
        Err(Unknown::Ambiguous),
    );
    check(
        &part,
        &[("cookie", "session=a"), ("cookie", "session=b")],
        Err(Unknown::Ambiguous),
    );
}

#[test]
fn segments_of_a_path_are_compared_as_rooms_are_found() {
    let check = |at: usize, path, expected: Result<&str, Unknown>| {
        let parts = [Part::PathSegment(at)];
        let found = key_by(&parts, &Asked { path, ..PLAIN });
        assert_eq!(
            found,
            expected.map(|name| named(&parts, &[name]).unwrap()),
            "{path}"
        );
    };
    check(1, "/tenants/7/orders", Ok("tenants"));
    check(2, "/tenants/7/orders", Ok("7"));
    check(4, "/tenants/7/orders", Err(Unknown::Missing));
    check(2, "/tenants/", Err(Unknown::Missing));
    for path in ["/tenants/ACME", "/tenants/%61cme", "/tenants/acme/a%2Fb"] {
        check(2, path, Ok("acme"));
    }
    for path in [
        "/tenants/acme%2Fb",
        "/tenants/x/../acme",
        "/tenants;/acme;a=b/c",
        "//tenants/acme",
    ] {
        check(2, path, Err(Unknown::Ambiguous));
    }
}

#[test]
fn several_parts_are_all_needed() {
    let both = [Part::Address, Part::PathSegment(1)];
    let asked = |path| Asked { path, ..PLAIN };
    assert_eq!(
        key_by(&both, &asked("/a")).ok(),
        named(&both, &["192.0.2.7", "a"])
    );
    assert_eq!(key_by(&both, &PLAIN), Err(Unknown::Missing));
    assert_ne!(key_by(&both, &asked("/a")), key_by(&both, &asked("/b")));
}

#[test]
fn everybody_is_one_client_and_a_visitor_is_one() {
    assert!(key_by(&[], &PLAIN).is_ok());
    assert_eq!(key_by(&[Part::Visitor], &PLAIN), Err(Unknown::Missing));
    let known = |visitor| Asked {
        visitor: Some([visitor; 16]),
        ..PLAIN
    };
    let [one, other] = [1, 2].map(|visitor| key_by(&[Part::Visitor], &known(visitor)).unwrap());
    assert_ne!(one, other);
    assert_eq!(named(&[Part::Visitor], &["1"]), None);
}

#[test]
fn whoever_shows_no_key_is_nobody_who_shows_one() {
    let parts = [Part::Header(HeaderName::from_static("x-api-key"))];
    let instead = key_of_address(&keys(), "192.0.2.7".parse().unwrap(), 64);
    assert_ne!(named(&parts, &["192.0.2.7"]), Some(instead));
}
