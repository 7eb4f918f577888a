//! Visitors who send forms, go back, run no scripts, or keep no cookies.

use anteroom_testkit::browser::{Browser, Setup};
use http::Method;

use super::neighbour::{Neighbour, Stage};
use super::{Scene, arrival, until_in_line, until_position};

/// Settings with a session that ends during the test.
const SHORT: &str = "session_duration = \"5s\"\nposition_grace = \"40s\"";
const MINUTE: &str = "session_duration = \"60s\"\nposition_grace = \"40s\"";

const ASK_FOR_COOKIES: &str = "Please allow cookies";
const NOTICE: &str = "Your form was not sent";

/// Script that records the last sentence of the page.
const REMEMBER_NOTICE: &str = "window.addEventListener('pagehide', () => \
    { localStorage.last = document.getElementById('why').textContent; })";

#[tokio::test]
async fn a_form_sent_after_the_session_is_dropped_and_followed_by_get() {
    let scene = Scene::new(1, SHORT).await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&scene.url("/")).await;
    browser.until_shows("#shop", "The shop").await;

    let neighbour = take_seat(&scene).await;
    browser.click("button").await;
    browser.until_shows(".box.hold b", NOTICE).await;
    browser.take_pictures("waiting-after-post").await;
    until_position(&browser, 1).await;
    neighbour.leave().await;
    browser.until_shows("#shop", "The shop").await;
    // The page with the form, and not a GET on the address of the form.
    assert_eq!(browser.address().await, scene.url("/"));
    assert_eq!(requests_at(&scene), ["GET /", "GET /"]);

    let neighbour = take_seat(&scene).await;
    browser.click("button").await;
    browser.until_shows(".box.hold b", NOTICE).await;
    browser.back().await;
    // Chromium may still have the page that sent the form.
    browser.reload().await;
    until_in_line(&browser).await;
    assert_eq!(browser.text(".box.hold b").await.as_deref(), Some(""));
    browser.run(REMEMBER_NOTICE).await;
    neighbour.leave().await;
    browser.until_shows("#shop", "The shop").await;
    let last = browser.run("return localStorage.last").await;
    assert_eq!(
        last, "You are going in now.",
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

    let mut page = String::new();
    browser
        .until("the visitor is in line", async || {
            browser.open(&scene.url("/")).await;
            page = browser.text("body").await.unwrap();
            page.contains("You’re in line")
        })
        .await;
    for line in [
        "Moving",
        "Your position in line",
        "Counting…",
        "Your position is saved.",
        "Check now",
        "This page checks again by itself every 20 seconds.",
        "Updated",
        "Your reference",
        "Leave the line",
    ] {
        assert!(page.contains(line), "{line:?} is missing: {page}");
    }
    browser.take_pictures("waiting-no-script").await;
    let since = arrival(&browser).await;
    browser.click("#go").await;
    until_in_line(&browser).await;
    assert_eq!(arrival(&browser).await, since);
    inside.leave().await;
    browser.click("#go").await;
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
    browser.until_shows(".box.hold b", NOTICE).await;
    neighbour.leave().await;
    browser.until_shows("#shop", "The shop").await;
    assert_eq!(requests_at(&scene), ["GET /", "GET /"]);
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
        let page = browser.text("body").await.unwrap();
        assert!(page.contains("didn’t keep the cookie"), "{page}");
        for claim in ["is saved", "Estimated wait", "Your position in line"] {
            assert!(
                !page.contains(claim),
                "{claim}, but an unknown visitor has no position"
            );
        }
        browser.click("#go").await;
    }
    browser.until_shows("#heading", ASK_FOR_COOKIES).await;
    browser.take_pictures("waiting-no-cookies").await;
    assert_eq!(scene.queued().await, 0, "it blocks the queue");
    assert!(scene.shop.requests_of_browser().is_empty());
    assert_eq!(inside.stage(), Stage::Inside);

    inside.leave().await;
    browser.click("#go").await;
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
