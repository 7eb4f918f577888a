//! Do nodes that tell each other what they have counted keep one limit together, as a configuration
//! says it?

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anteroom_tower::{Config, Layers};
use axum::body::Body;
use axum::routing::get;
use axum::{Router, http};
use tempfile::TempDir;
use tokio::time::{interval, timeout};
use tower::ServiceExt as _;

/// Far more than an interval and a machine that is busy.
const LONG: Duration = Duration::from_secs(60);
const LIMIT: u32 = 300;
/// Nodes that do not find each other within that are begun anew at other ports; those that can take
/// some two seconds.
const FOUND: Duration = Duration::from_secs(12);
/// So often.
const TRIES: usize = 5;
/// How often a successor is asked: in [`LONG`] fewer times than it would take to use up the limit
/// without what it hears.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);

/// A node, and what stands behind its layers.
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

    async fn ask(&self) -> http::StatusCode {
        let peer = SocketAddr::from(([192, 0, 2, 7], 4_711));
        let request = http::Request::get("/").header("host", "a.example");
        let request = request
            .extension(peer)
            .body(Body::empty())
            .expect("a request");
        let answer = self.app.clone().oneshot(request).await;
        answer.expect("it answers").status()
    }

    fn event(&self, word: &'static str) -> u64 {
        let events = self.layers.meter().store_events();
        events.get(&("gossip", word)).copied().unwrap_or(0)
    }

    /// Whether it sees the other one soon. It does not if somebody else has its address: then it
    /// counts alone.
    async fn finds_the_other(&self) -> bool {
        let is_there = || self.event("peer_joined") > self.event("peer_left");
        comes_about(FOUND, is_there).await
    }
}

/// Two ports that were free a moment ago.
fn ports() -> [u16; 2] {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port is free"));
    sockets.map(|socket| socket.local_addr().expect("it is bound").port())
}

async fn comes_about(within: Duration, is_so: impl Fn() -> bool) -> bool {
    let wait = async {
        let mut looks = interval(Duration::from_millis(5));
        while !is_so() {
            looks.tick().await;
        }
    };
    timeout(within, wait).await.is_ok()
}

/// Two that see each other, and their ports. What was free when it was asked for may be taken when
/// it is listened at.
async fn pair() -> ([Node; 2], [u16; 2]) {
    for _ in 0..TRIES {
        let [one, other] = ports();
        let nodes = [Node::start(one, other).await, Node::start(other, one).await];
        if nodes[0].finds_the_other().await && nodes[1].finds_the_other().await {
            return (nodes, [one, other]);
        }
        for node in nodes {
            node.layers.close().await;
        }
    }
    panic!("two nodes never find each other");
}

/// One that comes to who listens at `other`: at the same port as the one before it, if nobody took
/// that meanwhile.
async fn successor([one, other]: [u16; 2]) -> Node {
    let mut port = one;
    for _ in 0..TRIES {
        let node = Node::start(port, other).await;
        if node.finds_the_other().await {
            return node;
        }
        node.layers.close().await;
        [port, _] = ports();
    }
    panic!("a successor never finds the other one");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_nearly_keep_one_limit_and_a_successor_continues() {
    let (nodes, ports) = pair().await;
    // One client, who asks both in turn, ten times in each step.
    let mut steps = interval(Duration::from_millis(10));
    let mut admitted = 0;
    for _ in 0..LIMIT / 10 + 50 {
        steps.tick().await;
        for at in 0..10 {
            let status = nodes[at % 2].ask().await;
            assert!([200, 429].contains(&status.as_u16()), "{status}");
            admitted += u32::from(status == 200);
        }
    }
    // Never below; and above by what is admitted before they hear of each other, a limit each at
    // most.
    assert!((LIMIT..=2 * LIMIT).contains(&admitted), "{admitted}");
    println!("{admitted} of {LIMIT} admitted");
    // One is replaced: what was counted stays counted, though its successor was not there.
    let [first, second] = nodes;
    first.layers.close().await;
    let successor = successor(ports).await;
    let mut looks = interval(REFRESH_INTERVAL);
    let waiting = async {
        while successor.ask().await != 429 {
            looks.tick().await;
        }
    };
    assert!(
        timeout(LONG, waiting).await.is_ok(),
        "it never hears of what was counted"
    );
    for node in [&second, &successor] {
        node.layers.close().await;
    }
}
