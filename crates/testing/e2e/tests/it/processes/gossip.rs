//! Gossip between two gateways of the real program: they count together, over a kill and a
//! successor.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anteroom_e2e::eventually;
use anteroom_e2e::node::Node;
use anteroom_testkit::wire::Wire;
use serde_json::Value;
use tempfile::TempDir;

use crate::processes::overrides::{let_through, limits, start};
use crate::processes::successor::{SERVES, Successor, count};

/// Requests of a client in an hour.
const LIMIT: usize = 40;

/// Two gateways that know each other's address.
struct Pair {
    nodes: [Node; 2],
    folders: [PathBuf; 2],
    _temp: TempDir,
}

impl Pair {
    async fn start() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let addresses = [free_address(), free_address()];
        let secret = "a secret that two gateways share";
        std::fs::write(temp.path().join("secret"), secret).unwrap();
        let folders = ["one", "other"].map(|name| temp.path().join(name));
        let [one, other] = addresses;
        let nodes = [
            start("one", folders[0].clone(), &config(one, other)).await,
            start("other", folders[1].clone(), &config(other, one)).await,
        ];
        let pair = Self {
            nodes,
            folders,
            _temp: temp,
        };
        for (node, word) in [(0, "first"), (1, "second")] {
            // Each has found the other when it learns of a request there.
            assert_eq!(let_through(&pair.nodes[node], word, 1).await, 1);
            pair.knows(1 - node, word, 1).await;
        }
        pair
    }

    /// Waits until a node knows so many requests of a client.
    async fn knows(&self, node: usize, client: &str, calls: usize) {
        let left = Value::from(LIMIT - calls);
        let (folder, node) = (&self.folders[node], &self.nodes[node]);
        eventually(
            &format!("{} knows {calls} requests", node.name()),
            async || {
                let standing = limits(node, folder, &["show", "api", client]).await;
                standing["remaining"] == left
            },
        )
        .await;
    }
}

fn config(listen: SocketAddr, peer: SocketAddr) -> String {
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\ndata_dir = \"data\"\n\
         [gossip]\nlisten = \"{listen}\"\npeers = [\"{peer}\"]\nsecret_file = \"../secret\"\n\
         [[room]]\nname = \"shop\"\nhost = \"shop.example\"\norigin = \"http://127.0.0.1:9\"\n\
         total_active_users = 10\nnew_users_per_minute = 10\nbypass = []\n\
         [[limit]]\nname = \"api\"\nlimit = \"{LIMIT}/h\"\nkey = \"header:X-Api-Key\"\n\
         store = \"gossip\"\n\
         algorithm = \"sliding-window\"\n"
    )
}

/// Returns an address that the system assigns to no other process, because it must be free again
/// after a kill.
fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(process::id() % 1_000).unwrap() * 10;
    loop {
        let port = 15_000 + first + NEXT.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}

#[tokio::test]
async fn two_gateways_keep_one_limit_together() {
    let pair = Pair::start().await;
    // The other node knows each request before five more.
    for calls in 1..=LIMIT {
        let at = calls % 2;
        assert_eq!(let_through(&pair.nodes[at], "gold", 1).await, 1);
        if calls % 5 == 0 {
            pair.knows(1 - at, "gold", calls).await;
        }
    }
    pair.knows(0, "gold", LIMIT).await;
    pair.knows(1, "gold", LIMIT).await;
    for node in &pair.nodes {
        assert_eq!(let_through(node, "gold", 5).await, 0);
    }
    // At full speed: at most a whole limit at each node.
    let mut admitted = 0;
    for calls in 0..3 * LIMIT {
        admitted += let_through(&pair.nodes[calls % 2], "tin", 1).await;
    }
    assert!((LIMIT..=2 * LIMIT).contains(&admitted), "{admitted}");
    println!("{admitted} of {LIMIT} requests passed");
    for node in 0..2 {
        pair.knows(node, "tin", LIMIT).await;
        assert_eq!(let_through(&pair.nodes[node], "tin", 5).await, 0);
    }
}

#[tokio::test]
async fn a_killed_gateway_learns_of_all_requests_after_its_restart() {
    let mut pair = Pair::start().await;
    assert_eq!(let_through(&pair.nodes[0], "gold", 10).await, 10);
    assert_eq!(let_through(&pair.nodes[1], "gold", 5).await, 5);
    pair.knows(0, "gold", 15).await;
    pair.nodes[1].kill().await;
    assert_eq!(let_through(&pair.nodes[0], "gold", 3).await, 3);
    pair.nodes[1].spawn();
    pair.nodes[1].serves().await;
    // It gets its former counts from the other one.
    pair.knows(1, "gold", 18).await;
    assert_eq!(let_through(&pair.nodes[1], "gold", 4).await, 4);
    pair.knows(0, "gold", 22).await;
}

#[tokio::test]
async fn a_replaced_gateways_counts_reach_its_successor_and_the_others() {
    let mut pair = Pair::start().await;
    let address = pair.nodes[0].address().get().unwrap();
    let mut open = Vec::new();
    for client in ["lead", "gold", "gold", "gold"] {
        // `close`, because a process that does not drain yet would keep the connection.
        let request = format!(
            "GET / HTTP/1.1\r\nHost: api.example\r\nX-Api-Key: {client}\r\n\
             Connection: close\r\n\r\n"
        );
        let mut wire = Wire::connect(address).await;
        // Wait for a response, so that the connection is accepted.
        wire.send("GET / HTTP/1.1\r\nHost: api.example\r\nX-Api-Key: warm\r\n\r\n")
            .await;
        wire.head().await;
        open.push((wire, request));
    }
    pair.nodes[0].replace();
    eventually("there is a successor", async || {
        count(&pair.nodes[0], SERVES) == 1
    })
    .await;
    let _successor = Successor::of(&pair.nodes[0]);
    for (wire, request) in &mut open {
        wire.send(request).await;
        let response = wire.rest().await;
        assert!(response.contains("HTTP/1.1 404"), "{response}");
    }
    assert!(pair.nodes[0].ends().await, "{}", pair.nodes[0].log());
    for node in 0..2 {
        pair.knows(node, "lead", 1).await;
        pair.knows(node, "gold", 3).await;
    }
    // The two count together as before.
    assert_eq!(let_through(&pair.nodes[0], "gold", 2).await, 2);
    pair.knows(1, "gold", 5).await;
}
