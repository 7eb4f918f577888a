//! Leaving and coming back: a closed tab, another page, sleep. And the chosen language.

use anteroom_testkit::browser::{Browser, Setup};

use super::neighbour::{Neighbour, Stage};
use super::{Scene, arrival, until_in_line, until_position};

const MINUTE: &str = "session_duration = \"60s\"";

/// A browser that waits for the only seat.
struct FirstInLine {
    scene: Scene,
    browser: Browser,
    inside: Neighbour,
}

impl FirstInLine {
    /// Opens this target, and waits for the position.
    async fn at(target: &str) -> Self {
        let scene = Scene::new(1, MINUTE).await;
        let browser = Browser::start(Setup::Usual).await;
        let inside = scene.neighbour().await;
        browser.open(&scene.url(target)).await;
        until_position(&browser, 1).await;
        Self {
            scene,
            browser,
            inside,
        }
    }

    /// Ends the other session, so that the browser enters.
    async fn enter(self) -> (Scene, Browser) {
        self.inside.leave().await;
        self.browser.until_shows("#shop", "The shop").await;
        (self.scene, self.browser)
    }
}

/// Checks the limits by the origin's own count.
async fn end((scene, browser): (Scene, Browser)) {
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn a_visitor_who_closes_the_tab_keeps_the_position() {
    let first = FirstInLine::at("/").await;
    let FirstInLine { scene, browser, .. } = &first;
    let since = arrival(browser).await;
    browser.open_tab().await;
    browser.close_tab(0).await;
    let is_forgotten = async || scene.queued().await == 0;
    browser
        .until("a visitor who does not poll is not counted", is_forgotten)
        .await;
    let later = scene.neighbour().await;
    assert_eq!(later.stage(), Stage::Waiting);

    browser.open(&scene.url("/")).await;
    until_position(browser, 1).await;
    assert_eq!(arrival(browser).await, since);
    let inside = first.enter().await;
    assert_eq!(
        later.stage(),
        Stage::Waiting,
        "arrived later, entered earlier"
    );
    end(inside).await;
}

#[tokio::test]
async fn the_back_button_shows_a_page_that_keeps_polling() {
    let first = FirstInLine::at("/lamps").await;
    let FirstInLine { browser, .. } = &first;
    let since = arrival(browser).await;
    browser.open("data:text/html,<h1>elsewhere</h1>").await;
    browser.until_shows("h1", "elsewhere").await;
    browser.back().await;
    until_position(browser, 1).await;
    assert_eq!(arrival(browser).await, since);
    let (scene, browser) = first.enter().await;
    assert_eq!(browser.address().await, scene.url("/lamps"));
    end((scene, browser)).await;
}

#[tokio::test]
async fn a_page_polls_after_sleep_and_keeps_its_position() {
    let first = FirstInLine::at("/").await;
    let FirstInLine { scene, browser, .. } = &first;
    browser.set_frozen(true).await;
    let is_asleep = async || scene.queued().await == 0;
    browser.until("it polls no more", is_asleep).await;
    let later = scene.neighbour().await;
    assert_eq!(later.stage(), Stage::Waiting);
    browser.set_frozen(false).await;
    // The visitor looks at the page again: the browser itself leaves it hidden.
    let show = "Object.defineProperty(document, 'hidden', {get: () => false, configurable: true})";
    browser.run(show).await;
    let both_wait = async || scene.queued().await == 2;
    browser.until("it polls again", both_wait).await;
    let inside = first.enter().await;
    assert_eq!(
        later.stage(),
        Stage::Waiting,
        "arrived later, entered earlier"
    );
    end(inside).await;
}

#[tokio::test]
async fn a_page_in_the_background_holds_its_turn() {
    let FirstInLine {
        scene,
        browser,
        inside,
    } = FirstInLine::at("/lamps").await;
    let hide = "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})";
    browser.run(hide).await;
    inside.leave().await;
    browser
        .until_shows("#heading", "Your turn is held for you")
        .await;
    let title = browser.title().await;
    assert!(title.starts_with('('), "it counts down: {title}");
    let icon = browser.attribute("#icon", "href").await.unwrap();
    assert!(icon.contains("green"), "{icon}");
    browser.click("#hold").await;
    let is_extended = async || {
        browser
            .run("return document.getElementById('hold').hidden")
            .await
            == true
    };
    browser.until("the turn is extended", is_extended).await;
    assert!(
        scene.shop.requests_of_browser().is_empty(),
        "nobody has entered"
    );
    let other = scene.neighbour().await;
    assert_eq!(other.stage(), Stage::Waiting, "the seat is held");
    browser.click("#go").await;
    browser.until_shows("#shop", "The shop").await;
    assert_eq!(browser.address().await, scene.url("/lamps"));
    end((scene, browser)).await;
}

/// Browsers delay the timers of such pages by up to a minute. Here it is a quarter of one.
#[tokio::test]
async fn a_page_in_the_background_gets_its_turn_without_a_timer() {
    let FirstInLine {
        scene,
        browser,
        inside,
    } = FirstInLine::at("/lamps").await;
    let throttle = "Object.defineProperty(document, 'hidden', {get: () => true});\
        const timer = window.setTimeout, load = window.fetch;\
        window.setTimeout = (run, ms) => timer(run, Math.max(ms, 15000));\
        window.polls = [];\
        window.fetch = (...all) => {\
            const poll = {began: performance.now()};\
            polls.push(poll);\
            return load(...all).finally(() => { poll.ended = performance.now(); });\
        };";
    browser.run(throttle).await;
    // A poll has waited for the turn, and the next one followed long before the timer.
    let follows = "return polls.some((poll, at) => poll.ended - poll.began > 5000\
        && polls[at + 1] && polls[at + 1].began - poll.ended < 5000)";
    browser
        .until("the next poll follows at once", async || {
            browser.run(follows).await == true
        })
        .await;
    inside.leave().await;
    browser
        .until_shows("#heading", "Your turn is held for you")
        .await;
    end((scene, browser)).await;
}

#[tokio::test]
async fn near_the_front_a_visible_page_listens() {
    let first = FirstInLine::at("/").await;
    let FirstInLine { scene, browser, .. } = &first;
    let has_begun = async |streams: u64| {
        let metrics = scene.operators.clone().get("/metrics").await.text();
        metrics.contains(&format!("verdict=\"stream\"}} {streams}\n"))
    };
    browser
        .until("it listens", async || has_begun(1).await)
        .await;
    // It ends its stream when it is hidden, so it opens another one when it is visible again.
    browser.open_tab().await;
    browser.close_tab(1).await;
    browser
        .until("it listens again", async || has_begun(2).await)
        .await;
    end(first.enter().await).await;
}

#[tokio::test]
async fn the_language_changes_without_scripts_and_the_position_stays() {
    for setup in [Setup::NoScript, Setup::Usual] {
        let scene = Scene::new(1, MINUTE).await;
        let browser = Browser::start(setup).await;
        let inside = scene.neighbour().await;
        browser.open(&scene.url("/lamps?colour=red#third")).await;
        until_in_line(&browser).await;
        let since = arrival(&browser).await;
        browser.click("#lang").await;
        browser.until_shows("#heading", "Language").await;
        browser.click("a[hreflang=de]").await;
        browser.until_shows("#tag", "Es geht voran").await;
        // The server never sees the fragment; the script adds it to the link.
        let address = browser.address().await;
        let kept = match setup {
            Setup::NoScript => "/lamps?colour=red",
            _ => "/lamps?colour=red#third",
        };
        assert_eq!(address, scene.url(kept));
        assert_eq!(arrival(&browser).await, since);
        inside.leave().await;
        if setup == Setup::NoScript {
            browser.click("#go").await;
        }
        browser.until_shows("#shop", "The shop").await;
        let requests = scene.shop.requests_of_browser();
        assert_eq!(requests[0].target, "/lamps?colour=red");
        scene.check_limits();
        browser.close().await;
    }
}

#[tokio::test]
async fn progress_starts_at_the_first_position_and_survives_a_reload() {
    let scene = Scene::new(1, MINUTE).await;
    let browser = Browser::start(Setup::Usual).await;
    let inside = scene.neighbour().await;
    let first = scene.neighbour().await;
    let second = scene.neighbour().await;
    browser.open(&scene.url("/")).await;
    until_position(&browser, 3).await;
    assert_eq!(
        browser.text("#part").await.as_deref(),
        Some(""),
        "no progress yet"
    );
    first.leave().await;
    browser.until_shows("#part", "50% of the way").await;
    browser.reload().await;
    browser.until_shows("#part", "50% of the way").await;
    let value = browser
        .run("return document.getElementById('bar').value")
        .await;
    assert_eq!(value, 50);
    inside.leave().await;
    second.leave().await;
    browser.until_shows("#shop", "The shop").await;
    browser.close().await;
}
