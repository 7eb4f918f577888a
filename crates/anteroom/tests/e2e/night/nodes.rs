//! Three gateways on one Redis: what is said at one holds at all of them.

use std::sync::Arc;

use anteroom_config::ValkeyAddress;
use anteroom_store::conformance;
use anteroom_testkit::redis_server::{RedisServer, Reply};
use anteroom_valkey::Valkey;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::Client;
use crate::support::origin::RecordingOrigin;
use crate::support::process::{Gateway, room_flags};
use crate::support::{eventually, site::until_inside};

use super::{said, token_file};

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
        let flags = (0..3).map(|node| {
            let data = temp.path().join(format!("data-{node}"));
            let mut flags = room_flags(origin.address, total, 100_000, &data.display().to_string());
            flags.extend(["--store".to_owned(), store.clone()]);
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

    async fn say(&self, node: usize, words: &[&str]) -> Value {
        let token = token_file(&self.temp.path().join(format!("data-{node}")));
        said(&self.gateways[node], &token, words).await
    }

    async fn state(&self, node: usize) -> Value {
        let mut operator = Client::new(self.gateways[node].admin);
        operator.get("/rooms/main/state").await.json()
    }

    /// What somebody new is told at this node; `None` = come in.
    async fn reason(&self, node: usize) -> Option<String> {
        let answer = Client::new(self.gateways[node].address).get("/").await;
        let is_queued = answer.is_queued();
        is_queued.then(|| {
            answer.json()["cfWaitingRoom"]["reason"]
                .as_str()
                .unwrap()
                .to_owned()
        })
    }
}

#[tokio::test]
async fn a_redis_keeps_what_operators_say() {
    let server = RedisServer::start().await;
    let address = ValkeyAddress::parse(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    let store = || Arc::new(Valkey::new(&address, "anteroom").unwrap());
    conformance::check_orders(store(), store()).await.unwrap();
}

/// That it takes no longer than a second is tested in virtual time, by `anteroom-node`: at nodes where
/// somebody comes all the time, and at those where nobody came for long.
#[tokio::test]
async fn what_is_said_at_one_node_holds_at_all() {
    let nodes = Nodes::start(1_000).await;
    for speaker in [0, 1, 2, 0] {
        nodes
            .say(speaker, &["pause", "--message", "Back at ten"])
            .await;
        for node in 0..3 {
            eventually("the node tells of the pause", || async {
                let mut newcomer = Client::new(nodes.gateways[node].address);
                let told = newcomer.get("/").await;
                let is_queued = told.is_queued();
                let told = is_queued.then(|| told.json()["cfWaitingRoom"].clone());
                told.is_some_and(|told| {
                    told["reason"] == "paused" && told["message"] == "Back at ten"
                })
            })
            .await;
        }
        nodes.say((speaker + 1) % 3, &["resume"]).await;
        for node in 0..3 {
            eventually("the node lets somebody in", || async {
                nodes.reason(node).await.is_none()
            })
            .await;
        }
    }
    // A log of what all three were told, at any of them.
    let log = nodes.say(2, &["audit"]).await;
    assert_eq!(log["entries"].as_array().unwrap().len(), 8);
}

#[tokio::test]
async fn a_node_that_hears_late_or_starts_late_or_has_lost_its_folder_does_as_the_others() {
    let mut nodes = Nodes::start(5).await;
    nodes.say(0, &["set", "total_active_users=2"]).await;
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

    nodes.say(1, &["pause"]).await;
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

    // A store that loses everything gets it back from those who know.
    nodes.redis.tell(&["FLUSHALL"]).await;
    eventually("the store knows again", || async {
        nodes.reason(0).await;
        let keys = nodes.redis.tell(&["KEYS", "*settings*"]).await;
        matches!(keys, Reply::Array(keys) if !keys.is_empty())
    })
    .await;
    assert_eq!(nodes.state(1).await["paused"], true);
    nodes.say(2, &["resume"]).await;
    assert_eq!(nodes.state(2).await["settingsVersion"], 3);
}

#[tokio::test]
async fn while_the_store_is_away_nothing_changes_and_that_is_said() {
    let mut nodes = Nodes::start(5).await;
    nodes.say(0, &["message", "hello"]).await;
    nodes.redis.kill();
    let token = token_file(&nodes.temp.path().join("data-0"));
    let ended = super::room(&nodes.gateways[0], &token, &["pause"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("nothing"), "{}", ended.err);
    let state = nodes.state(0).await;
    assert_eq!(
        (&state["paused"], &state["message"]),
        (&json!(false), &json!("hello"))
    );
}
