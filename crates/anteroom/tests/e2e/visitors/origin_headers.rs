//! Headers about a visitor that the origin gets, and attempts to forge them.

use std::collections::BTreeSet;

use crate::support::raw;
use crate::support::site::{Site, until_inside};

/// The four headers that the origin may trust.
const OURS: [&str; 4] = [
    "anteroom-room",
    "anteroom-visitor",
    "anteroom-seat-ends",
    "anteroom-accepted-at",
];

/// Header by which gateways recognise requests that come back; it says nothing about the visitor.
const MARK: &str = "anteroom-loop";

#[tokio::test]
async fn the_origin_gets_the_visitor_and_no_ticket() {
    let site = Site::with_room(10, "").await;
    let mut visitor = site.visitor();
    let cookies = &mut visitor.cookies;
    cookies.insert("Theme".to_owned(), "dark".to_owned());
    cookies.insert("zone".to_owned(), "a=b".to_owned());
    until_inside(&mut visitor, "/first").await;
    let first = site.origin.last();
    visitor.get("/second?a=1&b=%2f").await;
    let second = site.origin.last();

    assert_eq!(second.target, "/second?a=1&b=%2f");
    assert!(
        visitor
            .cookies
            .keys()
            .any(|name| name.starts_with("__anteroom_"))
    );
    for head in [&first, &second] {
        assert_eq!(head.header("cookie").unwrap(), "Theme=dark; zone=a=b");
        assert_eq!(head.header("anteroom-room").unwrap(), "main");
        let id = head.header("anteroom-visitor").unwrap();
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        // A seat of five minutes ends at the edge of an interval of five seconds.
        let session_ms = head.number("anteroom-seat-ends") - head.number("anteroom-accepted-at");
        assert!((305_000..=310_000).contains(&session_ms), "{session_ms}");
    }
    for name in OURS {
        assert_eq!(first.header(name), second.header(name), "{name}");
    }
}

#[tokio::test]
async fn every_visitor_has_an_id_of_its_own() {
    let site = Site::with_room(100, "").await;
    site.insider().await;
    for _ in 0..9 {
        site.visitor().navigate("/").await;
    }
    let heads = site.origin.heads();
    let ids: BTreeSet<_> = heads
        .iter()
        .map(|head| head.header("anteroom-visitor"))
        .collect();
    assert_eq!(ids.len(), 10);
}

#[tokio::test]
async fn a_client_cannot_forge_the_headers() {
    let site = Site::with_room(10, "bypass = ['path == \"/open\"']").await;
    let mut visitor = site.insider().await;
    let honest = site.origin.last();
    let forged = [
        ("anteroom-room", "vault"),
        ("Anteroom-Visitor", "00000000000000000000000000000000"),
        ("ANTEROOM-SEAT-ENDS", "99999999999999"),
        ("anteroom-accepted-at", "1"),
        ("anteroom-anything", "else"),
        // Origins behind CGI, WSGI and the like cannot distinguish these from the ones with dashes.
        ("anteroom_visitor", "00000000000000000000000000000000"),
        ("Anteroom_Room", "vault"),
        ("anteroom-seat_ends", "99999999999999"),
        ("x_forwarded_for", "192.0.2.1"),
        (
            "connection",
            "anteroom-visitor, anteroom-room, anteroom-seat-ends, cookie",
        ),
    ];
    visitor.send(http::Method::GET, "/", &forged, "").await;
    let head = site.origin.last();
    for name in OURS {
        assert_eq!(head.header(name), honest.header(name), "{name}");
    }
    let names: Vec<_> = head.headers.keys().map(|name| name.as_str()).collect();
    let ours: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("anteroom") && **name != MARK)
        .collect();
    assert_eq!(ours.len(), OURS.len(), "{names:?}");
    assert!(!names.contains(&"x_forwarded_for"), "{names:?}");
    assert_eq!(head.header("x-forwarded-for").unwrap(), "127.0.0.1");

    visitor.send(http::Method::GET, "/open", &forged, "").await;
    let head = site.origin.last();
    assert_eq!(head.target, "/open");
    let names: Vec<_> = head.headers.keys().map(|name| name.as_str()).collect();
    assert!(
        !names
            .iter()
            .any(|name| name.starts_with("anteroom") && *name != MARK),
        "{names:?}"
    );
}

#[tokio::test]
async fn trailers_cannot_forge_the_headers() {
    let site = Site::with_room(10, "").await;
    let visitor = site.insider().await;
    let (name, ticket) = visitor.cookies.first_key_value().unwrap();
    let mut raw = raw::Raw::connect(site.gateway.address).await;
    let head = format!(
        "POST /echo HTTP/1.1\r\nhost: a\r\nconnection: close, te\r\nte: trailers\r\n\
         trailer: anteroom-visitor, anteroom_room, x-sum\r\ntransfer-encoding: chunked\r\n\
         cookie: {name}={ticket}\r\n\r\n"
    );
    raw.send(head).await;
    raw.send(
        "2\r\nhi\r\n0\r\nanteroom-visitor: forged\r\nanteroom_room: forged\r\nx-sum: 1\r\n\r\n",
    )
    .await;
    // The origin echoes the trailers that it received.
    let response = raw.rest().await;
    assert!(response.contains("x-sum: 1"), "{response}");
    assert!(!response.contains("forged"), "{response}");
}
