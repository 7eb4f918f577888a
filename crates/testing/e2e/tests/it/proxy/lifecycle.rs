//! Start, number and end of connections.

use std::sync::Arc;

use anteroom_proxy::downstream::connection_table::ConnectionTable;
use anteroom_proxy::downstream::drain::drain;
use anteroom_proxy::downstream::listener::listen;
use anteroom_proxy::downstream::observer::Unobserved;
use anteroom_proxy::downstream::server::Server;
use anteroom_proxy::fast_path::Never;
use anteroom_proxy::forwarded::TrustedProxies;
use anteroom_proxy::intake::{Checked, Intake};
use anteroom_proxy::reverse_proxy::ReverseProxy;
use anteroom_room::time::DurationMs;
use tokio::net::TcpStream;

use crate::proxy::support::{Setup, Wire, all, header};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

#[tokio::test]
async fn draining_finishes_open_requests_and_accepts_no_more() {
    let (mut busy, gateway, origin) = all(Setup::default()).await;
    busy.send(GET).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    let mut idle = Wire::connect(gateway.address).await;
    gateway.counts.wait(|counts| &counts.opened, 2).await;

    gateway.trigger.start();
    assert_eq!(
        idle.rest().await,
        "",
        "an idle connection is closed at once"
    );
    wire.send(OK).await;
    let head = busy.head().await;
    assert_eq!(header(&head, "connection"), Some("close"));
    assert_eq!(busy.rest().await, "hi");
    gateway.ended.await.unwrap();
    assert!(TcpStream::connect(gateway.address).await.is_err());
}

#[tokio::test]
async fn open_connections_are_cut_at_the_end_of_draining() {
    let mut setup = Setup::default();
    setup.timeouts.drain = DurationMs(50);
    let (mut client, gateway, origin) = all(setup).await;
    client.send(GET).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    gateway.trigger.start();
    gateway.ended.await.unwrap();
    assert_eq!(client.rest().await, "");
    gateway.counts.wait(|counts| &counts.closed, 1).await;
}

#[tokio::test]
async fn where_all_connections_are_busy_idle_ones_make_room() {
    let mut setup = Setup::default();
    setup.sizes.connections = 1;
    let (mut first, gateway, origin) = all(setup).await;
    first.send(GET).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    let mut second = Wire::connect(gateway.address).await;
    second.send(GET).await;
    let head = second.head().await;
    assert!(head.starts_with("http/1.1 503 "), "{head}");
    assert_eq!(header(&head, "connection"), Some("close"));
    assert_eq!(header(&head, "retry-after"), Some("10"));

    wire.send(OK).await;
    first.read_until("hi").await;
    let mut third = Wire::connect(gateway.address).await;
    third.send(GET).await;
    wire.head().await;
    wire.send(OK).await;
    third.read_until("hi").await;
    assert_eq!(first.rest().await, "", "it made room");
}

#[tokio::test]
async fn a_connection_whose_body_is_on_its_way_makes_no_room() {
    let mut setup = Setup::default();
    setup.sizes.connections = 1;
    let (mut first, gateway, origin) = all(setup).await;
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel";
    // In one packet: once the first response is there, the gateway waits for the rest.
    first.send(&format!("{GET}{post}")).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send(OK).await;
    first.read_until("hi").await;
    let mut second = Wire::connect(gateway.address).await;
    second.send(GET).await;
    let head = second.head().await;
    assert!(head.starts_with("http/1.1 503 "), "{head}");
    first.send("lo").await;
    wire.read_until("hello").await;
    wire.send(OK).await;
    first.read_until("hi").await;
}

#[tokio::test]
async fn an_address_with_too_many_busy_connections_gets_429_unless_trusted() {
    for trusted in ["127.0.0.1/32", "10.0.0.0/8"] {
        let mut setup = Setup::default();
        setup.sizes.connections_per_address = 1;
        setup.trusted = vec![trusted.parse().unwrap()];
        let (mut first, gateway, origin) = all(setup).await;
        first.send(GET).await;
        let mut wire = origin.accept().await;
        wire.head().await;
        let mut second = Wire::connect(gateway.address).await;
        second.send(GET).await;
        if trusted.starts_with("127") {
            origin.accept().await.head().await;
            continue;
        }
        let head = second.head().await;
        assert!(head.starts_with("http/1.1 429 "), "{head}");
        assert_eq!(header(&head, "connection"), Some("close"));
        assert_eq!(header(&head, "retry-after"), Some("10"));
        let rest = second.rest().await;
        assert!(
            rest.contains("Too many connections come from your network"),
            "{rest}"
        );
    }
}

#[tokio::test]
async fn a_response_is_finished_though_many_clients_connect() {
    let mut setup = Setup::default();
    setup.sizes.connections = 4;
    let (mut active, gateway, origin) = all(setup).await;
    active.send(GET).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhi")
        .await;
    active.read_until("hi").await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(Wire::connect(gateway.address).await);
    }
    gateway.counts.wait(|counts| &counts.opened, 21).await;
    wire.send("ho").await;
    active.read_until("ho").await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    let mut wire = origin.accept().await;
    for number in ["1", "2"] {
        assert!(wire.head().await.starts_with(&format!("get /{number} ")));
        wire.send(&format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}"
        ))
        .await;
        client.read_until(&format!("\r\n\r\n{number}")).await;
    }
}

#[tokio::test]
async fn a_client_may_close_its_sending_side_and_still_gets_its_answer() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send(GET).await;
    client.finish().await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send(OK).await;
    assert!(client.rest().await.ends_with("\r\n\r\nhi"));
}

#[tokio::test]
async fn a_client_that_still_sends_can_read_its_rejection() {
    let mut setup = Setup::default();
    setup.sizes.request_body_bytes = 10;
    let (mut client, _gateway, _origin) = all(setup).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n")
        .await;
    for _ in 0..40 {
        client.try_send(&[b'x'; 100_000]).await;
    }
    let response = client.rest().await;
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
}

#[tokio::test]
async fn loops_that_share_a_cap_and_a_signal_drain_together() {
    let setup = Setup::default();
    let table = ConnectionTable::with_limit(10);
    let (trigger, signal) = drain();
    let listener = listen("127.0.0.1:0".parse().unwrap(), true).unwrap();
    let address = listener.local_addr().unwrap();
    let mut loops = Vec::new();
    for listener in [listener, listen(address, true).unwrap()] {
        let server = Server::new(
            &setup.timeouts,
            &setup.sizes,
            table.clone(),
            Arc::new(Unobserved),
        );
        let intake = Intake::new(&setup.sizes, TrustedProxies::default());
        let proxy = Checked::new(intake, ReverseProxy::new(&setup.timeouts), None::<Never>);
        loops.push(tokio::spawn(server.serve(listener, proxy, signal.clone())));
    }
    for _ in 0..8 {
        let mut client = Wire::connect(address).await;
        client
            .send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .await;
        assert!(client.rest().await.starts_with("HTTP/1.1 404 "));
    }
    trigger.start();
    for each in loops {
        each.await.unwrap();
    }
}
