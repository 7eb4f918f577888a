//! Headers that are forwarded, both ways.

use crate::proxy::support::{Setup, all, header};

#[tokio::test]
async fn the_origin_gets_the_request_and_learns_who_sent_it() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send(
            "GET /a%2Fb/../c;x?y=%20z HTTP/1.1\r\nHost: Shop.Example:8080\r\n\
             X-Forwarded-For: 6.6.6.6\r\nAnteroom-Seat-Ends: 99\r\nCookie: a=b\r\n\
             Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\r\n",
        )
        .await;
    let mut wire = origin.accept().await;
    let raw = wire.read_until("\r\n\r\n").await;
    assert!(
        raw.starts_with("GET /a%2Fb/../c;x?y=%20z HTTP/1.1\r\n"),
        "{raw}"
    );
    assert!(raw.contains("Shop.Example:8080\r\n"), "{raw}");
    let head = raw.to_lowercase();
    assert_eq!(header(&head, "host"), Some("shop.example:8080"));
    assert_eq!(header(&head, "cookie"), Some("a=b"));
    assert_eq!(header(&head, "x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(header(&head, "x-forwarded-host"), Some("shop.example:8080"));
    assert_eq!(header(&head, "x-forwarded-proto"), Some("http"));
    assert_eq!(
        header(&head, "forwarded"),
        Some("for=127.0.0.1;host=\"shop.example:8080\";proto=http")
    );
    for name in [
        "anteroom-seat-ends",
        "x-hop",
        "connection",
        "transfer-encoding",
    ] {
        assert_eq!(header(&head, name), None, "{name}");
    }
}

#[tokio::test]
async fn a_trusted_proxy_is_believed_and_its_chain_continued() {
    let setup = Setup {
        trusted: vec!["127.0.0.0/8".parse().unwrap()],
        ..Setup::default()
    };
    let (mut client, _gateway, origin) = all(setup).await;
    client
        .send(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\
             X-Forwarded-Proto: https\r\n\r\n",
        )
        .await;
    let head = origin.accept().await.head().await;
    assert_eq!(
        header(&head, "x-forwarded-for"),
        Some("192.0.2.1, 127.0.0.1")
    );
    assert_eq!(header(&head, "x-forwarded-proto"), Some("https"));
}

#[tokio::test]
async fn the_answer_comes_back_without_what_concerns_one_connection() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send(
        "HTTP/1.1 299 Odd\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
         Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nhi",
    )
    .await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 299 odd\r\n"), "{head}");
    assert!(
        head.contains("set-cookie: a=1\r\nset-cookie: b=2\r\n"),
        "{head}"
    );
    assert_eq!(header(&head, "x-outcome"), Some("answered"));
    assert_eq!(header(&head, "content-length"), Some("2"));
    for name in ["x-hop", "keep-alive", "connection"] {
        assert_eq!(header(&head, name), None, "{name}");
    }
    client.read_until("hi").await;
}

#[tokio::test]
async fn head_and_bodiless_answers_keep_the_connection_in_step() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
        .await;
    let head = client.head().await;
    assert_eq!(header(&head, "content-length"), Some("500"));
    for response in ["204 No Content", "304 Not Modified"] {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        wire.head().await;
        wire.send(&format!("HTTP/1.1 {response}\r\nETag: \"1\"\r\n\r\n"))
            .await;
        let head = client.head().await;
        assert!(head.contains(&response.to_lowercase()), "{head}");
        assert_eq!(header(&head, "transfer-encoding"), None);
    }
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nend")
        .await;
    client.head().await;
    client.read_until("end").await;
}

#[tokio::test]
async fn interim_answers_are_skipped() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        .await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert!(client.head().await.starts_with("http/1.1 200 "));
}

#[tokio::test]
async fn an_old_client_gets_an_old_response_over_a_new_request() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    assert!(wire.head().await.starts_with("get / http/1.1\r\n"));
    wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        .await;
    let response = client.rest().await;
    assert!(response.starts_with("HTTP/1.0 200 OK\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\nabc"), "{response}");
}

/// Returns the head of a request at the origin, in lower case.
async fn passed_on(setup: Setup, lines: &str) -> String {
    let (mut client, _gateway, origin) = all(setup).await;
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    client.send(&request).await;
    origin.accept().await.head().await
}

/// Headers by which proxies name the client.
const CLAIMS: &str = "X-Real-IP: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\n\
                      CF-Connecting-IP: 6.6.6.6\r\nX-Client-IP: 6.6.6.6\r\n\
                      X-Original-Host: evil.example\r\n";

#[tokio::test]
async fn an_untrusted_client_cannot_name_the_client_by_any_header() {
    let head = passed_on(Setup::default(), CLAIMS).await;
    assert!(
        !head.contains("6.6.6.6") && !head.contains("evil"),
        "{head}"
    );
}

#[tokio::test]
async fn a_trusted_proxy_names_the_client_by_its_usual_header() {
    let setup = || Setup {
        trusted: vec!["127.0.0.0/8".parse().unwrap()],
        ..Setup::default()
    };
    let head = passed_on(setup(), CLAIMS).await;
    for name in [
        "x-real-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "x-client-ip",
    ] {
        assert_eq!(header(&head, name), Some("6.6.6.6"), "{name}");
    }
    assert_eq!(header(&head, "x-original-host"), Some("evil.example"));
    // No proxy writes these: they are a client's, and a proxy has overlooked them.
    let disguised = CLAIMS.replace('-', "_");
    let head = passed_on(setup(), &disguised).await;
    assert!(
        !head.contains("6.6.6.6") && !head.contains("evil"),
        "{head}"
    );
}

#[tokio::test]
async fn a_header_that_origins_may_mistake_for_another_is_dropped() {
    let lines = "Transfer_Encoding: chunked\r\ncontent_length: 5\r\nContent.Type: x\r\n\
                 x_http_method_override: DELETE\r\nx_custom: kept\r\n";
    let head = passed_on(Setup::default(), lines).await;
    for dropped in [
        "transfer_encoding",
        "content_length",
        "content.type",
        "override",
    ] {
        assert!(!head.contains(dropped), "{dropped}: {head}");
    }
    assert_eq!(header(&head, "x_custom"), Some("kept"));
}

#[tokio::test]
async fn an_origin_cannot_set_our_cookies() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send(
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: __anteroom_shop=forged; Path=/\r\n\
         Set-Cookie: =__anteroom_shop=forged\r\nSet-Cookie: b=__anteroom_\r\n\
         Content-Length: 0\r\n\r\n",
    )
    .await;
    let head = client.head().await;
    assert!(!head.contains("forged"), "{head}");
    assert!(
        head.contains("set-cookie: a=1\r\nset-cookie: b=__anteroom_\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn the_gateway_adds_itself_to_via_both_ways() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send("GET / HTTP/1.0\r\nHost: a\r\nVia: 1.1 cdn\r\n\r\n")
        .await;
    let mut wire = origin.accept().await;
    let head = wire.head().await;
    assert!(
        head.contains("via: 1.1 cdn\r\nvia: 1.0 anteroom\r\n"),
        "{head}"
    );
    wire.send("HTTP/1.1 200 OK\r\nVia: 1.0 cache\r\nContent-Length: 0\r\n\r\n")
        .await;
    let head = client.head().await;
    assert!(
        head.contains("via: 1.0 cache\r\nvia: 1.1 anteroom\r\n"),
        "{head}"
    );
}
