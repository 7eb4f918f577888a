//! A single-page shop with the script of `docs/how-to/single-page-shop.md`.

use anteroom_testkit::browser::{Browser, Setup};

use super::Scene;
use super::shop::page;
use super::unusual::take_seat;

/// Settings with a session that ends during the test.
const SHORT: &str = "session_duration = \"5s\"\nposition_grace = \"40s\"";

/// Service worker that passes everything on, as the page advises for navigations.
pub(super) const WORKER: &str = "addEventListener('activate', e => e.waitUntil(clients.claim())); \
    addEventListener('fetch', e => e.respondWith(fetch(e.request)));";

/// Script of the shop: it requests its stock by `fetch` or by `XMLHttpRequest`.
const SHOP: &str = "\
    const stock = document.getElementById('stock');\
    function told(is_good) { stock.textContent = is_good ? 'some' : 'error'; }\
    document.getElementById('fetch').onclick = () => fetch('/stock').then(r => told(r.ok));\
    document.getElementById('xhr').onclick = () => {\
        const asked = new XMLHttpRequest();\
        asked.onload = () => told(asked.status === 200);\
        asked.open('GET', '/stock');\
        asked.send();\
    };";

/// Returns the script of the docs.
fn script() -> &'static str {
    let docs = include_str!("../../../../../docs/how-to/single-page-shop.md");
    let (_, rest) = docs.split_once("```js\n").expect("a script");
    rest.split_once("```").expect("its end").0
}

/// Returns the page of the shop.
pub(super) fn app() -> String {
    let script = script();
    let content = format!(
        "<p id=\"stock\"></p><button id=\"fetch\">A</button><button id=\"xhr\">B</button>\
         <script>{script}</script><script>{SHOP}</script>"
    );
    page("The app", &content)
}

#[tokio::test]
async fn a_shop_with_queued_requests_reloads_to_the_waiting_page_and_back() {
    let scene = Scene::new(1, SHORT).await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&scene.url("/app#/lamps")).await;
    for button in ["#fetch", "#xhr"] {
        browser.until_shows("#shop", "The app").await;
        browser.click(button).await;
        browser.until_shows("#stock", "some").await;

        let neighbour = take_seat(&scene).await;
        // A page is reloaded at most once within 10 s.
        browser.run("sessionStorage.clear()").await;
        browser.click(button).await;
        // The script met the end of the session, and the page says it.
        browser
            .until_shows("#heading", "Your session has ended")
            .await;
        assert_eq!(browser.address().await, scene.url("/app#/lamps"));
        neighbour.leave().await;
    }
    browser.until_shows("#shop", "The app").await;
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn a_shop_that_was_just_reloaded_gets_a_status() {
    let scene = Scene::new(1, SHORT).await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&scene.url("/app")).await;
    browser.until_shows("#shop", "The app").await;
    let neighbour = take_seat(&scene).await;
    // A time in the future keeps "just now" true on the slowest machine.
    browser
        .run("sessionStorage.setItem('anteroom-reloaded-at', Date.now() + 1e9)")
        .await;
    browser.click("#fetch").await;
    browser.until_shows("#stock", "error").await;
    browser
        .run("document.getElementById('stock').textContent = ''")
        .await;
    browser.click("#xhr").await;
    browser.until_shows("#stock", "error").await;
    neighbour.leave().await;
    browser.close().await;
}

#[tokio::test]
async fn a_queued_image_or_script_fails_to_load() {
    let scene = Scene::new(1, SHORT).await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&scene.url("/app")).await;
    browser.until_shows("#shop", "The app").await;
    let neighbour = take_seat(&scene).await;
    browser
        .run(
            "for (const [tag, file] of [['img', '/lamp.png'], ['script', '/lamp.js']]) {
                const part = document.createElement(tag);
                part.onload = () => { document.title = 'loaded'; };
                part.onerror = () => { document.title += ', no ' + tag; };
                document.title = 'parts';
                part.src = file;
                document.body.append(part);
            }",
        )
        .await;
    let both = async || {
        let title = browser.title().await;
        title.contains("no img") && title.contains("no script")
    };
    browser.until("both have failed", both).await;
    neighbour.leave().await;
    browser.close().await;
}

#[tokio::test]
async fn a_navigation_that_a_service_worker_passes_on_shows_the_waiting_page() {
    let scene = Scene::new(1, SHORT).await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&scene.url("/app")).await;
    browser.until_shows("#shop", "The app").await;
    browser
        .run("navigator.serviceWorker.register('/worker.js')")
        .await;
    let is_controlled = "return navigator.serviceWorker.controller !== null";
    browser
        .until("the worker stands in between", async || {
            browser.run(is_controlled).await == true
        })
        .await;
    let neighbour = take_seat(&scene).await;
    browser.reload().await;
    browser
        .until_shows("#heading", "Your session has ended")
        .await;
    neighbour.leave().await;
    browser.until_shows("#shop", "The app").await;
    scene.check_limits();
    browser.close().await;
}
