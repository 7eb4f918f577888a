//! A whole site: a recording origin, and a gateway in front of it.

use std::net::SocketAddr;

use serde_json::Value;

use super::client::{Answer, Client};
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
    /// Starts a site after the config file that is made for its origin.
    pub(crate) async fn start(config: impl FnOnce(SocketAddr) -> String) -> Self {
        Self::start_with(&[], config).await
    }

    /// The same with more flags of `serve`.
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

    /// A site with one room, `main`, for so many visitors, and more lines of its TOML.
    pub(crate) async fn with_room(total: u32, more: &str) -> Self {
        Self::start(|origin| SERVER.to_owned() + &room("main", origin, total, more)).await
    }

    /// Somebody new.
    pub(crate) fn visitor(&self) -> Client {
        Client::new(self.gateway.address)
    }

    /// Somebody new who is let in. The first one comes before the room's first lease.
    pub(crate) async fn insider(&self) -> Client {
        let mut client = self.visitor();
        until_inside(&mut client, "/").await;
        client
    }

    /// A `cookie` header line of somebody who is let in.
    pub(crate) async fn ticket_line(&self) -> String {
        let cookies = self.insider().await.cookies;
        let (name, value) = cookies.first_key_value().unwrap();
        format!("cookie: {name}={value}\r\n")
    }

    /// Asks the admin address.
    pub(crate) async fn operators(&self, path: &str) -> Answer {
        Client::new(self.gateway.admin).get(path).await
    }

    /// `GET /rooms/{name}/state`.
    pub(crate) async fn state(&self, room: &str) -> Value {
        self.operators(&format!("/rooms/{room}/state")).await.json()
    }

    /// One figure of `/metrics`, by the beginning of its line.
    pub(crate) async fn figure(&self, sample: &str) -> Option<f64> {
        let text = self.operators("/metrics").await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(sample))?;
        Some(line.trim().parse().unwrap())
    }
}

/// Navigates again and again until the origin answers.
pub(crate) async fn until_inside(client: &mut Client, path: &str) -> Answer {
    let last = parking_lot::Mutex::new(None);
    let shared = tokio::sync::Mutex::new(client);
    eventually("the visitor is inside", || async {
        let answer = shared.lock().await.navigate(path).await;
        let is_inside = !answer.is_queued();
        *last.lock() = Some(answer);
        is_inside
    })
    .await;
    last.into_inner().unwrap()
}
