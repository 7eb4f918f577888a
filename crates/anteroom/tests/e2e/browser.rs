//! The waiting page in a real browser, with other visitors, in front of an origin that counts.

mod gallery;
mod neighbour;
mod overrides;
mod own_page;
mod queue;
mod returning;
mod shop;
mod single_page;
mod states;
mod tabs;
mod unusual;

use anteroom_testkit::browser::Browser;

use crate::support::client::Client;
use crate::support::config::{ConfigFile, SERVER, room};
use crate::support::process::Gateway;
use neighbour::Neighbour;
use shop::Shop;

/// Name of the one room.
const ROOM: &str = "main";

/// Waits until the page shows that its visitor is in line, near the front or not.
async fn until_in_line(browser: &Browser) {
    let is_in_line = async || {
        let heading = browser.text("#heading").await.unwrap_or_default();
        heading == "You’re in line" || heading == "Almost there"
    };
    browser.until("the visitor is in line", is_in_line).await;
}

/// Waits until the page shows this position, and the title of its tab as well, after its first
/// poll. That is a second after its arrival: visitors who come later
/// stand behind.
async fn until_position(browser: &Browser, position: u32) {
    let has_polled = "return document.getElementById('joined').textContent !== ''";
    let has_polled = async || browser.run(has_polled).await == true;
    browser.until("the script has polled", has_polled).await;
    browser.until_shows("#number", &position.to_string()).await;
    let start = format!("{position} in line · ");
    let is_titled = async || browser.title().await.starts_with(&start);
    browser.until("the title has the position", is_titled).await;
}

/// Returns the arrival of the page's visitor.
async fn arrival(browser: &Browser) -> String {
    let since = browser.attribute("script", "data-since").await;
    since.filter(|since| !since.is_empty()).unwrap()
}

/// Makes the page poll at once.
async fn poll(browser: &Browser) {
    // The button is hidden while the page polls by itself.
    browser.run("document.getElementById('go').click()").await;
}

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
        let path = format!("/api/v1/rooms/{ROOM}/state");
        let state = self.operators.clone().get(&path).await.json();
        state["queuedUsers"].as_u64().unwrap()
    }

    /// Checks the limits by the origin's own count.
    fn check_limits(&self) {
        let verdict = self.shop.verdict(self.total);
        assert!(verdict.is_within_limits(), "{verdict:?}");
    }
}
