//! The waiting page in a real browser, with other visitors, in front of an origin that counts.

mod gallery;
mod neighbour;
mod overrides;
mod queue;
mod returning;
mod shop;
mod single_page;
mod states;
mod unusual;

use crate::support::client::Client;
use crate::support::config::{ConfigFile, SERVER, room};
use crate::support::process::Gateway;
use neighbour::Neighbour;
use shop::Shop;

/// Name of the one room.
const ROOM: &str = "main";

/// A shop with a room in front of it.
struct Scene {
    shop: Shop,
    gateway: Gateway,
    visitors: Client,
    operators: Client,
    total: u32,
    config: ConfigFile,
}

impl Scene {
    /// A room for `total` visitors, with more lines of TOML.
    async fn new(total: u32, more: &str) -> Self {
        let shop = Shop::open().await;
        let config = SERVER.to_owned() + &room(ROOM, shop.address, total, more);
        let config = ConfigFile::new(&config);
        let gateway = Gateway::start(&config.flags()).await;
        Self {
            visitors: Client::new(gateway.address),
            operators: Client::new(gateway.admin),
            shop,
            gateway,
            total,
            config,
        }
    }

    fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.gateway.address)
    }

    /// Adds another visitor.
    async fn neighbour(&self) -> Neighbour {
        Neighbour::come(self.visitors.new_client()).await
    }

    /// Returns the number of waiting visitors, as operators see it.
    async fn queued(&self) -> u64 {
        let path = format!("/rooms/{ROOM}/state");
        let state = self.operators.clone().get(&path).await.json();
        state["queuedUsers"].as_u64().unwrap()
    }

    /// Checks the limits by the origin's own count.
    fn check_limits(&self) {
        let verdict = self.shop.verdict(self.total);
        assert!(verdict.is_within_limits(), "{verdict:?}");
    }
}
