//! A site: a recording origin, and a gateway in front of it.

use std::net::SocketAddr;

use serde_json::Value;

use super::client::{Client, TestResponse};
use super::config::{ConfigFile, SERVER, room};
use super::eventually;
use super::origin::RecordingOrigin;
use super::process::Gateway;

/// A running site.
pub(crate) struct Site {
    pub(crate) gateway: Gateway,
    pub(crate) origin: RecordingOrigin,
    pub(crate) file: ConfigFile,
}

impl Site {
    /// Starts a site with the config that is made for its origin.
    pub(crate) async fn start(config: impl FnOnce(SocketAddr) -> String) -> Self {
        Self::start_with(&[], config).await
    }

    /// Starts a site like [`start`](Self::start), with more flags of `serve`.
    pub(crate) async fn start_with(
        flags: &[&str],
        config: impl FnOnce(SocketAddr) -> String,
    ) -> Self {
        let origin = RecordingOrigin::start().await;
        let file = ConfigFile::new(&config(origin.address));
        let mut all = file.flags();
        all.extend(flags.iter().map(ToString::to_string));
        let gateway = Gateway::start(&all).await;
        Self {
            gateway,
            origin,
            file,
        }
    }

    /// Starts a site with one room, `main`, for `total` visitors, with more lines of TOML.
    pub(crate) async fn with_room(total: u32, more: &str) -> Self {
        Self::start(|origin| SERVER.to_owned() + &room("main", origin, total, more)).await
    }

    /// Returns a new visitor.
    pub(crate) fn visitor(&self) -> Client {
        Client::new(self.gateway.address)
    }

    /// Returns an active visitor. The first one arrives before the room's first lease.
    pub(crate) async fn insider(&self) -> Client {
        let mut client = self.visitor();
        until_inside(&mut client, "/").await;
        client
    }

    /// Returns the `cookie` header line of an active visitor.
    pub(crate) async fn ticket_line(&self) -> String {
        let cookies = self.insider().await.cookies;
        let (name, value) = cookies.first_key_value().unwrap();
        format!("cookie: {name}={value}\r\n")
    }

    /// Requests a path of the admin address.
    pub(crate) async fn operators(&self, path: &str) -> TestResponse {
        Client::new(self.gateway.admin).get(path).await
    }

    /// Returns the body of `GET /api/v1/rooms/{name}/state`.
    pub(crate) async fn state(&self, room: &str) -> Value {
        self.operators(&format!("/api/v1/rooms/{room}/state"))
            .await
            .json()
    }

    /// Returns one sample of `/metrics`, by the beginning of its line.
    pub(crate) async fn metric(&self, sample: &str) -> Option<f64> {
        let text = self.operators("/metrics").await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(sample))?;
        Some(line.trim().parse().unwrap())
    }
}

/// Navigates until the origin responds.
pub(crate) async fn until_inside(client: &mut Client, path: &str) -> TestResponse {
    let last = parking_lot::Mutex::new(None);
    let shared = tokio::sync::Mutex::new(client);
    eventually("the visitor is inside", || async {
        let response = shared.lock().await.navigate(path).await;
        let is_inside = !response.is_queued();
        *last.lock() = Some(response);
        is_inside
    })
    .await;
    last.into_inner().unwrap()
}
