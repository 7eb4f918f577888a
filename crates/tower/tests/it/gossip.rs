//! Tests of nodes that spread their counts by gossip: do they keep one limit together?

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anteroom_tower::{Config, Layers};
use axum::body::Body;
use axum::routing::get;
use axum::{Router, http};
use tempfile::TempDir;
use tokio::time::{interval, timeout};
use tower::ServiceExt as _;

/// Deadline of the whole wait: far more than a gossip interval, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);
const LIMIT: u32 = 300;
/// Time after which nodes that have not found each other are restarted at other ports. Finding each
/// other takes some two seconds.
const FOUND: Duration = Duration::from_secs(12);
/// Attempts at free ports.
const TRIES: usize = 5;
/// Interval of the requests to a successor. In [`LONG`] they are too few to use up the limit
/// without the counts of others.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);

/// Node with a service behind its layers.
struct Node {
    app: Router,
    layers: Layers,
    _data: TempDir,
}

impl Node {
    async fn start(port: u16, peer: u16) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let secret = data.path().join("secret");
        std::fs::write(&secret, "a secret of both nodes\n").expect("a file");
        let text = format!(
            "[server]\ndata_dir = {:?}\n\
             [gossip]\nlisten = \"127.0.0.1:{port}\"\npeers = [\"127.0.0.1:{peer}\"]\n\
             secret_file = {secret:?}\n\
             [[room]]\nname = \"sale\"\npath = \"/sale\"\norigin = \"http://127.0.0.1:3000\"\n\
             total_active_users = 200\nnew_users_per_minute = 200\n\
             [[limit]]\nname = \"window\"\nlimit = \"{LIMIT}/d\"\nstore = \"gossip\"\n",
            data.path()
        );
        let config = Config::parse("gossip", &text).expect("it is legal").config;
        let layers = Layers::open(&config).await.expect("they open");
        let app = Router::new()
            .route("/", get(async || "hello"))
            .layer(layers.rate_limits())
            .layer(layers.clients());
        Self {
            app,
            layers,
            _data: data,
        }
    }

    async fn send(&self) -> http::StatusCode {
        let peer = SocketAddr::from(([192, 0, 2, 7], 4_711));
        let request = http::Request::get("/").header("host", "a.example");
        let request = request
            .extension(peer)
            .body(Body::empty())
            .expect("a request");
        let response = self.app.clone().oneshot(request).await;
        response.expect("a response").status()
    }

    fn event(&self, word: &'static str) -> u64 {
        let events = self.layers.limiter().store_events();
        events.get(&("gossip", word)).copied().unwrap_or(0)
    }

    /// Waits until this node sees its peer. It does not if another process has taken the peer's
    /// address.
    async fn finds_its_peer(&self) -> bool {
        let has_peer = || self.event("peer_joined") > self.event("peer_left");
        becomes_true(FOUND, has_peer).await
    }
}

/// Returns two ports that were free a moment ago.
fn ports() -> [u16; 2] {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port is free"));
    sockets.map(|socket| socket.local_addr().expect("it is bound").port())
}

async fn becomes_true(within: Duration, condition: impl Fn() -> bool) -> bool {
    let wait = async {
        let mut ticks = interval(Duration::from_millis(5));
        while !condition() {
            ticks.tick().await;
        }
    };
    timeout(within, wait).await.is_ok()
}

/// Starts two nodes that see each other, and returns their ports. Another process may take a free
/// port before the node binds it.
async fn pair() -> ([Node; 2], [u16; 2]) {
    for _ in 0..TRIES {
        let [one, other] = ports();
        let nodes = [Node::start(one, other).await, Node::start(other, one).await];
        if nodes[0].finds_its_peer().await && nodes[1].finds_its_peer().await {
            return (nodes, [one, other]);
        }
        for node in nodes {
            node.layers.close().await;
        }
    }
    panic!("the nodes do not find each other");
}

/// Starts a node whose peer listens at `other`: at its predecessor's port, if that is free.
async fn successor([one, other]: [u16; 2]) -> Node {
    let mut port = one;
    for _ in 0..TRIES {
        let node = Node::start(port, other).await;
        if node.finds_its_peer().await {
            return node;
        }
        node.layers.close().await;
        [port, _] = ports();
    }
    panic!("the successor does not find its peer");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_share_one_limit_and_a_successor_continues() {
    let (nodes, ports) = pair().await;
    // One client sends to both nodes in turn, ten requests in each step.
    let mut steps = interval(Duration::from_millis(10));
    let mut admitted = 0;
    for _ in 0..LIMIT / 10 + 50 {
        steps.tick().await;
        for at in 0..10 {
            let status = nodes[at % 2].send().await;
            assert!([200, 429].contains(&status.as_u16()), "{status}");
            admitted += u32::from(status == 200);
        }
    }
    // At least the limit. It is exceeded by what each node admits before it receives the other's
    // counts: at most the limit.
    assert!((LIMIT..=2 * LIMIT).contains(&admitted), "{admitted}");
    println!("{admitted} of {LIMIT} admitted");
    // A successor replaces one node and must learn the counts from the other.
    let [first, second] = nodes;
    first.layers.close().await;
    let successor = successor(ports).await;
    let mut ticks = interval(REFRESH_INTERVAL);
    let waiting = async {
        while successor.send().await != 429 {
            ticks.tick().await;
        }
    };
    assert!(
        timeout(LONG, waiting).await.is_ok(),
        "the successor does not learn the counts"
    );
    for node in [&second, &successor] {
        node.layers.close().await;
    }
}
