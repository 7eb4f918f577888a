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

fn keys_by(parts: &[Part], asked: &Asked) -> Result<Vec<CallKey>, Unknown> {
    let mut headers = HeaderMap::new();
    for (name, value) in asked.headers {
        headers.append(*name, HeaderValue::from_static(value));
    }
    let readings = Readings::of(asked.path).unwrap();
    let caller = ClientRequest {
        address: asked.address.parse().unwrap(),
        headers: &headers,
        readings: &readings,
        tokens: &ShownTokens::of(None, &headers, 0),
        visitor: asked.visitor,
    };
    keys_of(parts, 64, &keys(), &caller).map(|clients| clients.to_vec())
}

/// The one client that it is.
fn key_by(parts: &[Part], asked: &Asked) -> Result<CallKey, Unknown> {
    let keys = keys_by(parts, asked)?;
    assert_eq!(keys.len(), 1);
    Ok(keys[0])
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

/// Who calls with headers like these, by names.
fn check(part: &Part, headers: &'static [(&str, &str)], expected: &[&str]) {
    let parts = std::slice::from_ref(part);
    let found = keys_by(parts, &Asked { headers, ..PLAIN });
    let clients = expected.iter().map(|name| named(parts, &[name]).unwrap());
    let clients: Vec<CallKey> = clients.collect();
    let expected = if clients.is_empty() {
        Err(Unknown::Missing)
    } else {
        Ok(clients)
    };
    assert_eq!(found, expected, "{headers:?}");
}

#[test]
fn a_header_that_stands_twice_is_two_clients() {
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
fn a_cookie_is_read_as_the_gateway_reads_its_own() {
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
fn another_spelling_of_a_header_is_no_way_around_a_limit() {
    let part = Part::Header(HeaderName::from_static("x-api-key"));
    check(&part, &[("x_api_key", "seven")], &["seven"]);
}

#[test]
fn no_cookie_hides_behind_many_others() {
    let part = Part::Cookie("session".to_owned());
    let many = "session=made-up;".repeat(9) + "session=real";
    let many: &'static str = Box::leak(many.into_boxed_str());
    let headers: &'static [(&str, &str)] = Box::leak(Box::new([("cookie", many)]));
    check(&part, headers, &["made-up", "real"]);
}

#[test]
fn nobody_is_more_clients_than_anybody_honest_is() {
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
    let asked = Asked { headers, ..PLAIN };
    let all = keys_by(&parts, &asked).unwrap();
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
        keys_by(&parts, &Asked { headers, ..PLAIN }),
        Err(Unknown::TooMany)
    );
}

#[test]
fn segments_of_a_path_are_compared_as_rooms_are_found() {
    let check = |at: usize, path, expected: &[&str]| {
        let parts = [Part::PathSegment(at)];
        let found = keys_by(&parts, &Asked { path, ..PLAIN });
        let names = expected.iter().map(|name| named(&parts, &[name]).unwrap());
        let mut expected: Vec<CallKey> = names.collect();
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
    assert!(key_by(&[], &PLAIN).is_ok(), "everybody");
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
