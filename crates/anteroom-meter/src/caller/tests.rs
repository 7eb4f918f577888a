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

fn with<T>(asked: &Asked, look: impl FnOnce(&Caller<'_>) -> T) -> T {
    let mut headers = HeaderMap::new();
    for (name, value) in asked.headers {
        headers.append(*name, HeaderValue::from_static(value));
    }
    look(&Caller {
        address: asked.address.parse().unwrap(),
        headers: &headers,
        path: asked.path,
        visitor: asked.visitor,
    })
}

fn key_by(parts: &[Part], asked: &Asked) -> Option<CallKey> {
    with(asked, |caller| {
        key(parts, 64, &KeyMaker::new([3; 16]), caller)
    })
}

fn text_by(parts: &[Part], asked: &Asked) -> Option<String> {
    let texts = with(asked, |caller| texts(parts, 64, caller))?;
    let texts = texts
        .into_iter()
        .map(|text| String::from_utf8(text).unwrap());
    Some(texts.collect::<Vec<_>>().join(" "))
}

#[test]
fn addresses_of_one_network_are_one_client() {
    let from = |address| key_by(&[Part::Address], &Asked { address, ..PLAIN }).unwrap();
    assert_eq!(from("2001:db8::1"), from("2001:db8::ffff:1"));
    assert_ne!(from("2001:db8::1"), from("2001:db8:0:1::1"));
    assert_ne!(from("192.0.2.7"), from("192.0.2.8"));
    assert_eq!(from("::ffff:192.0.2.7"), from("192.0.2.7"));
}

#[test]
fn a_client_is_told_by_what_it_sends() {
    let api_key = [Part::Header(HeaderName::from_static("x-api-key"))];
    let asked = Asked {
        headers: &[("x-api-key", "seven"), ("x-api-key", "eight")],
        ..PLAIN
    };
    assert_eq!(text_by(&api_key, &asked).as_deref(), Some("seven"));
    assert_eq!(key_by(&api_key, &PLAIN), None);

    let session = [Part::Cookie("session".to_owned())];
    for (cookie, expected) in [
        ("session=abc", Some("abc")),
        ("a=b; session=x=y;c=d", Some("x=y")),
        ("xsession=abc", None),
        ("session", None),
        ("session=", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::COOKIE, HeaderValue::from_static(cookie));
        let caller = Caller {
            address: "192.0.2.7".parse().unwrap(),
            headers: &headers,
            path: "/",
            visitor: None,
        };
        let found = texts(&session, 64, &caller);
        let expected = expected.map(|value| vec![value.as_bytes().to_vec()]);
        assert_eq!(found, expected, "{cookie}");
    }
}

#[test]
fn segments_of_a_path_are_counted_from_one() {
    let at = |at, path| text_by(&[Part::PathSegment(at)], &Asked { path, ..PLAIN });
    assert_eq!(at(1, "/tenants/7/orders").as_deref(), Some("tenants"));
    assert_eq!(at(2, "/tenants/7/orders").as_deref(), Some("7"));
    assert_eq!(at(4, "/tenants/7/orders"), None);
    assert_eq!(at(2, "/tenants/"), None);
}

#[test]
fn several_parts_are_all_needed() {
    let both = [Part::Address, Part::PathSegment(1)];
    let asked = Asked {
        path: "/a",
        ..PLAIN
    };
    assert_eq!(text_by(&both, &asked).as_deref(), Some("192.0.2.7 a"));
    assert!(key_by(&both, &asked).is_some());
    assert_eq!(key_by(&both, &PLAIN), None);
    assert_ne!(
        key_by(&both, &asked),
        key_by(
            &both,
            &Asked {
                path: "/b",
                ..PLAIN
            }
        )
    );
}

#[test]
fn everybody_is_one_client_and_a_visitor_is_one() {
    assert!(key_by(&[], &PLAIN).is_some());
    assert_eq!(key_by(&[Part::Visitor], &PLAIN), None);
    let known = Asked {
        visitor: Some([0xAB; 16]),
        ..PLAIN
    };
    assert_eq!(text_by(&[Part::Visitor], &known), Some("ab".repeat(16)));
}

#[test]
fn whoever_shows_no_key_is_nobody_who_shows_one() {
    let keys = KeyMaker::new([3; 16]);
    let parts = [Part::Header(HeaderName::from_static("x-api-key"))];
    let instead = key_of_address(&keys, "192.0.2.7".parse().unwrap(), 64);
    let forged = Asked {
        headers: &[("x-api-key", "192.0.2.7")],
        ..PLAIN
    };
    assert_ne!(key_by(&parts, &forged), Some(instead));
}

#[test]
fn values_beyond_all_measure_are_none() {
    let long: &'static str = Box::leak("x".repeat(BYTES_MAX + 1).into_boxed_str());
    let headers: &'static [(&str, &str)] = Box::leak(Box::new([("x-api-key", long)]));
    let parts = [Part::Header(HeaderName::from_static("x-api-key"))];
    assert_eq!(key_by(&parts, &Asked { headers, ..PLAIN }), None);
}
