//! Texts of the page while no visitor is admitted, and the end of these states.

use std::time::{Duration, SystemTime};

use anteroom_testkit::browser::{Browser, Setup};

use super::overrides::operate;
use super::{ROOM, Scene};

#[tokio::test]
async fn the_page_counts_down_to_the_opening_and_enters() {
    let browser = Browser::start(Setup::Usual).await;
    let opening = in_seconds(20);
    let scene = Scene::new(1, &format!("opens_at = \"{opening}\"")).await;
    browser.open(&scene.url("/")).await;
    browser.until_shows("#tag", "Not open yet").await;
    browser.until_shows("#label", "Opens in").await;
    let left = browser.text("#number").await.unwrap();
    assert!(left.starts_with("0:"), "{left}");
    browser.run("window.marker = 'the same page'").await;
    let has_changed = async || browser.text("#number").await.unwrap_or_default() != left;
    browser.until("the countdown moves", has_changed).await;
    browser.take_pictures("not-open-yet").await;
    let marker = browser.run("return window.marker").await;
    assert_eq!(marker, "the same page", "it was reloaded");
    browser.until_shows("#shop", "The shop").await;
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn the_page_reports_that_the_origin_is_down_and_recovers() {
    let scene = Scene::new(2, "session_duration = \"60s\"").await;
    let browser = Browser::start(Setup::Usual).await;
    let inside = scene.neighbour().await;
    scene.shop.set_closed(true);
    let path = format!("/api/v1/rooms/{ROOM}/state");
    let is_noticed = async || {
        let state = scene.operators.clone().get(&path).await.json();
        state["degraded"] == "origin_down"
    };
    browser.until("the gateway notices", is_noticed).await;
    let is_reported = async || {
        browser.open(&scene.url("/")).await;
        let reason = browser.text("#why").await.unwrap_or_default();
        reason.contains("isn’t answering properly")
    };
    // Now and then a visitor is admitted to probe the origin, and gets an error.
    browser.until("the page says so", is_reported).await;
    browser.take_pictures("origin-down").await;
    scene.shop.set_closed(false);
    browser.until_shows("#shop", "The shop").await;
    inside.leave().await;
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn a_rejecting_room_promises_nothing_and_takes_visitors_in_again() {
    let scene = Scene::new(1, "queueing_method = \"reject\"").await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&scene.url("/")).await;
    browser.until_shows("#heading", "No room right now").await;
    let page = browser.text("body").await.unwrap();
    for promise in ["position", "Estimated", "Leave the line"] {
        assert!(!page.contains(promise), "{promise:?} is promised: {page}");
    }
    assert!(
        page.contains("This page checks every 30 seconds."),
        "{page}"
    );
    browser.take_pictures("rejecting").await;
    // The first poll follows the page; the button polls once more.
    browser.click("#go").await;
    browser.until_shows("#heading", "No room right now").await;
    operate(&scene, &["message", "All tickets are gone."]).await;
    browser.click("#go").await;
    browser.until_shows("#heading", "Entry is closed").await;
    browser
        .until_shows("#message", "All tickets are gone.")
        .await;
    let page = browser.text("body").await.unwrap();
    assert!(!page.contains("is full"), "it may be sold out: {page}");
    browser.take_pictures("closed").await;
    operate(&scene, &["set", "queueing_method=fifo"]).await;
    browser.click("#go").await;
    browser.until_shows("#shop", "The shop").await;
    browser.close().await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "the config file wants a time of the wall clock"
)]
pub(super) fn in_seconds(seconds: u64) -> String {
    let at = SystemTime::now() + Duration::from_secs(seconds);
    humantime::format_rfc3339_seconds(at).to_string()
}
