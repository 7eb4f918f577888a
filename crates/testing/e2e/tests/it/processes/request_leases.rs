//! Leased requests on the real program: from a data folder, over a kill and a successor; and from
//! an empty server, until an operator assumes that nothing was used.

use std::path::{Path, PathBuf};

use anteroom_e2e::binary;
use anteroom_e2e::eventually;
use anteroom_e2e::node::Node;
use anteroom_testkit::redis_server::RedisServer;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use crate::processes::overrides::{call, let_through, limits, start};
use crate::processes::successor::{SERVES, Successor, count};

/// Requests of a client in an hour.
const LIMIT: usize = 20;
/// Least number of allowed requests: each process may lose a batch.
const LEAST: usize = 12;

fn config(store: &str, lines: &str) -> String {
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{store}\
         [[room]]\nname = \"shop\"\nhost = \"shop.example\"\norigin = \"http://127.0.0.1:9\"\n\
         total_active_users = 10\nnew_users_per_minute = 10\nbypass = []\n\
         [[limit]]\nname = \"api\"\nlimit = \"{LIMIT}/h\"\nkey = \"header:X-Api-Key\"\n{lines}\n"
    )
}

const LEASES: &str = "store = \"leases\"";

async fn alone() -> (TempDir, PathBuf, Node) {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    let node = start("only", folder.clone(), &config("", LEASES)).await;
    (temp, folder, node)
}

#[tokio::test]
async fn used_requests_stay_used_when_the_process_is_killed() {
    let (_temp, _folder, mut node) = alone().await;
    // At once: a new folder needs no confirmation that nothing was used.
    let mut spent = let_through(&node, "gold", 5).await;
    assert_eq!(spent, 5, "{}", node.log());
    for calls in [LIMIT, 5] {
        node.kill().await;
        node.spawn();
        node.serves().await;
        spent += let_through(&node, "gold", calls).await;
        assert!(spent <= LIMIT, "{spent}: {}", node.log());
    }
    assert!(spent >= LEAST, "{spent}: {}", node.log());
    assert_eq!(let_through(&node, "gold", 3).await, 0, "{}", node.log());
    // No other client waits for it.
    assert!(let_through(&node, "tin", LIMIT).await >= LEAST);
}

#[tokio::test]
async fn a_successor_continues_with_its_predecessors_counts() {
    let (_temp, _folder, node) = alone().await;
    let mut spent = let_through(&node, "gold", 10).await;
    assert_eq!(spent, 10);
    node.replace();
    eventually("there is a successor", async || count(&node, SERVES) == 1).await;
    let _successor = Successor::of(&node);
    spent += let_through(&node, "gold", LIMIT).await;
    assert!((LEAST..=LIMIT).contains(&spent), "{spent}: {}", node.log());
}

#[tokio::test]
async fn an_operator_ends_the_wait_for_a_server_without_memory() {
    let temp = tempfile::tempdir().unwrap();
    let mut redis = RedisServer::start().await;
    let store = format!(
        "[store]\nkind = \"valkey\"\nlocal = \"redis://127.0.0.1:{}\"\n",
        redis.port()
    );
    let folder = temp.path().join("node");
    let node = start("only", folder.clone(), &config(&store, LEASES)).await;
    // An empty server grants nothing for five seconds, in case a node has a record; or until this
    // command.
    let output = limits(&node, &folder, &["assume-empty"]).await;
    assert_eq!(output, json!({ "limits": ["api"] }));
    eventually("requests are leased", async || {
        call(&node, "gold").await == 404
    })
    .await;
    redis.restart().await;
    eventually("nobody knows what clients have used", async || {
        node.log().contains("the store may have lost leases")
    })
    .await;
    for client in ["tin", "lead", "lead"] {
        assert_eq!(call(&node, client).await, 503, "{}", node.log());
    }
    // Another connection reads operators' values, and may notice only now that it is broken.
    eventually("the command succeeds", async || {
        assume_empty(&node, &folder).await.0 == Some(0)
    })
    .await;
    for client in ["tin", "lead", "gold"] {
        eventually("requests are leased again", async || {
            call(&node, client).await == 404
        })
        .await;
    }
    let log = limits(&node, &folder, &["audit"]).await;
    let newest = log["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(newest["what"], "limits assume-empty");
    assert!(
        node.log()
            .contains("operator assumes leased limits unspent")
    );
}

/// Runs `limits assume-empty`; returns its exit code and its error output.
async fn assume_empty(node: &Node, folder: &Path) -> (Option<i32>, String) {
    let ended = Command::new(binary::path())
        .args(["limits", "assume-empty", "--admin"])
        .arg(node.admin().get().unwrap().to_string())
        .arg("--token-file")
        .arg(folder.join("data/admin-token"))
        .output()
        .await
        .unwrap();
    let message = String::from_utf8_lossy(&ended.stderr).into_owned();
    (ended.status.code(), message)
}

#[tokio::test]
async fn without_leased_limits_the_command_fails() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    let node = start("only", folder.clone(), &config("", "")).await;
    let (code, message) = assume_empty(&node, &folder).await;
    assert_eq!(code, Some(2), "{message}");
    assert!(
        message.contains("no limit has store = \"leases\""),
        "{message}"
    );
    let log = limits(&node, &folder, &["audit"]).await;
    assert_eq!(log["entries"], json!([]));
}
