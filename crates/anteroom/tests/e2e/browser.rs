//! The waiting page in a real browser, among other people, in front of a shop that counts.

mod gallery;
mod line;
mod neighbour;
mod overrides;
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

    /// Somebody else comes.
    async fn neighbour(&self) -> Neighbour {
        Neighbour::come(self.visitors.somebody_else()).await
    }

    /// How many wait, as operators are told.
    async fn queued(&self) -> u64 {
        let path = format!("/rooms/{ROOM}/state");
        let state = self.operators.clone().get(&path).await.json();
        state["queuedUsers"].as_u64().unwrap()
    }

    /// The last word is the origin's.
    fn check_limits(&self) {
        let verdict = self.shop.verdict(self.total);
        assert!(verdict.is_within_limits(), "{verdict:?}");
    }
}
