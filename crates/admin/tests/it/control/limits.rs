//! Tests of rejected requests, and of what all responses have in common.

use serde_json::json;

use crate::control::bench::Bench;

#[tokio::test]
async fn the_index_names_every_path() {
    let bench = Bench::new().await;
    let response = bench.get("/").await;
    assert_eq!(response.status, 200);
    let content_type = response.header("content-type").unwrap();
    assert!(content_type.starts_with("text/plain"), "{content_type}");
    for path in [
        "/healthz",
        "/livez",
        "/readyz",
        "/metrics",
        "/api/v1/state",
        "/openapi.json",
    ] {
        assert!(response.body.contains(path), "{path}");
        assert_eq!(bench.get(path).await.status, 200, "{path}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn an_unknown_path_gets_a_json_error() {
    let bench = Bench::new().await;
    for path in ["/nothing", "/rooms", "/api/v1/", "//"] {
        let response = bench.get(path).await;
        assert_eq!(response.status, 404, "{path}");
        let expected = json!({
            "error": "unknown_path",
            "message": "unknown path; GET /openapi.json lists all paths",
        });
        assert_eq!(response.json(), expected, "{path}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn read_only_paths_reject_other_methods() {
    let bench = Bench::new().await;
    for method in ["POST", "DELETE", "PUT", "OPTIONS"] {
        let request =
            format!("{method} /api/v1/rooms/shop/state HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let response = bench.send(&request).await;
        assert_eq!(response.status, 405, "{method}");
        assert_eq!(response.json()["error"], "method_not_allowed");
        assert_eq!(response.header("allow"), Some("GET,HEAD"));
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_head_request_gets_no_body() {
    let bench = Bench::new().await;
    let request = "HEAD /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let response = bench.send(request).await;
    assert_eq!((response.status, response.body.as_str()), (200, ""));
    bench.stop().await;
}

#[tokio::test]
async fn pages_of_other_sites_are_rejected() {
    let bench = Bench::new().await;
    for path in [
        "/",
        "/healthz",
        "/metrics",
        "/api/v1/state",
        "/api/v1/rooms/shop/state",
        "/nothing",
    ] {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nsec-fetch-site: cross-site\r\n\r\n");
        let response = bench.send(&request).await;
        assert_eq!(response.status, 403, "{path}");
        assert_eq!(response.json()["error"], "cross_site", "{path}");
    }
    let own =
        "GET /api/v1/state HTTP/1.1\r\nhost: localhost\r\nsec-fetch-site: same-origin\r\n\r\n";
    assert_eq!(bench.send(own).await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn dns_rebinding_is_rejected() {
    let bench = Bench::new().await;
    let evil = "host: evil.example:8081\r\n\r\n";
    for path in [
        "/",
        "/healthz",
        "/metrics",
        "/api/v1/rooms/shop/state",
        "/nothing",
    ] {
        let response = bench.send(&format!("GET {path} HTTP/1.1\r\n{evil}")).await;
        assert_eq!(response.status, 421, "{path}");
        assert_eq!(response.json()["error"], "host_not_allowed", "{path}");
    }
    let whole = "GET http://evil.example/api/v1/state HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(bench.send(whole).await.status, 421);
    // Supervisors may use any host name for probes.
    for path in ["/livez", "/readyz"] {
        let response = bench.send(&format!("GET {path} HTTP/1.1\r\n{evil}")).await;
        assert_eq!(response.status, 200, "{path}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_page_of_another_origin_is_rejected() {
    let bench = Bench::new().await;
    for (origin, status) in [
        ("http://evil.example", 403),
        ("http://localhost:3000", 403),
        ("null", 403),
        ("http://localhost", 200),
    ] {
        let request =
            format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\n\r\n");
        assert_eq!(bench.send(&request).await.status, status, "{origin}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn long_paths_and_bodies_are_rejected() {
    let bench = Bench::new().await;
    let check = async |request: String, status| {
        assert_eq!(bench.send(&request).await.status, status, "{request}");
    };
    let long = "a".repeat(1_000);
    check(
        format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        414,
    )
    .await;
    check(
        format!("GET /?{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        414,
    )
    .await;
    let head = "GET /api/v1/state HTTP/1.1\r\nhost: localhost\r\n";
    check(format!("{head}content-length: 5\r\n\r\n"), 413).await;
    check(format!("{head}transfer-encoding: chunked\r\n\r\n"), 413).await;
    check(format!("{head}content-length: 0\r\n\r\n"), 200).await;
    // Exactly as many bytes as the server reads, so that none are left when it closes.
    let start = format!("{head}x: ");
    let padding = "x".repeat(16 * 1024 - start.len());
    check(format!("{start}{padding}"), 431).await;
    bench.stop().await;
}

#[tokio::test]
async fn every_response_is_uncacheable_and_ends_its_connection() {
    let bench = Bench::new().await;
    for path in ["/", "/healthz", "/metrics", "/api/v1/state", "/nothing"] {
        let response = bench.get(path).await;
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(response.header("connection"), Some("close"), "{path}");
    }
    bench.stop().await;
}
