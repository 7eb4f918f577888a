//! Tests of the axum example, over real sockets and with its own configuration.

#[path = "../../examples/axum.rs"]
#[expect(dead_code, reason = "its main listens at a fixed port")]
mod example;

use std::net::SocketAddr;

use anteroom_testkit::wire::{Wire, header};
use anteroom_tower::{Config, Layers};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// Server of the example with `change` in its configuration.
struct Served {
    address: SocketAddr,
    layers: Layers,
    _data: TempDir,
}

impl Served {
    async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let mut config = example();
        config.server.data_dir = data.path().to_owned();
        change(&mut config);
        let layers = Layers::open(&config).await.expect("it opens");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let app = example::app(&layers).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(axum::serve(listener, app).into_future());
        Self {
            address,
            layers,
            _data: data,
        }
    }

    /// Returns the response's head and body; `more` are lines of the request's head.
    async fn get(&self, path: &str, more: &str) -> (String, String) {
        let mut wire = Wire::connect(self.address).await;
        wire.send(&format!(
            "GET {path} HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n{more}\r\n"
        ))
        .await;
        let head = wire.head().await;
        (head, wire.rest().await)
    }
}

fn example() -> Config {
    let parsed = Config::parse("example", example::CONFIG);
    parsed.expect("the example is right").config
}

fn status(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_applies_before_the_router() {
    let served = Served::with(|_| {}).await;
    for left in (0..60).rev() {
        let (head, body) = served.get("/api", "").await;
        assert_eq!(
            (status(&head), &*body),
            ("200", "One of sixty in a minute.")
        );
        let header_value = header(&head, "ratelimit").unwrap();
        assert!(
            header_value.starts_with(&format!("\"api\";r={left};")),
            "{header_value}"
        );
    }
    let (head, body) = served.get("/api", "").await;
    assert_eq!(status(&head), "429");
    assert!(body.contains("\"violated-policies\":[\"api\"]"), "{body}");
    assert_eq!(status(&served.get("/else", "").await.0), "404");
    served.layers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_room_queues_the_next_visitor() {
    let served = Served::with(|config| {
        config.rooms[0].rules.limits.total_active_users = 1;
    })
    .await;
    let page = "accept: text/html\r\nsec-fetch-dest: document\r\n";
    // Nobody is admitted before the journal is open.
    anteroom_testkit::eventually("a visitor is admitted", async || {
        served.get("/sale", page).await.1 == "Welcome to the sale!"
    })
    .await;
    let (head, body) = served.get("/sale", page).await;
    assert_eq!(header(&head, "anteroom-verdict"), Some("queue"), "{head}");
    let cookie = header(&head, "set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    assert!(body.contains("<html"), "{body}");
    let cookie_line = format!("cookie: {cookie}\r\n");
    let (head, _) = served
        .get("/.well-known/anteroom/position?room=sale", &cookie_line)
        .await;
    assert_eq!(status(&head), "200", "{head}");
    served.layers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ambiguous_request_is_rejected() {
    let served = Served::with(|_| {}).await;
    let (head, _) = served.get("/api", "host: other.example\r\n").await;
    assert_eq!(status(&head), "400");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_applies_at_once_and_counts_stay() {
    let served = Served::with(|_| {}).await;
    assert_eq!(status(&served.get("/api", "").await.0), "200");
    let text = example::CONFIG.replace("60/min", "2/min");
    let next = Config::parse("example", &text).unwrap().config;
    let prepared = served.layers.prepare(&next).unwrap();
    served.layers.commit(&next, prepared).unwrap();
    let mut statuses = Vec::new();
    for _ in 0..2 {
        statuses.push(status(&served.get("/api", "").await.0).to_owned());
    }
    assert_eq!(statuses, ["200", "429"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_peer_is_rejected() {
    use axum::{Router, body::Body, routing::get};
    use tower::ServiceExt as _;

    let served = Served::with(|_| {}).await;
    let app = Router::new()
        .route("/", get(async || "hello"))
        .layer(served.layers.clients());
    let send = |peer: Option<SocketAddr>| {
        let mut request = http::Request::get("/").header("host", "a.example");
        if let Some(peer) = peer {
            request = request.extension(peer);
        }
        app.clone().oneshot(request.body(Body::empty()).unwrap())
    };
    assert_eq!(send(None).await.unwrap().status(), 400);
    let peer = SocketAddr::from(([192, 0, 2, 7], 4711));
    assert_eq!(send(Some(peer)).await.unwrap().status(), 200);
}
