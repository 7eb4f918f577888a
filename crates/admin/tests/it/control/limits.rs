//! What is refused, how, and what every answer has in common.

use serde_json::json;

use crate::control::bench::Bench;

#[tokio::test]
async fn the_index_names_every_path() {
    let bench = Bench::new().await;
    let answer = bench.get("/").await;
    assert_eq!(answer.status, 200);
    let content_type = answer.header("content-type").unwrap();
    assert!(content_type.starts_with("text/plain"), "{content_type}");
    for path in [
        "/healthz",
        "/livez",
        "/readyz",
        "/metrics",
        "/rooms",
        "/rooms/{name}/state",
    ] {
        assert!(answer.body.contains(path), "{path}");
        let path = path.replace("{name}", "shop");
        assert_eq!(bench.get(&path).await.status, 200, "{path}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_told_in_json() {
    let bench = Bench::new().await;
    for path in ["/nothing", "/rooms/", "/rooms/shop", "//"] {
        let answer = bench.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        let expected = json!({
            "error": "unknown_path",
            "message": "nothing is here; GET / lists what there is",
        });
        assert_eq!(answer.json(), expected, "{path}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn nothing_here_is_written() {
    let bench = Bench::new().await;
    for method in ["POST", "DELETE", "PUT", "OPTIONS"] {
        let request = format!("{method} /rooms/shop/state HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let answer = bench.send(&request).await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.json()["error"], "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("GET,HEAD"));
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_head_request_is_answered_without_a_body() {
    let bench = Bench::new().await;
    let request = "HEAD /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let answer = bench.send(request).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    bench.stop().await;
}

#[tokio::test]
async fn pages_of_other_sites_get_nothing() {
    let bench = Bench::new().await;
    for path in [
        "/",
        "/healthz",
        "/metrics",
        "/rooms",
        "/rooms/shop/state",
        "/nothing",
    ] {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nsec-fetch-site: cross-site\r\n\r\n");
        let answer = bench.send(&request).await;
        assert_eq!(answer.status, 403, "{path}");
        assert_eq!(answer.json()["error"], "cross_site", "{path}");
    }
    let own = "GET /rooms HTTP/1.1\r\nhost: localhost\r\nsec-fetch-site: same-origin\r\n\r\n";
    assert_eq!(bench.send(own).await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn a_name_that_leads_here_by_rebinding_reads_nothing() {
    let bench = Bench::new().await;
    let evil = "host: evil.example:8081\r\n\r\n";
    for path in ["/", "/healthz", "/metrics", "/rooms/shop/state", "/nothing"] {
        let answer = bench.send(&format!("GET {path} HTTP/1.1\r\n{evil}")).await;
        assert_eq!(answer.status, 421, "{path}");
        assert_eq!(answer.json()["error"], "host_not_allowed", "{path}");
    }
    let whole = "GET http://evil.example/rooms HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(bench.send(whole).await.status, 421);
    // Supervisors ask by whatever name they have, and learn yes or no.
    for path in ["/livez", "/readyz"] {
        let answer = bench.send(&format!("GET {path} HTTP/1.1\r\n{evil}")).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_page_of_another_origin_reads_nothing() {
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
async fn long_paths_and_bodies_are_refused() {
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
    let head = "GET /rooms HTTP/1.1\r\nhost: localhost\r\n";
    check(format!("{head}content-length: 5\r\n\r\n"), 413).await;
    check(format!("{head}transfer-encoding: chunked\r\n\r\n"), 413).await;
    check(format!("{head}content-length: 0\r\n\r\n"), 200).await;
    // Exactly as much as is read, so that nothing is left over when the connection is closed.
    let start = format!("{head}x: ");
    let padding = "x".repeat(16 * 1024 - start.len());
    check(format!("{start}{padding}"), 431).await;
    bench.stop().await;
}

#[tokio::test]
async fn every_answer_is_of_the_moment_and_ends_its_connection() {
    let bench = Bench::new().await;
    for path in ["/", "/healthz", "/metrics", "/rooms", "/nothing"] {
        let answer = bench.get(path).await;
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("connection"), Some("close"), "{path}");
    }
    bench.stop().await;
}
