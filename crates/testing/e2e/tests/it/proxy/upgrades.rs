//! Connections that leave HTTP.

use anteroom_room::time::DurationMs;

use crate::proxy::support::{Gateway, Origin, Setup, Wire, all, header};

const UPGRADE_REQUEST: &str = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
                   Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";
const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                     Upgrade: WebSocket\r\nSec-WebSocket-Accept: x\r\n\r\n";

async fn tunnel(setup: Setup) -> (Wire, Wire, Gateway, Origin) {
    let (mut client, gateway, origin) = all(setup).await;
    client.send(UPGRADE_REQUEST).await;
    let mut wire = origin.accept().await;
    let head = wire.head().await;
    assert_eq!(header(&head, "upgrade"), Some("websocket"));
    assert_eq!(header(&head, "connection"), Some("upgrade"));
    assert_eq!(header(&head, "sec-websocket-key"), Some("k"));
    // The origin's first data must not get lost.
    wire.send(&format!("{SWITCHING}hello")).await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert_eq!(header(&head, "upgrade"), Some("websocket"));
    assert_eq!(header(&head, "connection"), Some("upgrade"));
    assert_eq!(header(&head, "sec-websocket-accept"), Some("x"));
    client.read_until("hello").await;
    (client, wire, gateway, origin)
}

#[tokio::test]
async fn bytes_flow_both_ways_and_each_side_can_end_its_own() {
    let (mut client, mut wire, _gateway, _origin) = tunnel(Setup::default()).await;
    for word in ["\u{1}one", "two\0", "three"] {
        client.send(word).await;
        wire.read_until(word).await;
        wire.send(word).await;
        client.read_until(word).await;
    }
    client.finish().await;
    assert_eq!(wire.rest().await, "");
    wire.send("last words").await;
    wire.finish().await;
    assert_eq!(client.rest().await, "last words");
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_moves_is_closed() {
    let mut setup = Setup::default();
    setup.timeouts.body_idle = DurationMs(50);
    let (mut client, mut wire, gateway, _origin) = tunnel(setup).await;
    assert_eq!(client.rest().await, "");
    assert_eq!(wire.rest().await, "");
    gateway.counts.wait(|counts| &counts.closed, 1).await;
}

#[tokio::test]
async fn a_tunnel_is_a_connection_that_draining_waits_for_and_then_cuts() {
    let mut setup = Setup::default();
    setup.timeouts.drain = DurationMs(50);
    let (mut client, _wire, gateway, _origin) = tunnel(setup).await;
    gateway.trigger.start();
    gateway.ended.await.unwrap();
    assert_eq!(client.rest().await, "");
    gateway.counts.wait(|counts| &counts.closed, 1).await;
}

#[tokio::test]
async fn an_upgrade_to_http_is_ignored() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
        )
        .await;
    let mut wire = origin.accept().await;
    let head = wire.head().await;
    for name in ["upgrade", "connection", "http2-settings"] {
        assert_eq!(header(&head, name), None, "{name}");
    }
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert!(client.head().await.starts_with("http/1.1 200 "));
}

#[tokio::test]
async fn an_unrequested_switch_is_502() {
    let plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let other = SWITCHING.replace("WebSocket\r\nSec", "other\r\nSec");
    for (asked, granted) in [(plain, SWITCHING), (UPGRADE_REQUEST, other.as_str())] {
        let (mut client, gateway, origin) = all(Setup::default()).await;
        client.send(asked).await;
        let mut wire = origin.accept().await;
        wire.head().await;
        wire.send(granted).await;
        let head = client.head().await;
        assert!(head.starts_with("http/1.1 502 "), "{head}");
        assert_eq!(header(&head, "x-outcome"), Some("broken"));
        assert_eq!(gateway.outcomes(), [("broken", 1)]);
    }
}

#[tokio::test]
async fn an_origin_may_decline_an_upgrade() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send(UPGRADE_REQUEST).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        .await;
    assert!(client.head().await.starts_with("http/1.1 403 "));
    client.read_until("no").await;
}
