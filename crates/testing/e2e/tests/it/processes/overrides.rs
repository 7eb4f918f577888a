//! Overrides for single clients on the real program: from its own command to the response to a
//! client.

use std::path::{Path, PathBuf};
use std::process::Output;

use anteroom_e2e::binary;
use anteroom_e2e::eventually;
use anteroom_e2e::node::Node;
use anteroom_testkit::redis_server::RedisServer;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

/// Returns a config with a low limit, of an API without an origin: an allowed request gets 404.
fn config(store: &str) -> String {
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{store}\
         [[room]]\nname = \"shop\"\nhost = \"shop.example\"\norigin = \"http://127.0.0.1:9\"\n\
         total_active_users = 10\nnew_users_per_minute = 10\nbypass = []\n\
         [[limit]]\nname = \"api\"\nlimit = \"3/h\"\nkey = \"header:X-Api-Key\"\n"
    )
}

pub(crate) async fn start(name: &str, folder: PathBuf, config: &str) -> Node {
    let mut node = Node::new(name, &binary::path(), folder, config);
    node.spawn();
    node.serves().await;
    node
}

/// Runs an operator's command of the program and returns its output.
pub(crate) async fn limits(node: &Node, folder: &Path, words: &[&str]) -> Value {
    let output = run_command(node, folder, words).await;
    let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{words:?}: {err}");
    serde_json::from_slice(&out).unwrap()
}

async fn run_command(node: &Node, folder: &Path, words: &[&str]) -> Output {
    Command::new(binary::path())
        .arg("limits")
        .args(words)
        .args(["--json", "--admin"])
        .arg(node.admin().get().unwrap().to_string())
        .arg("--token-file")
        .arg(folder.join("data/admin-token"))
        .output()
        .await
        .unwrap()
}

/// Returns how many of so many requests of a client pass at once.
pub(crate) async fn let_through(node: &Node, client: &str, requests: usize) -> usize {
    let mut passed = 0;
    for _ in 0..requests {
        match call(node, client).await {
            404 => passed += 1,
            429 => {}
            status => panic!("{status}: {}", node.log_tail(20)),
        }
    }
    passed
}

/// Returns the status of a client's request: 404 if it passes.
pub(crate) async fn call(node: &Node, client: &str) -> u16 {
    let address = node.address().get().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: api.example\r\nX-Api-Key: {client}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let status = response.get(9..12).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("{response}"))
}

#[tokio::test]
async fn an_override_acts_at_once_and_after_a_kill() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    let mut node = start("only", folder.clone(), &config("")).await;
    assert_eq!(let_through(&node, "gold", 4).await, 3);
    limits(&node, &folder, &["set", "api", "gold", "10/h"]).await;
    // Its earlier requests still count.
    assert_eq!(let_through(&node, "gold", 10).await, 7);
    let standing = limits(&node, &folder, &["show", "api", "gold"]).await;
    assert_eq!(
        (&standing["requests"], &standing["remaining"]),
        (&10.into(), &0.into())
    );
    node.kill().await;
    node.spawn();
    node.serves().await;
    assert_eq!(let_through(&node, "gold", 11).await, 10, "{}", node.log());
    assert_eq!(let_through(&node, "tin", 4).await, 3);
    node.reload(|config| config.replace("\"3/h\"", "\"2/h\""));
    eventually("the file was read again", async || {
        limits(&node, &folder, &["list", "api"]).await["limits"][0]["values"]["limit"] == "2/h"
    })
    .await;
    assert_eq!(let_through(&node, "lead", 3).await, 2);
    let standing = limits(&node, &folder, &["show", "api", "gold"]).await;
    assert_eq!(standing["requests"], 10);
    limits(&node, &folder, &["unset", "api", "gold"]).await;
    let standing = limits(&node, &folder, &["show", "api", "gold"]).await;
    assert_eq!(standing["requests"], 2);
    assert!(
        !node.log().contains("gold"),
        "a key of an API is in the log"
    );
}

#[tokio::test]
async fn an_override_at_one_node_acts_at_all_sharing_a_store() {
    let temp = tempfile::tempdir().unwrap();
    let redis = RedisServer::start().await;
    let config = config(&format!(
        "[store]\nkind = \"valkey\"\nlocal = \"redis://127.0.0.1:{}\"\n",
        redis.port()
    ));
    let folders = ["one", "other"].map(|name| temp.path().join(name));
    let one = start("one", folders[0].clone(), &config).await;
    let other = start("other", folders[1].clone(), &config).await;
    limits(&one, &folders[0], &["set", "api", "gold", "10/h"]).await;
    eventually("the other node knows it", async || {
        limits(&other, &folders[1], &["show", "api", "gold"]).await["requests"] == 10
    })
    .await;
    assert_eq!(let_through(&other, "gold", 11).await, 10);
    limits(&other, &folders[1], &["unset", "api", "gold"]).await;
    eventually("the first node knows it", async || {
        limits(&one, &folders[0], &["show", "api", "gold"]).await["requests"] == 3
    })
    .await;
    let log = limits(&one, &folders[0], &["audit"]).await;
    assert_eq!(log["entries"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_override_that_a_store_cannot_count_is_rejected() {
    let temp = tempfile::tempdir().unwrap();
    let redis = RedisServer::start().await;
    let store = format!(
        "[store]\nkind = \"valkey\"\nlocal = \"redis://127.0.0.1:{}\"\n",
        redis.port()
    );
    let mut config = config(&store);
    config.push_str("store = \"valkey\"\nalgorithm = \"gcra\"\nburst = 3\n");
    let folder = temp.path().join("node");
    let node = start("only", folder.clone(), &config).await;
    limits(&node, &folder, &["set", "api", "tin", "1/h"]).await;
    let output = run_command(
        &node,
        &folder,
        &["set", "api", "gold", "1/31d", "--burst", "2000"],
    )
    .await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // As JSON, which the command was run for.
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("at most 142 years"), "{told}");
    let shown = limits(&node, &folder, &["list", "api"]).await;
    let overrides = shown["limits"][0]["overrides"].as_array().unwrap();
    assert_eq!(overrides.len(), 1, "{shown}");
    assert_eq!(let_through(&node, "gold", 4).await, 3);
    // An invalid file does not replace a valid one.
    let check = temp.path().join("check.toml");
    let own = "overrides = [{ key = \"gold\", limit = \"1/31d\", burst = 2000 }]\n";
    std::fs::write(&check, config + own).unwrap();
    let output = Command::new(binary::path())
        .args(["check", "--config"])
        .arg(&check)
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("check.toml:") && told.contains("overrides[1].burst"),
        "{told}"
    );
}
