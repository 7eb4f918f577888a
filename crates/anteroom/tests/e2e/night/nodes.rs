//! Three gateways on one Redis: a command at one applies at all of them.

use std::path::PathBuf;
use std::sync::Arc;

use anteroom_config::ValkeyAddress;
use anteroom_store::conformance;
use anteroom_testkit::redis_server::{RedisServer, Reply};
use anteroom_valkey::Valkey;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::Client;
use crate::support::command::{Ended, run};
use crate::support::origin::RecordingOrigin;
use crate::support::process::{Gateway, room_flags};
use crate::support::{eventually, site::until_inside};

use super::{of_main, room_json, token_file};

struct Nodes {
    gateways: Vec<Gateway>,
    redis: RedisServer,
    _origin: RecordingOrigin,
    flags: Vec<Vec<String>>,
    temp: TempDir,
}

impl Nodes {
    async fn start(total: u32) -> Self {
        let redis = RedisServer::start().await;
        let origin = RecordingOrigin::start().await;
        let temp = tempfile::tempdir().unwrap();
        let store = format!("redis://127.0.0.1:{}", redis.port());
        // One token for all, for operators who send commands to several nodes at once.
        let token = temp.path().join("admin-token");
        std::fs::write(&token, "operator a-token-of-the-tests\n").unwrap();
        let flags = (0..3).map(|node| {
            let data = temp.path().join(format!("data-{node}"));
            let mut flags = room_flags(origin.address, total, 100_000, &data.display().to_string());
            flags.extend(["--store".to_owned(), store.clone()]);
            let token = token.display().to_string();
            flags.extend(["--admin-token-file".to_owned(), token]);
            flags
        });
        let mut nodes = Self {
            flags: flags.collect(),
            gateways: Vec::new(),
            redis,
            _origin: origin,
            temp,
        };
        for flags in &nodes.flags {
            nodes.gateways.push(Gateway::start(flags).await);
        }
        for node in 0..3 {
            eventually("the node has a lease", || async {
                nodes.state(node).await["degraded"].is_null()
            })
            .await;
        }
        nodes
    }

    async fn operate(&self, node: usize, words: &[&str]) -> Value {
        room_json(&self.gateways[node], &self.token(), words).await
    }

    fn token(&self) -> PathBuf {
        token_file(self.temp.path())
    }

    /// Runs a command for several nodes at once.
    async fn run(&self, nodes: &[usize], words: &[&str]) -> Ended {
        let admins = nodes.iter().map(|node| self.gateways[*node].admin);
        let admins: Vec<String> = admins.map(|admin| admin.to_string()).collect();
        let mut args = words.to_vec();
        for admin in &admins {
            args.extend(["--admin", admin]);
        }
        run(&args).await
    }

    /// Runs a command about the room at several nodes at once.
    async fn operate_at(&self, nodes: &[usize], words: &[&str]) -> Ended {
        let token = self.token().display().to_string();
        let mut args = of_main(words);
        args.extend(["--token-file", &token]);
        self.run(nodes, &args).await
    }

    async fn until_all_report(&self, reason: Option<&str>) {
        for node in 0..self.gateways.len() {
            eventually("the node says so", || async {
                self.reason(node).await.as_deref() == reason
            })
            .await;
        }
    }

    async fn state(&self, node: usize) -> Value {
        let mut operator = Client::new(self.gateways[node].admin);
        operator.get("/api/v1/rooms/main/state").await.json()
    }

    /// Returns the reason why a new visitor is queued at this node; `None` = admitted.
    async fn reason(&self, node: usize) -> Option<String> {
        let response = Client::new(self.gateways[node].address).get("/").await;
        let is_queued = response.is_queued();
        is_queued.then(|| {
            response.json()["cfWaitingRoom"]["reason"]
                .as_str()
                .unwrap()
                .to_owned()
        })
    }
}

#[tokio::test]
async fn a_redis_keeps_overrides() {
    let server = RedisServer::start().await;
    let address = ValkeyAddress::parse(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    let store = || Arc::new(Valkey::new(&address, "anteroom").unwrap());
    conformance::check_overrides(store(), store())
        .await
        .unwrap();
}

// Virtual time, in `anteroom-node`, tests that it takes no longer than a second: at nodes with
// steady visitors, and at those without any for long.
#[tokio::test]
async fn a_command_at_one_node_applies_at_all() {
    let nodes = Nodes::start(1_000).await;
    for target in [0, 1, 2, 0] {
        nodes
            .operate(target, &["pause", "--message", "Back at ten"])
            .await;
        for node in 0..3 {
            eventually("the node responds with the pause", || async {
                let mut newcomer = Client::new(nodes.gateways[node].address);
                let response = newcomer.get("/").await;
                let is_queued = response.is_queued();
                let response = is_queued.then(|| response.json()["cfWaitingRoom"].clone());
                response.is_some_and(|response| {
                    response["reason"] == "paused" && response["message"] == "Back at ten"
                })
            })
            .await;
        }
        nodes.operate((target + 1) % 3, &["resume"]).await;
        for node in 0..3 {
            eventually("the node admits a visitor", || async {
                nodes.reason(node).await.is_none()
            })
            .await;
        }
    }
    // The log of all three nodes' commands, at any of them.
    let log = nodes.operate(2, &["audit"]).await;
    assert_eq!(log["entries"].as_array().unwrap().len(), 8);
}

#[tokio::test]
async fn a_node_that_was_cut_off_agrees_with_the_others() {
    let mut nodes = Nodes::start(5).await;
    nodes.operate(0, &["set", "total_active_users=2"]).await;
    let knows = async |node: usize| nodes.state(node).await["totalActiveUsers"] == 2;
    for node in 0..3 {
        eventually("the node knows", || async { knows(node).await }).await;
    }
    let mut inside = Vec::new();
    for node in [0, 1] {
        let mut visitor = Client::new(nodes.gateways[node].address);
        until_inside(&mut visitor, "/").await;
        inside.push(visitor);
    }
    assert!(nodes.reason(2).await.is_some(), "two are inside");

    nodes.operate(1, &["pause"]).await;
    nodes.gateways.remove(2).kill().await;
    std::fs::remove_dir_all(nodes.temp.path().join("data-2")).unwrap();
    let gateway = Gateway::start(&nodes.flags[2]).await;
    nodes.gateways.push(gateway);
    eventually("it has a lease again", || async {
        nodes.state(2).await["degraded"].is_null()
    })
    .await;
    assert_eq!(nodes.reason(2).await.as_deref(), Some("paused"));
    assert_eq!(
        nodes.state(2).await["overrides"]["total_active_users"]["value"],
        json!(2)
    );

    // A store that loses everything gets it back from the nodes.
    nodes.redis.send_ok(&["FLUSHALL"]).await;
    eventually("the store knows again", || async {
        nodes.reason(0).await;
        let keys = nodes.redis.send_ok(&["KEYS", "*settings*"]).await;
        matches!(keys, Reply::Array(keys) if !keys.is_empty())
    })
    .await;
    assert_eq!(nodes.state(1).await["paused"], true);
    nodes.operate(2, &["resume"]).await;
    assert_eq!(nodes.state(2).await["overrideVersion"], 3);
}

#[tokio::test]
async fn without_its_store_a_node_accepts_only_stops() {
    let mut nodes = Nodes::start(5).await;
    nodes.operate(0, &["message", "hello"]).await;
    nodes.redis.kill();
    for words in [&["set", "total_active_users=7"][..], &["resume"], &["open"]] {
        let ended = nodes.operate_at(&[0], words).await;
        assert_eq!(ended.code, Some(1), "{words:?}");
        assert!(
            ended.err.contains("the store is unavailable"),
            "{}",
            ended.err
        );
    }
    let state = nodes.state(0).await;
    assert_eq!(
        (&state["totalActiveUsers"], &state["message"]),
        (&json!(5), &json!("hello"))
    );
    let event = "operator command rejected: store unreachable";
    let log = nodes.gateways[0].log_with(event).await.join("\n");
    assert!(!log.contains("Err("), "{log}");
}

#[tokio::test]
async fn a_pause_stops_admissions_while_the_store_does_not_respond() {
    let mut nodes = Nodes::start(1_000).await;
    nodes.until_all_report(None).await;
    nodes.redis.pause();
    let ended = nodes
        .operate_at(&[0], &["pause", "--message", "Back at ten"])
        .await;
    assert_eq!(ended.code, Some(3), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("PAUSED since"), "{}", ended.out);
    let note = "This applies at this node only: the store is unavailable. All nodes follow when \
                the store replies. A restart of this node keeps it.";
    assert!(ended.out.contains(note), "{}", ended.out);
    // No visitor is admitted, though this node has a lease that would allow it.
    assert_eq!(nodes.reason(0).await.as_deref(), Some("paused"));
    let status = nodes.run(&[0], &["status"]).await;
    assert!(
        status.out.contains("at this node only: pause"),
        "{}",
        status.out
    );
    eventually("status names the store", || async {
        let status = nodes.run(&[0], &["status"]).await;
        status.code == Some(1) && status.out.contains("root store UNAVAILABLE")
    })
    .await;

    // It survives a restart of the process.
    nodes.gateways.remove(0).kill().await;
    let gateway = Gateway::start(&nodes.flags[0]).await;
    nodes.gateways.insert(0, gateway);
    assert_eq!(nodes.state(0).await["paused"], json!(true));

    nodes.redis.resume();
    nodes.until_all_report(Some("paused")).await;
    eventually("it is stored", || async {
        nodes.state(0).await["heldCommands"].is_null()
    })
    .await;
    assert_eq!(nodes.state(2).await["message"], json!("Back at ten"));
    let log = nodes.operate(1, &["audit"]).await;
    let what = &log["entries"][0]["what"];
    assert!(what.as_str().unwrap().starts_with("pause"), "{log}");
    nodes.operate(2, &["resume"]).await;
    nodes.until_all_report(None).await;
}

#[tokio::test]
async fn one_command_reaches_all_nodes_of_a_list() {
    let mut nodes = Nodes::start(1_000).await;
    nodes.until_all_report(None).await;
    nodes.redis.pause();
    let ended = nodes.operate_at(&[0, 1, 2], &["pause"]).await;
    assert_eq!(ended.code, Some(3), "{}{}", ended.out, ended.err);
    assert_eq!(ended.out.lines().count(), 3, "{}", ended.out);
    for (gateway, line) in nodes.gateways.iter().zip(ended.out.lines()) {
        let start = format!("{}: PAUSED since ", gateway.admin);
        assert!(line.starts_with(&start), "{line}");
    }
    for node in 0..3 {
        assert_eq!(nodes.reason(node).await.as_deref(), Some("paused"));
    }
    nodes.redis.resume();
    eventually("all commands are stored", || async {
        let mut is_pending = false;
        for node in 0..3 {
            is_pending |= !nodes.state(node).await["heldCommands"].is_null();
        }
        !is_pending
    })
    .await;
    let ended = nodes.operate_at(&[0, 1, 2], &["resume"]).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    nodes.until_all_report(None).await;
    let status = nodes.run(&[0, 1, 2], &["status"]).await;
    assert_eq!(status.code, Some(0), "{}", status.out);
    for gateway in &nodes.gateways {
        assert!(status.out.contains(&format!("{}:\n", gateway.admin)));
    }

    // An unavailable node does not keep the command from the others.
    let removed = nodes.gateways.remove(0);
    let admin = removed.admin.to_string();
    removed.kill().await;
    let token = nodes.token().display().to_string();
    let words = [
        "room",
        "pause",
        "main",
        "--token-file",
        &token,
        "--admin",
        &admin,
    ];
    let ended = nodes.run(&[0, 1], &words).await;
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
    assert!(
        ended.err.starts_with(&format!("{admin}: error: ")),
        "{}",
        ended.err
    );
    assert_eq!(ended.out.lines().count(), 2, "{}", ended.out);
    assert_eq!(nodes.reason(0).await.as_deref(), Some("paused"));
}

#[tokio::test]
async fn a_stop_for_one_node_does_not_wait_for_the_store() {
    let nodes = Nodes::start(1_000).await;
    nodes.until_all_report(None).await;
    let nothing = nodes.operate_at(&[0], &["resume", "--this-node"]).await;
    assert_eq!(nothing.code, Some(2), "{}", nothing.err);
    let ended = nodes.operate_at(&[0], &["pause", "--this-node"]).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert!(
        ended.out.contains("the command skipped the store"),
        "{}",
        ended.out
    );
    assert_eq!(nodes.reason(0).await.as_deref(), Some("paused"));
    nodes.until_all_report(Some("paused")).await;
}
