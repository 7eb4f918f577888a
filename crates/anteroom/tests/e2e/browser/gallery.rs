//! Every state of the page in a browser: accessibility, small screens, and screenshots for people.

mod pages;

use std::collections::BTreeMap;

use anteroom_config::language::Language;
use anteroom_testkit::browser::{Browser, Setup};

use pages::{Gallery, STATES};

/// The accessibility checker: <https://github.com/dequelabs/axe-core>, unchanged.
const AXE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/testdata/axe/axe.min.js"
));

/// Script that runs all rules on the whole page; each finding is a line.
const FIND: &str = "return axe.run(document, {resultTypes: ['violations']}).then(r => r.violations\
    .map(v => v.id + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join(' | \
    ')).join('\\n'))";

/// Script that stops the page once its heading says that it is the visitor's turn. Otherwise it
/// would reload while it is examined.
const STOP_AT_TURN: &str = "const heading = document.getElementById('heading');
    new MutationObserver(() => {
        if (heading.textContent !== 'It is your turn') return;
        for (let id = setTimeout(String); id > 0; id--) clearTimeout(id);
        window.hasStopped = true;
    }).observe(heading, {childList: true, characterData: true, subtree: true});";

/// Script that loads the page as if it had just entered. Its mark is valid for five seconds, so
/// this one is of a later time.
const COME_BACK: &str = "const url = document.documentElement.getAttribute('data-position');
    sessionStorage.setItem(url, Date.now() + 3600000);
    location.reload();";

/// Returns the checker's findings on the present page.
async fn findings(browser: &Browser) -> String {
    browser
        .run(&format!("{AXE};\n{FIND}"))
        .await
        .as_str()
        .unwrap()
        .to_owned()
}

/// Waits until the script has shown its first response, so that the page is complete.
async fn until_whole(browser: &Browser, state: &str) {
    if state != "rejecting" {
        let has_polled = "return performance.getEntriesByType('resource').length > 0 \
                     && document.getElementById('live').textContent !== ''";
        let is_whole = async || browser.run(has_polled).await == true;
        browser.until("the script has polled", is_whole).await;
    }
}

/// Findings of the checker on several pages.
#[derive(Default)]
struct Found(BTreeMap<String, String>);

impl Found {
    async fn check(&mut self, browser: &Browser, what: &str) {
        let findings = findings(browser).await;
        if !findings.is_empty() {
            self.0.insert(what.to_owned(), findings);
        }
    }

    fn assert_nothing(&self) {
        assert!(self.0.is_empty(), "{:#?}", self.0);
    }
}

#[tokio::test]
async fn an_accessibility_checker_finds_nothing_in_any_language() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    let mut found = Found::default();
    for language in Language::ALL {
        browser.open(&gallery.url("message", language)).await;
        until_whole(&browser, "message").await;
        found.check(&browser, &format!("{language:?}")).await;
    }
    found.assert_nothing();
    browser.close().await;
}

#[tokio::test]
async fn an_accessibility_checker_finds_nothing_in_any_state() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    let mut found = Found::default();
    for light in ["light", "dark"] {
        browser.set_light(light).await;
        for state in STATES {
            browser.open(&gallery.url(state, Language::English)).await;
            until_whole(&browser, state).await;
            found.check(&browser, &format!("{state} {light}")).await;
        }
    }
    browser.open(&gallery.url("cut", Language::English)).await;
    let shows_cut = async || {
        let live = browser.text("#live").await.unwrap_or_default();
        live.starts_with("No connection at the moment. Your place is safe for 5 minutes")
    };
    browser
        .until("the page reports the lost connection", shows_cut)
        .await;
    found.check(&browser, "cut").await;
    browser.open(&gallery.url("turn", Language::English)).await;
    browser.run(STOP_AT_TURN).await;
    gallery.are_there_turns.send_replace(true);
    let has_stopped = async || browser.run("return window.hasStopped === true").await == true;
    browser.until("it is the visitor's turn", has_stopped).await;
    found.check(&browser, "turn").await;
    // Loaded again, and not admitted: the ticket got lost, and the page reports it.
    gallery.are_there_turns.send_replace(false);
    browser.run(COME_BACK).await;
    browser.until_shows("#heading", "You are in line").await;
    browser.run(STOP_AT_TURN).await;
    gallery.are_there_turns.send_replace(true);
    browser
        .until_shows("#reason", "Trying again in 20 seconds.")
        .await;
    found.check(&browser, "bounced").await;
    found.assert_nothing();
    browser.close().await;
}

#[tokio::test]
async fn the_accessibility_checker_works_and_finds_nothing_without_cookies() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::NoCookies).await;
    browser.open(&gallery.url("full", Language::English)).await;
    browser
        .until_shows("#heading", "Please allow cookies")
        .await;
    assert_eq!(findings(&browser).await, "");
    browser
        .run("document.documentElement.removeAttribute('lang')")
        .await;
    browser
        .run("document.getElementById('reason').innerHTML = '<img src=\"data:,\">'")
        .await;
    let planted = findings(&browser).await;
    assert!(planted.contains("html-has-lang"), "{planted}");
    assert!(planted.contains("image-alt"), "{planted}");
    browser.close().await;
}

#[tokio::test]
async fn every_page_fits_small_screens_and_large_text_and_nothing_moves() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    // 320 by 256 CSS pixels are 1280 by 1024 at 400 %.
    for (width, height) in [(320, 640), (320, 256)] {
        browser.set_screen(width, height, true).await;
        for language in Language::ALL {
            for state in ["message", "recovering", "draw"] {
                browser.open(&gallery.url(state, language)).await;
                let wide =
                    "const r = document.documentElement; return r.scrollWidth - r.clientWidth";
                assert_eq!(
                    browser.run(wide).await,
                    0,
                    "{state} {language:?} is too wide"
                );
                let moves = "return document.getAnimations().length";
                assert_eq!(browser.run(moves).await, 0, "{state} moves");
                let small = "return [...document.querySelectorAll('main a, select, button')]\
                    .filter(e => e.getBoundingClientRect().height < 24).length";
                assert_eq!(browser.run(small).await, 0, "too small to click");
            }
        }
    }
    browser.close().await;
}

/// Script that puts a visitor at three quarters of the queue. `SINCE` is its arrival.
const HAS_COME_FAR: &str =
    "localStorage.setItem('anteroom /.well-known/anteroom/position?room=full',
    JSON.stringify({since: SINCE, from: 824, part: 0.75}));";

#[tokio::test]
async fn progress_never_shrinks_when_earlier_visitors_come_back() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&gallery.url("full", Language::English)).await;
    until_whole(&browser, "full").await;
    let since = browser.attribute("#since", "data-at").await.unwrap();
    browser.run(&HAS_COME_FAR.replace("SINCE", &since)).await;
    browser.click("#check").await;
    // 412 of 824 are ahead now.
    browser.until_shows("#part", "75 %").await;
    browser.close().await;
}

#[tokio::test]
async fn a_screen_reader_announces_changes_only() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&gallery.url("full", Language::German)).await;
    until_whole(&browser, "full").await;
    let announced = async || {
        browser
            .run("return document.getElementById('say').textContent")
            .await
    };
    assert_eq!(announced().await, "", "the page has just been read out");
    let regions = "return document.querySelectorAll('[role=status],[aria-live]').length";
    assert_eq!(browser.run(regions).await, 1);
    browser.click("#check").await;
    let checked = "Gerade nachgesehen: Sie warten noch.";
    browser.until_shows("#live", checked).await;
    assert_eq!(announced().await, checked, "a manual check is announced");
    browser.close().await;
}

// Does nothing unless pictures are requested.
#[tokio::test]
async fn all_states_are_photographed_on_request() {
    if !Browser::takes_pictures() {
        return;
    }
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    for state in STATES {
        browser.open(&gallery.url(state, Language::English)).await;
        until_whole(&browser, state).await;
        browser.take_pictures(&format!("state-{state}")).await;
    }
    for language in Language::ALL {
        browser.open(&gallery.url("message", language)).await;
        until_whole(&browser, "message").await;
        browser
            .take_pictures(&format!("language-{}", language.tag()))
            .await;
    }
    let title = browser.title().await;
    assert!(title.starts_with("412 · "), "{title}");
    browser.close().await;
}
