//! Requests that two readers in a row could read in two ways, and what the gateway does with each.
//!
//! The test sends raw bytes to the gateway, followed by a request that must reach no origin; an
//! origin records requests. The gateway rejects most of them. For the others in the list the origin
//! must see one way only.

mod chunks;
mod fields;
mod heads;

use crate::raw_http::http2_wire::{End, Field, Http2Wire, get, tls};
use crate::raw_http::support::{Recorder, Setup, Wire, gateway};
use chunks::CHUNKS;
use fields::{AUTHORITY, HTTP2, METHOD, PATH, SCHEME};
use heads::HEADS;

/// Request that follows a rejected one on the same connection, and must reach no origin.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// Expected result of a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Response with this status, and the connection ends.
    Rejected(u16),
    /// The origin sees exactly one request, which contains the first texts and none of the second
    /// ones.
    Seen(&'static [&'static str], &'static [&'static str]),
}
use Fate::{Rejected, Seen};

fn lines(text: &str) -> String {
    text.replace('|', "\r\n")
}

async fn check(origin: &Recorder, gateway: std::net::SocketAddr, sent: &str, fate: Fate) {
    let mut client = Wire::connect(gateway).await;
    client.try_send(sent.as_bytes()).await;
    match fate {
        Rejected(status) => {
            client.try_send(SMUGGLED.as_bytes()).await;
            let response = client.rest().await;
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status} ")),
                "{sent:?}: {response}"
            );
            assert_eq!(
                response.matches("HTTP/1.").count(),
                1,
                "{sent:?}: {response}"
            );
            assert_eq!(origin.take(), [""; 0], "{sent:?}");
        }
        Seen(parts, absent) => {
            let response = client.read_until("\r\n\r\nhi").await;
            assert!(
                response.starts_with("HTTP/1.1 200 "),
                "{sent:?}: {response}"
            );
            let seen = origin.take();
            assert_eq!(seen.len(), 1, "{sent:?}: {seen:?}");
            for part in parts {
                assert!(seen[0].contains(part), "{sent:?} lacks {part:?}: {seen:?}");
            }
            for part in absent {
                let has = seen[0].to_lowercase().contains(part);
                assert!(!has, "{sent:?} has {part:?}: {seen:?}");
            }
        }
    }
}

#[tokio::test]
async fn heads_are_read_in_one_way_or_rejected() {
    let origin = Recorder::start().await;
    let gateway = gateway(Setup::default(), origin.address).await;
    for (sent, fate) in HEADS {
        check(&origin, gateway.address, &lines(sent), *fate).await;
    }
}

#[tokio::test]
async fn chunks_are_read_in_one_way_or_rejected() {
    let origin = Recorder::start().await;
    let gateway = gateway(Setup::default(), origin.address).await;
    let head = "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked||";
    for (sent, fate) in CHUNKS {
        check(
            &origin,
            gateway.address,
            &lines(&format!("{head}{sent}")),
            *fate,
        )
        .await;
    }
    let long = format!("{head}1;{}|x|0||", "a".repeat(300));
    check(&origin, gateway.address, &lines(&long), Rejected(400)).await;
    for (sent, fate) in HEADS {
        // The same request behind a valid one, cut in the middle.
        if let Rejected(_) = fate {
            let mut client = Wire::connect(gateway.address).await;
            client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").await;
            client.read_until("\r\n\r\nhi").await;
            let text = lines(sent) + SMUGGLED;
            let (start, end) = text.as_bytes().split_at(text.len() / 3);
            client.try_send(start).await;
            tokio::task::yield_now().await;
            client.try_send(end).await;
            let response = client.rest().await;
            assert_eq!(
                response.matches("HTTP/1.").count(),
                1,
                "{sent:?}: {response}"
            );
            assert_eq!(origin.take().len(), 1, "{sent:?}");
        }
    }
}

#[tokio::test]
async fn by_http2_requests_are_read_in_one_way_or_rejected() {
    let origin = Recorder::start().await;
    let (tls, connector) = tls();
    let setup = Setup {
        tls: Some(tls),
        ..Setup::default()
    };
    let gateway = gateway(setup, origin.address).await;
    for (fields, expected) in HTTP2 {
        let mut wire = Http2Wire::connect(gateway.address, &connector).await;
        wire.headers(1, fields, true).await;
        let shown: Vec<_> = fields
            .iter()
            .map(|(name, value)| [name, value].map(|text| String::from_utf8_lossy(text)))
            .collect();
        assert_eq!(wire.end(1).await, *expected, "{shown:?}");
        assert_eq!(origin.take(), [""; 0], "{shown:?}");
    }
    // Bodies that are longer or shorter than they declare.
    let post: &[Field] = &[
        (b":method", b"POST"),
        SCHEME,
        PATH,
        AUTHORITY,
        (b"content-length", b"2"),
    ];
    for (data, expected) in [
        (&b"abc"[..], End::Reset(1)),
        (&b"a"[..], End::Reset(1)),
        (&b"ab"[..], End::Answered(200)),
    ] {
        let mut wire = Http2Wire::connect(gateway.address, &connector).await;
        wire.headers(1, post, false).await;
        wire.data(1, data, true).await;
        assert_eq!(wire.end(1).await, expected, "{data:?}");
        assert_eq!(origin.take().len(), usize::from(data == b"ab"), "{data:?}");
    }
    // Allowed requests, and their form at the origin.
    let fragment: &[Field] = &[METHOD, SCHEME, (b":path", b"/x?y#z"), AUTHORITY];
    let host: &[Field] = &[METHOD, SCHEME, (b":path", b"/x?y"), (b"host", b"a")];
    for fields in [fragment, host, &get(b"/x?y")] {
        let mut wire = Http2Wire::connect(gateway.address, &connector).await;
        wire.headers(1, fields, true).await;
        assert_eq!(wire.end(1).await, End::Answered(200));
        let seen = origin.take();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].starts_with("GET /x?y HTTP/1.1\r\n"), "{seen:?}");
        assert_eq!(seen[0].matches("host: a\r\n").count(), 2, "{seen:?}");
    }
}
