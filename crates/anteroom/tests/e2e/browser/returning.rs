//! Going away and coming back: a closed tab, another page, sleep. And the language that was chosen.

use anteroom_testkit::browser::{Browser, Setup};

use super::Scene;
use super::neighbour::{Neighbour, Stage};

const MINUTE: &str = "session_duration = \"60s\"";

/// A browser that waits for the one seat there is.
struct FirstInLine {
    scene: Scene,
    browser: Browser,
    inside: Neighbour,
}

impl FirstInLine {
    /// It asks for this target, and sees its place.
    async fn at(target: &str) -> Self {
        let scene = Scene::new(1, MINUTE).await;
        let browser = Browser::start(Setup::Usual).await;
        let inside = scene.neighbour().await;
        browser.open(&scene.url(target)).await;
        browser.until_called(FIRST).await;
        Self {
            scene,
            browser,
            inside,
        }
    }

    /// Whoever is inside leaves, and the browser goes in by itself.
    async fn goes_in(self) -> (Scene, Browser) {
        self.inside.leave().await;
        self.browser.until_shows("#shop", "The shop").await;
        (self.scene, self.browser)
    }
}

/// What the browser's tab is called then.
const FIRST: &str = "0 · You are in line";

/// The last word is the origin's.
async fn end((scene, browser): (Scene, Browser)) {
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn whoever_closes_the_tab_and_comes_back_has_the_same_place() {
    let first = FirstInLine::at("/").await;
    let FirstInLine { scene, browser, .. } = &first;
    let since = browser.attribute("#since", "data-at").await.unwrap();
    browser.open_tab().await;
    browser.close_tab(0).await;
    let is_forgotten = async || scene.queued().await == 0;
    browser
        .until("nobody is counted who does not ask", is_forgotten)
        .await;
    let later = scene.neighbour().await;
    assert_eq!(later.stage(), Stage::Waiting);

    browser.open(&scene.url("/")).await;
    browser.until_called(FIRST).await;
    assert_eq!(browser.attribute("#since", "data-at").await.unwrap(), since);
    let inside = first.goes_in().await;
    assert_eq!(later.stage(), Stage::Waiting, "came later, went in sooner");
    end(inside).await;
}

#[tokio::test]
async fn back_shows_a_page_that_goes_on_asking() {
    let first = FirstInLine::at("/lamps").await;
    let FirstInLine { browser, .. } = &first;
    let since = browser.attribute("#since", "data-at").await;
    browser.open("data:text/html,<h1>elsewhere</h1>").await;
    browser.until_shows("h1", "elsewhere").await;
    browser.back().await;
    browser.until_called(FIRST).await;
    assert_eq!(browser.attribute("#since", "data-at").await, since);
    let (scene, browser) = first.goes_in().await;
    assert_eq!(browser.address().await, scene.url("/lamps"));
    end((scene, browser)).await;
}

#[tokio::test]
async fn a_page_that_slept_asks_on_waking_and_keeps_its_place() {
    let first = FirstInLine::at("/").await;
    let FirstInLine { scene, browser, .. } = &first;
    browser.set_frozen(true).await;
    let is_asleep = async || scene.queued().await == 0;
    browser.until("it asks no more", is_asleep).await;
    let later = scene.neighbour().await;
    assert_eq!(later.stage(), Stage::Waiting);
    browser.set_frozen(false).await;
    let both_wait = async || scene.queued().await == 2;
    browser.until("it asks again", both_wait).await;
    let inside = first.goes_in().await;
    assert_eq!(later.stage(), Stage::Waiting, "came later, went in sooner");
    end(inside).await;
}

#[tokio::test]
async fn near_the_front_the_page_listens_while_somebody_looks_at_it() {
    let first = FirstInLine::at("/").await;
    let FirstInLine { scene, browser, .. } = &first;
    let has_begun = async |streams: u64| {
        let metrics = scene.operators.clone().get("/metrics").await.text();
        metrics.contains(&format!("verdict=\"stream\"}} {streams}\n"))
    };
    browser
        .until("it listens", async || has_begun(1).await)
        .await;
    // It ends its stream when it is hidden, so it has to begin another one when it is seen again.
    browser.open_tab().await;
    browser.close_tab(1).await;
    browser
        .until("it listens again", async || has_begun(2).await)
        .await;
    end(first.goes_in().await).await;
}

#[tokio::test]
async fn without_scripts_the_language_is_changed_and_the_place_stays() {
    for setup in [Setup::NoScript, Setup::Usual] {
        let scene = Scene::new(1, MINUTE).await;
        let browser = Browser::start(setup).await;
        let inside = scene.neighbour().await;
        browser.open(&scene.url("/lamps?colour=red")).await;
        browser.until_shows("#heading", "You are in line").await;
        let since = browser.attribute("#since", "data-at").await;
        browser.click("option[value=de]").await;
        browser.click("form button").await;
        browser
            .until_shows("#heading", "Sie stehen in der Schlange")
            .await;
        assert_eq!(browser.address().await, scene.url("/lamps?colour=red"));
        assert_eq!(browser.attribute("#since", "data-at").await, since);
        inside.leave().await;
        if setup == Setup::NoScript {
            browser.click("#check").await;
        }
        browser.until_shows("#shop", "The shop").await;
        let calls = scene.shop.calls_of_browser();
        assert_eq!(calls[0].target, "/lamps?colour=red");
        scene.check_limits();
        browser.close().await;
    }
}

#[tokio::test]
async fn progress_is_shown_from_where_it_began_and_stays_over_a_reload() {
    let scene = Scene::new(1, MINUTE).await;
    let browser = Browser::start(Setup::Usual).await;
    let inside = scene.neighbour().await;
    let first = scene.neighbour().await;
    let second = scene.neighbour().await;
    browser.open(&scene.url("/")).await;
    browser.until_called("2 · You are in line").await;
    assert_eq!(
        browser.text("#part").await.as_deref(),
        Some(""),
        "no way yet"
    );
    first.leave().await;
    browser.until_shows("#part", "50 %").await;
    browser.reload().await;
    browser.until_shows("#part", "50 %").await;
    let value = browser
        .run("return document.getElementById('bar').value")
        .await;
    assert_eq!(value, 50);
    inside.leave().await;
    second.leave().await;
    browser.until_shows("#shop", "The shop").await;
    browser.close().await;
}
