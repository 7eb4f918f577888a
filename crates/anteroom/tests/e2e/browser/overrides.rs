//! An operator changes the room while a browser shows its page, which follows without a reload.

use anteroom_testkit::browser::{Browser, Setup};

use super::states::in_seconds;
use super::{Scene, poll, until_in_line};
use crate::night::{room_json, token_file};

/// Runs a command about the room.
pub(super) async fn operate(scene: &Scene, words: &[&str]) {
    let data = scene.config.path().with_file_name("anteroom-data");
    room_json(&scene.gateway, &token_file(&data), words).await;
}

#[tokio::test]
async fn open_and_new_pages_show_the_overrides() {
    let scene = Scene::new(1, "session_duration = \"60s\"").await;
    let browser = Browser::start(Setup::Usual).await;
    let inside = scene.neighbour().await;
    browser.open(&scene.url("/")).await;
    until_in_line(&browser).await;
    assert_eq!(browser.text("#message").await.unwrap(), "");
    browser.run("window.marker = 'the same page'").await;

    operate(&scene, &["message", "Doors at <ten>"]).await;
    browser.until_shows("#message", "Doors at <ten>").await;
    let time = browser.text("#at").await.unwrap();
    assert!(time.contains(':'), "the message has its time: {time}");
    operate(&scene, &["pause", "--message", "Back at 10:40"]).await;
    browser.until_shows("#message", "Back at 10:40").await;
    browser.until_shows("#heading", "Entry is paused").await;
    browser.take_pictures("paused").await;
    // Paused visitors poll less often than those near the front, so the link polls at once.
    operate(&scene, &["resume"]).await;
    poll(&browser).await;
    browser.until_shows("#message", "Doors at <ten>").await;
    browser.until_shows("#tag", "Moving").await;
    operate(&scene, &["message", ""]).await;
    browser.until_shows("#message", "").await;
    assert_eq!(browser.text("#at").await.unwrap(), "");
    let opening = format!("opens_at={}", in_seconds(3_600));
    operate(&scene, &["set", &opening]).await;
    browser
        .until_shows("#heading", "You’re early, and that’s fine")
        .await;
    let left = browser.text("#number").await.unwrap();
    assert!(left.starts_with("59:") || left == "1 hour", "{left}");
    let marker = browser.run("return window.marker").await;
    assert_eq!(marker, "the same page", "it was reloaded");

    operate(&scene, &["pause", "--message", "Held"]).await;
    operate(&scene, &["set", "queueing_status_code=503"]).await;
    browser.reload().await;
    browser.until_shows("#message", "Held").await;
    operate(&scene, &["open"]).await;
    inside.leave().await;
    poll(&browser).await;
    browser.until_shows("#shop", "The shop").await;
    scene.check_limits();
    browser.close().await;
}
