//! Rooms that are made over the API, at two gateways on one Redis.

mod commands;
mod history;
mod rooms;
mod sdk;

use std::path::PathBuf;

use anteroom_testkit::redis_server::RedisServer;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::Client;
use crate::support::origin::RecordingOrigin;
use crate::support::process::Gateway;

/// Token of the tests.
const TOKEN: &str = "a-token-of-the-tests";
const VIEWER: &str = "a-token-of-a-viewer";

/// Gateways on one Redis, with two sites and a room of the file.
struct Nodes {
    gateways: Vec<Gateway>,
    redis: RedisServer,
    origin: RecordingOrigin,
    temp: TempDir,
}

impl Nodes {
    async fn start() -> Self {
        let mut nodes = Self {
            gateways: Vec::new(),
            redis: RedisServer::start().await,
            origin: RecordingOrigin::start().await,
            temp: tempfile::tempdir().unwrap(),
        };
        let tokens = format!("ada {TOKEN}\neve {VIEWER} viewer\n");
        std::fs::write(nodes.temp.path().join("tokens"), tokens).unwrap();
        for node in 0..2 {
            let gateway = nodes.start_node(node).await;
            nodes.gateways.push(gateway);
        }
        nodes
    }

    /// Starts a node in its data folder.
    async fn start_node(&self, node: usize) -> Gateway {
        let file = self.file(node);
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
             admin_token_file = \"tokens\"\ndata_dir = {:?}\n\
             [store]\nkind = \"valkey\"\nlocal = \"redis://127.0.0.1:{}\"\n\
             [[site]]\nname = \"shop\"\nhosts = [\"shop.example\", \"www.shop.example\"]\n\
             origin = \"http://{origin}\"\n\
             [[site]]\nname = \"blog\"\nhost = \"blog.example\"\norigin = \"http://{origin}\"\n\
             [[room]]\nname = \"checkout\"\nhost = \"shop.example\"\npath = \"/checkout\"\n\
             total_active_users = 50\nnew_users_per_minute = 30\nbypass = []\n",
            self.temp.path().join(format!("data-{node}")),
            self.redis.port(),
            origin = self.origin.address,
        );
        std::fs::write(&file, text).unwrap();
        Gateway::start(&["--config".to_owned(), file.display().to_string()]).await
    }

    fn file(&self, node: usize) -> PathBuf {
        self.temp.path().join(format!("anteroom-{node}.toml"))
    }

    fn base(&self, node: usize) -> String {
        format!("http://{}/client/v4", self.gateways[node].admin)
    }

    async fn call(&self, node: usize, method: Method, path: &str, body: Value) -> Reply {
        let headers = [("authorization", format!("Bearer {TOKEN}"))];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.call_with(node, method, path, &headers, body).await
    }

    async fn call_with(
        &self,
        node: usize,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: String,
    ) -> Reply {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        let path = format!("/client/v4{path}");
        let mut client = Client::new(self.gateways[node].admin);
        let response = client.send(method, &path, &headers, &body).await;
        let tag = response
            .headers
            .get("etag")
            .map(|tag| tag.to_str().unwrap().to_owned());
        Reply {
            status: response.status,
            tag,
            body: serde_json::from_slice(&response.body).unwrap_or(Value::Null),
        }
    }

    /// Returns the path of the rooms of the shop.
    async fn rooms(&self) -> String {
        let zones = self
            .call(0, Method::GET, "/zones?name=shop", Value::Null)
            .await;
        let zone = zones.body["result"][0]["id"].as_str().unwrap().to_owned();
        format!("/zones/{zone}/waiting_rooms")
    }
}

struct Reply {
    status: StatusCode,
    tag: Option<String>,
    body: Value,
}

impl Reply {
    fn id(&self) -> &str {
        self.body["result"]["id"].as_str().unwrap()
    }
}

fn room(name: &str, path: &str) -> Value {
    json!({
        "name": name, "host": "shop.example", "path": path,
        "total_active_users": 200, "new_users_per_minute": 200,
    })
}
