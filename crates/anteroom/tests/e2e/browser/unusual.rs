//! Visitors who send forms, go back, run no scripts, or keep no cookies.

use anteroom_testkit::browser::{Browser, Setup};
use http::Method;

use super::Scene;
use super::neighbour::{Neighbour, Stage};

/// Settings with a session that ends during the test.
const SHORT: &str = "session_duration = \"5s\"\nposition_grace = \"40s\"";
const MINUTE: &str = "session_duration = \"60s\"\nposition_grace = \"40s\"";

const ASK_FOR_COOKIES: &str = "Please allow cookies";
const NOTICE: &str = "Your form was not sent. When it is your turn, please send it again.";

/// Script that records whether the page ended without a notice about cookies.
const REMEMBER_NOTICE: &str = "window.addEventListener('pagehide', () => \
    { localStorage.is_hidden = document.getElementById('cookies').hidden; })";

#[tokio::test]
async fn a_form_sent_after_the_session_is_dropped_and_followed_by_get() {
    let scene = Scene::new(1, SHORT).await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&scene.url("/")).await;
    browser.until_shows("#shop", "The shop").await;

    let neighbour = take_seat(&scene).await;
    browser.click("button").await;
    browser.until_shows(".notice", NOTICE).await;
    browser.take_pictures("waiting-after-post").await;
    browser.until_titled("0 · You are in line").await;
    neighbour.leave().await;
    browser.until_shows("#shop", "The shop").await;
    assert_eq!(browser.address().await, scene.url("/order"));
    assert_eq!(requests_at(&scene), ["GET /", "GET /order"]);

    let neighbour = take_seat(&scene).await;
    browser.click("button").await;
    browser.until_shows(".notice", NOTICE).await;
    browser.back().await;
    // Chromium may still have the page that sent the form.
    browser.reload().await;
    browser.until_shows("#heading", "You are in line").await;
    assert_eq!(browser.text(".notice").await.as_deref(), Some(""));
    browser.run(REMEMBER_NOTICE).await;
    neighbour.leave().await;
    browser.until_shows("#shop", "The shop").await;
    let is_hidden = browser.run("return localStorage.is_hidden").await;
    assert_eq!(
        is_hidden, "true",
        "a visitor who enters twice has lost no cookie"
    );
    assert!(!requests_at(&scene).contains(&"POST /order".to_owned()));

    browser.click("button").await;
    browser.until_shows("#shop", "Thank you").await;
    let requests = scene.shop.requests_of_browser();
    let mut posts = requests.iter().filter(|r| r.method == Method::POST);
    assert_eq!(posts.next().unwrap().body, "item=lamp");
    assert!(posts.next().is_none(), "sent once, arrived twice");
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn without_scripts_the_page_is_complete_and_its_link_enters() {
    let scene = Scene::new(1, MINUTE).await;
    let browser = Browser::start(Setup::NoScript).await;
    let inside = scene.neighbour().await;

    // Right after the last seat was taken, the page still says that visitors are entering; this
    // page polls once.
    let mut page = String::new();
    browser
        .until("the room is called full", async || {
            browser.open(&scene.url("/")).await;
            page = browser.text("body").await.unwrap();
            page.contains("This site is busy right now")
        })
        .await;
    for line in [
        "You are in line",
        "People ahead of you",
        "Nobody",
        "First come, first served.",
        "Your place is saved.",
        "Check now",
        "This page checks again by itself every 20 seconds.",
        "Last updated",
    ] {
        assert!(page.contains(line), "{line:?} is missing: {page}");
    }
    browser.take_pictures("waiting-no-script").await;
    let since = browser.attribute("#since", "data-at").await;
    browser.click("#check").await;
    browser.until_shows("#heading", "You are in line").await;
    assert_eq!(browser.attribute("#since", "data-at").await, since);
    inside.leave().await;
    browser.click("#check").await;
    browser.until_shows("#shop", "The shop").await;
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn without_scripts_the_page_reloads_itself_and_uses_get_after_a_form() {
    let scene = Scene::new(1, SHORT).await;
    let browser = Browser::start(Setup::NoScript).await;
    browser.open(&scene.url("/")).await;
    browser.until_shows("#shop", "The shop").await;
    let neighbour = take_seat(&scene).await;
    browser.click("button").await;
    browser.until_shows(".notice", NOTICE).await;
    neighbour.leave().await;
    browser.until_shows("#shop", "The shop").await;
    assert_eq!(requests_at(&scene), ["GET /", "GET /order"]);
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn a_visitor_without_cookies_gets_a_notice_and_waits_when_full() {
    let scene = Scene::new(1, MINUTE).await;
    let browser = Browser::start(Setup::NoCookies).await;
    let inside = scene.neighbour().await;

    browser.open(&scene.url("/")).await;
    for _ in 0..5 {
        browser.until_shows("#heading", ASK_FOR_COOKIES).await;
        let notice = browser.text("#cookies").await.unwrap();
        assert!(notice.contains("does not seem to keep cookies"), "{notice}");
        for line in ["#kept", "#order", "#ahead", "#wait", "#since"] {
            let claim = browser.text(line).await.unwrap();
            assert_eq!(claim, "", "{line}, but an unknown visitor has no position");
        }
        browser.click("#check").await;
    }
    browser.until_shows("#heading", ASK_FOR_COOKIES).await;
    browser.take_pictures("waiting-no-cookies").await;
    assert_eq!(scene.queued().await, 0, "it blocks the queue");
    assert!(scene.shop.requests_of_browser().is_empty());
    assert_eq!(inside.stage(), Stage::Inside);

    inside.leave().await;
    browser.click("#check").await;
    browser.until_shows("#shop", "The shop").await;
    browser.reload().await;
    browser.until_shows("#heading", ASK_FOR_COOKIES).await;
    assert_eq!(scene.shop.requests_of_browser().len(), 1);
    scene.check_limits();
    browser.close().await;
}

/// Adds a visitor, who waits until the browser's session is over.
pub(super) async fn take_seat(scene: &Scene) -> Neighbour {
    let mut neighbour = scene.neighbour().await;
    neighbour.until_inside().await;
    neighbour
}

/// Returns the requests of the browser that reached the shop.
fn requests_at(scene: &Scene) -> Vec<String> {
    let requests = scene.shop.requests_of_browser();
    let lines = requests
        .iter()
        .map(|c| format!("{} {}", c.method, c.target));
    lines.collect()
}
