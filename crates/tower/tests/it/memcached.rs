//! Tests of nodes that count in memcached: do they keep one limit together?

use std::net::SocketAddr;

use anteroom_testkit::memcached_server::MemcachedServer;
use anteroom_tower::{Config, Layers};
use axum::body::Body;
use axum::routing::get;
use axum::{Router, http};
use tempfile::TempDir;
use tower::ServiceExt as _;

/// Node with a service behind its layers.
struct Node {
    app: Router,
    layers: Layers,
    _data: TempDir,
}

impl Node {
    async fn start(port: u16) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let text = format!(
            "[server]\ndata_dir = {:?}\n\
             [memcached]\nservers = [\"127.0.0.1:{port}\"]\n\
             [[room]]\nname = \"sale\"\npath = \"/sale\"\norigin = \"http://127.0.0.1:3000\"\n\
             total_active_users = 200\nnew_users_per_minute = 200\n\
             [[limit]]\nname = \"window\"\nlimit = \"5/d\"\nstore = \"memcached\"\n\
             routes = [{{ path = \"/window\" }}]\n\
             [[limit]]\nname = \"bucket\"\nlimit = \"5/d\"\nalgorithm = \"token-bucket\"\n\
             store = \"memcached\"\nroutes = [{{ path = \"/bucket\" }}]\n",
            data.path()
        );
        let config = Config::parse("memcached", &text)
            .expect("it is legal")
            .config;
        let layers = Layers::open(&config).await.expect("they open");
        let app = Router::new()
            .route("/window", get(async || "hello"))
            .route("/bucket", get(async || "hello"))
            .layer(layers.rate_limits())
            .layer(layers.clients());
        Self {
            app,
            layers,
            _data: data,
        }
    }

    async fn send(&self, path: &str) -> http::StatusCode {
        let peer = SocketAddr::from(([192, 0, 2, 7], 4_711));
        let request = http::Request::get(path).header("host", "a.example");
        let request = request
            .extension(peer)
            .body(Body::empty())
            .expect("a request");
        self.app
            .clone()
            .oneshot(request)
            .await
            .expect("a response")
            .status()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_share_one_limit_and_a_later_third_joins() {
    let mut server = MemcachedServer::start().await;
    let nodes = [
        Node::start(server.port()).await,
        Node::start(server.port()).await,
    ];
    for path in ["/window", "/bucket"] {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            for node in &nodes {
                statuses.push(node.send(path).await.as_u16());
            }
        }
        assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429], "{path}");
    }
    let later = Node::start(server.port()).await;
    for path in ["/window", "/bucket"] {
        assert_eq!(later.send(path).await, 429, "{path}");
    }
    let events = later.layers.limiter().store_events();
    for word in ["cas_lost", "cas_gave_up", "not_refunded"] {
        assert!(events.contains_key(&("memcached", word)), "{word}");
    }
    // Nothing is leased, so nothing passes while the server is unavailable.
    server.kill();
    for path in ["/window", "/bucket"] {
        assert_eq!(nodes[0].send(path).await, 503, "{path}");
    }
    for node in nodes.iter().chain([&later]) {
        node.layers.close().await;
    }
}
