//! Tests of nodes that count over Kafka: do they keep one limit together? They run on the mock
//! cluster of the client library, not on a real broker.

use std::net::SocketAddr;

use anteroom_testkit::eventually;
use anteroom_tower::{Config, Layers, OpenError};
use axum::body::Body;
use axum::routing::get;
use axum::{Router, http};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use tempfile::TempDir;
use tower::ServiceExt as _;

/// Clients: more than a wait for a condition sends requests.
const CLIENTS: u16 = 4_000;

type Brokers = MockCluster<'static, DefaultProducerContext>;

fn brokers() -> Brokers {
    let brokers = MockCluster::new(1).expect("a cluster");
    for topic in ["anteroom-calls", "anteroom-totals"] {
        let created = brokers.create_topic(topic, 4, 1);
        created.expect("a topic");
    }
    brokers
}

/// Node with a service behind its layers.
struct Node {
    app: Router,
    layers: Layers,
    _data: TempDir,
}

impl Node {
    async fn open(brokers: &Brokers, property: &str) -> Result<Self, OpenError> {
        let data = tempfile::tempdir().expect("a folder");
        let text = format!(
            "[server]\ndata_dir = {:?}\n\
             [kafka]\nbrokers = [{:?}]\nproperties = [{property:?}]\n\
             [[room]]\nname = \"sale\"\npath = \"/sale\"\norigin = \"http://127.0.0.1:3000\"\n\
             total_active_users = 200\nnew_users_per_minute = 200\n\
             [[limit]]\nname = \"window\"\nlimit = \"1/d\"\nstore = \"kafka\"\n",
            data.path(),
            brokers.bootstrap_servers(),
        );
        let config = Config::parse("kafka", &text).expect("it is legal").config;
        let layers = Layers::open(&config).await?;
        let app = Router::new()
            .route("/", get(async || "hello"))
            .layer(layers.rate_limits())
            .layer(layers.clients());
        Ok(Self {
            app,
            layers,
            _data: data,
        })
    }

    async fn start(brokers: &Brokers) -> Self {
        let opened = Self::open(brokers, "acks=1").await;
        opened.expect("it opens")
    }

    async fn send(&self, client: u16) -> u16 {
        let [high, low] = client.to_be_bytes();
        let peer = SocketAddr::from(([10, 0, high, low], 4_711));
        let request = http::Request::get("/").header("host", "a.example");
        let request = request
            .extension(peer)
            .body(Body::empty())
            .expect("a request");
        let response = self.app.clone().oneshot(request).await;
        response.expect("a response").status().as_u16()
    }

    fn event(&self, word: &'static str) -> u64 {
        let events = self.layers.limiter().store_events();
        *events.get(&("kafka", word)).expect("it counts that")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_node_hands_its_last_counts_over() {
    let brokers = brokers();
    let first = Node::start(&brokers).await;
    let second = Node::start(&brokers).await;
    for node in [&first, &second] {
        eventually("it reads totals", async || node.event("total_read") > 0).await;
    }
    for client in 0..CLIENTS {
        assert_eq!(first.send(client).await, 200);
    }
    assert_eq!(first.send(0).await, 429);
    first.layers.close().await;
    // A node that ends still serves the requests that arrive.
    assert_eq!(
        first.send(CLIENTS).await,
        200,
        "it decides by its own counts"
    );
    assert_eq!(first.send(0).await, 429);
    // A client whose count has not arrived yet is admitted and counted here, so each sends once.
    let mut clients = 0..CLIENTS;
    eventually("the second node has the counts", || {
        let client = clients.next().expect("there are enough");
        let status = second.send(client);
        async { status.await == 429 }
    })
    .await;
    assert_eq!(second.send(CLIENTS).await, 200, "another client");
    second.layers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_property_unknown_to_the_library_is_reported_at_start() {
    let brokers = brokers();
    let result = Node::open(&brokers, "security.protocol=ssl").await;
    let error = result.err().expect("TLS is not built in");
    assert!(matches!(error, OpenError::Kafka(_)), "{error:?}");
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    assert!(cause.is_some_and(|cause| cause.contains("librdkafka")));
}
