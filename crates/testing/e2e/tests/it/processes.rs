//! Visitors while a process is replaced, or its certificate and origins change.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

mod activation;
mod gossip;
mod http2;
mod leaving;
mod origins;
mod overrides;
mod rate_limits;
mod request_leases;
mod store_unavailable;
mod successor;
mod tls;

use std::net::SocketAddr;

use anteroom_e2e::binary;
use anteroom_e2e::node::Node;
use tempfile::TempDir;

/// Returns a config of one room on ports that the system chooses, with more lines of `[server]`.
fn config(origin: SocketAddr, total: u32, server: &str) -> String {
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\ndata_dir = \"data\"\n\
         {server}\n\
         [[room]]\nname = \"shop\"\norigin = \"http://{origin}\"\ntotal_active_users = {total}\n\
         new_users_per_minute = 100000\nsession_duration = \"30s\"\nbypass = []\n\
         enabled_origin_commands = [\"revoke\"]\n"
    )
}

/// Starts a node with this config and waits until it serves.
async fn node(temp: &TempDir, config: &str) -> Node {
    let mut node = Node::new("only", &binary::path(), temp.path().join("node"), config);
    node.spawn();
    node.serves().await;
    node
}
