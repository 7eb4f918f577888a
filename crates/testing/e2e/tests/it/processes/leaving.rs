//! Process with a successor that gets another signal to end: systemd sends it to all processes of a
//! service.

use anteroom_e2e::eventually;
use anteroom_e2e::node::Node;
use anteroom_testkit::wire::{Origin, Wire};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::processes::successor::{SERVES, Successor, count};
use crate::processes::{config, node};

const STOPPING: &str = "already stopping";

/// Node with a successor and an open request: the client, the node, its successor, and the request
/// at the origin.
struct Scene {
    client: Wire,
    node: Node,
    successor: Successor,
    at_origin: Wire,
    _folder: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin::new().await;
        let node = node(&folder, &config(origin.address, 10, "")).await;
        let mut client = Wire::connect(node.address().get().unwrap()).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut at_origin = origin.accept().await;
        at_origin.head().await;
        node.replace();
        eventually("there is a successor", async || count(&node, SERVES) == 1).await;
        // From here on it ends with the test, whatever its result.
        let successor = Successor::of(&node);
        node.request_end();
        eventually("it has received the signal", async || {
            count(&node, STOPPING) == 1
        })
        .await;
        Self {
            client,
            successor,
            node,
            at_origin,
            _folder: folder,
        }
    }

    async fn end(self) {
        self.successor.signal(Signal::TERM);
        eventually("it ends", async || self.successor.has_ended()).await;
    }
}

#[tokio::test]
async fn after_a_signal_a_replaced_process_still_responds() {
    let mut scene = Scene::new().await;
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    scene.at_origin.send(response).await;
    let response = scene.client.rest().await;
    assert!(response.ends_with("\r\n\r\nhi"), "{response}");
    assert!(scene.node.ends().await, "{}", scene.node.log());
    scene.end().await;
}

#[tokio::test]
async fn after_two_signals_it_ends_at_once() {
    let mut scene = Scene::new().await;
    scene.node.request_end();
    assert_eq!(scene.client.rest().await, "");
    assert!(!scene.node.ends().await, "{}", scene.node.log());
    scene.end().await;
}
