//! An operator changes the room while a browser shows its page: the page follows by itself.

use anteroom_testkit::browser::{Browser, Setup};

use super::Scene;
use super::states::in_seconds;
use crate::night::{said, token_file};

/// Says something about the room, as an operator types it.
async fn say(scene: &Scene, words: &[&str]) {
    let data = scene.config.path().with_file_name("anteroom-data");
    said(&scene.gateway, &token_file(&data), words).await;
}

/// Waits until the reason that the page gives begins so.
async fn until_told(browser: &Browser, reason: &str) {
    let is_told = async || {
        let text = browser.text("#reason").await;
        text.is_some_and(|text| text.starts_with(reason))
    };
    browser.until(reason, is_told).await;
}

#[tokio::test]
async fn old_and_new_pages_show_what_holds_and_not_the_file() {
    let scene = Scene::new(1, "session_duration = \"60s\"").await;
    let browser = Browser::start(Setup::Usual).await;
    let inside = scene.neighbour().await;
    browser.open(&scene.url("/")).await;
    browser.until_shows("#heading", "You are in line").await;
    assert_eq!(browser.text("#message").await.unwrap(), "");
    browser.run("window.marker = 'the same page'").await;

    say(&scene, &["message", "Doors at <ten>"]).await;
    browser.until_shows("#message", "Doors at <ten>").await;
    say(&scene, &["pause", "--message", "Back at 10:40"]).await;
    browser.until_shows("#message", "Back at 10:40").await;
    until_told(&browser, "The organiser has paused the entry.").await;
    browser.photograph("paused").await;
    // Those who are held look less often than those near the front: the link looks at once.
    say(&scene, &["resume"]).await;
    browser.click("#check").await;
    browser.until_shows("#message", "Doors at <ten>").await;
    until_told(&browser, "As many visitors are inside").await;
    say(&scene, &["message", ""]).await;
    browser.until_shows("#message", "").await;
    let opening = format!("opens_at={}", in_seconds(3_600));
    say(&scene, &["set", &opening]).await;
    browser.until_shows("#heading", "Not open yet").await;
    let left = browser.text("#left").await.unwrap();
    assert!(left.starts_with("00:5"), "{left}");
    let marker = browser.run("return window.marker").await;
    assert_eq!(marker, "the same page", "it was reloaded");

    say(&scene, &["pause", "--message", "Held"]).await;
    say(&scene, &["set", "queueing_status_code=503"]).await;
    browser.reload().await;
    browser.until_shows("#message", "Held").await;
    say(&scene, &["open"]).await;
    inside.leave().await;
    browser.click("#check").await;
    browser.until_shows("#shop", "The shop").await;
    scene.check_limits();
    browser.close().await;
}
