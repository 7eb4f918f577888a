//! Requests that come back to the gateway that sent them.

use crate::proxy::support::{Setup, Wire, all, header};

const LOOP: &str = "anteroom-loop";

#[tokio::test]
async fn a_request_that_comes_back_gets_508_and_goes_no_further() {
    let (mut client, gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    let head = wire.head().await;
    let own = header(&head, LOOP).expect("the mark").to_owned();
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    client.head().await;
    let marks = [
        own.clone(),
        format!("other, {own}"),
        format!("other\r\n{LOOP}: {own}"),
    ];
    for marks in marks {
        let mut client = Wire::connect(gateway.address).await;
        client
            .send(&format!(
                "GET / HTTP/1.1\r\nHost: a\r\n{LOOP}: {marks}\r\n\r\n"
            ))
            .await;
        let head = client.head().await;
        assert!(head.starts_with("http/1.1 508 "), "{marks}: {head}");
    }
    assert_eq!(gateway.outcomes(), [("answered", 1)]);
}

#[tokio::test]
async fn another_gateway_in_front_is_no_loop_and_keeps_its_mark() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send(&format!(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: {LOOP}\r\n{LOOP}: 0123456789abcdef\r\n\r\n"
        ))
        .await;
    let head = origin.accept().await.head().await;
    let marks: Vec<_> = head
        .lines()
        .filter_map(|line| line.strip_prefix("anteroom-loop: "))
        .collect();
    assert_eq!(marks.len(), 2, "{head}");
    assert_eq!(marks[0], "0123456789abcdef");
    assert_ne!(marks[1], marks[0]);
}

#[tokio::test]
async fn a_request_of_too_many_gateways_counts_as_a_loop() {
    for (count, expected) in [(15, "200"), (16, "508")] {
        let (mut client, _gateway, origin) = all(Setup::default()).await;
        let marks = vec!["x"; count].join(", ");
        client
            .send(&format!(
                "GET / HTTP/1.1\r\nHost: a\r\n{LOOP}: {marks}\r\n\r\n"
            ))
            .await;
        if expected == "200" {
            let mut wire = origin.accept().await;
            wire.head().await;
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .await;
        }
        let head = client.head().await;
        assert!(head.starts_with(&format!("http/1.1 {expected} ")), "{head}");
    }
}
