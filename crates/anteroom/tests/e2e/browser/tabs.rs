//! Several tabs of one visitor: when one of them leaves the line or enters, the others show it.
//!
//! Pages poll once a minute here, so a tab that shows a change soon did not learn it by its poll.

use anteroom_testkit::browser::{Browser, Setup};

use super::neighbour::Neighbour;
use super::{Scene, poll};

const SELDOM: &str = "session_duration = \"60s\"\nrefresh_interval = \"60s\"";

/// Polls until the page shows that its visitor is the first in line. A position is counted for some
/// seconds, and the next poll of the page itself would be a minute later.
async fn until_first(browser: &Browser) {
    let is_first = async || {
        poll(browser).await;
        browser.text("#number").await.as_deref() == Some("1")
    };
    browser.until("the visitor is the first", is_first).await;
}

/// Opens a full shop in two tabs, and shows the second one.
async fn two_tabs() -> (Scene, Browser, Neighbour) {
    let scene = Scene::new(1, SELDOM).await;
    let browser = Browser::start(Setup::Usual).await;
    let inside = scene.neighbour().await;
    browser.open(&scene.url("/lamps")).await;
    until_first(&browser).await;
    browser.open_tab().await;
    browser.open(&scene.url("/chairs")).await;
    until_first(&browser).await;
    (scene, browser, inside)
}

async fn until_queued(scene: &Scene, browser: &Browser, wanted: u64) {
    let is_counted = async || scene.queued().await == wanted;
    browser.until("as many are counted", is_counted).await;
}

#[tokio::test]
async fn a_tab_that_leaves_the_line_takes_the_other_along() {
    let (scene, browser, inside) = two_tabs().await;
    until_queued(&scene, &browser, 1).await;
    browser.click("#leave summary").await;
    browser.click("#leave button").await;
    browser.until_shows("#heading", "You left the line").await;
    until_queued(&scene, &browser, 0).await;
    browser.switch_to_tab(0).await;
    browser.until_shows("#heading", "You left the line").await;
    assert_eq!(browser.attribute("a.btn", "href").await.unwrap(), "/lamps");
    // Neither of the tabs polls any more: a poll would join the line again.
    assert_eq!(scene.queued().await, 0);

    // Both tabs are one new visitor when they come back.
    browser.click("a.btn").await;
    until_first(&browser).await;
    browser.switch_to_tab(1).await;
    browser.click("a.btn").await;
    until_first(&browser).await;
    until_queued(&scene, &browser, 1).await;
    inside.leave().await;
    browser.close().await;
}

#[tokio::test]
async fn a_page_that_slept_while_another_tab_left_does_not_join_again() {
    let (scene, browser, inside) = two_tabs().await;
    browser.set_frozen(true).await;
    browser.switch_to_tab(0).await;
    browser.click("#leave summary").await;
    browser.click("#leave button").await;
    browser.until_shows("#heading", "You left the line").await;
    browser.switch_to_tab(1).await;
    browser.set_frozen(false).await;
    browser.until_shows("#heading", "You left the line").await;
    until_queued(&scene, &browser, 0).await;
    inside.leave().await;
    browser.close().await;
}

#[tokio::test]
async fn a_tab_that_enters_takes_the_other_along() {
    let (scene, browser, inside) = two_tabs().await;
    inside.leave().await;
    poll(&browser).await;
    for tab in [1, 0] {
        browser.switch_to_tab(tab).await;
        browser.until_shows("#shop", "The shop").await;
    }
    scene.check_limits();
    browser.close().await;
}
