//! Every state of the page in a browser: accessibility, small screens, and screenshots for people.

mod pages;

use std::collections::BTreeMap;

use anteroom_config::language::Language;
use anteroom_testkit::browser::{Browser, Setup};

use anteroom_room_http::page::states::{NAMES, NOW};
use pages::Gallery;

use super::{arrival, poll, until_in_line};

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
        if (heading.textContent !== 'It’s your turn') return;
        for (let id = setTimeout(String); id > 0; id--) clearTimeout(id);
        window.hasStopped = true;
    }).observe(heading, {childList: true, characterData: true, subtree: true});";

/// Script that loads the page as if it had just entered. Its mark is valid for five seconds, so
/// this one is of a later time.
const COME_BACK: &str =
    "const url = document.querySelector('script').getAttribute('data-position');
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

/// Waits until the script has shown its first response, so that the page is complete. Only the
/// script knows the first position.
async fn until_whole(browser: &Browser) {
    let has_polled = "return performance.getEntriesByType('resource').length > 0 \
                 && document.getElementById('joined').textContent !== ''";
    let is_whole = async || browser.run(has_polled).await == true;
    browser.until("the script has polled", is_whole).await;
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
        until_whole(&browser).await;
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
        for state in NAMES {
            browser.open(&gallery.url(state, Language::English)).await;
            until_whole(&browser).await;
            found.check(&browser, &format!("{state} {light}")).await;
        }
    }
    browser.open(&gallery.url("cut", Language::English)).await;
    let shows_cut = async || {
        let tries = "return performance.getEntriesByType('resource').length > 0";
        browser.run(tries).await == true
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
    browser.until_shows("#heading", "You’re in line").await;
    browser.run(STOP_AT_TURN).await;
    gallery.are_there_turns.send_replace(true);
    browser
        .until_shows("#why", "Trying again in 20 seconds.")
        .await;
    found.check(&browser, "bounced").await;
    found.assert_nothing();
    browser.close().await;
}

#[tokio::test]
async fn the_accessibility_checker_finds_what_is_wrong() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&gallery.url("full", Language::English)).await;
    until_whole(&browser).await;
    assert_eq!(findings(&browser).await, "");
    browser
        .run("document.documentElement.removeAttribute('lang')")
        .await;
    browser
        .run("document.getElementById('note').hidden = false")
        .await;
    browser
        .run("document.getElementById('note').innerHTML = '<img src=\"data:,\">'")
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
                let small = "return [...document.querySelectorAll(\
                    'main a, header a, footer a, summary, button')]\
                    .filter(e => e.offsetParent)\
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
    JSON.stringify({since: SINCE, from: 825, part: 0.75}));";

#[tokio::test]
async fn progress_never_shrinks_when_earlier_visitors_come_back() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&gallery.url("full", Language::English)).await;
    until_whole(&browser).await;
    let since = arrival(&browser).await;
    browser.run(&HAS_COME_FAR.replace("SINCE", &since)).await;
    poll(&browser).await;
    // 412 of 824 are ahead now.
    browser.until_shows("#part", "75% of the way").await;
    browser.close().await;
}

/// Script that returns a time as the page writes it.
const WRITTEN: &str = "return new Date(AT).toLocaleString('en-GB-u-nu-latn', \
    {hour: '2-digit', minute: '2-digit', timeZoneName: 'short'})";

#[tokio::test]
async fn a_message_and_a_longer_wait_have_their_times() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    let written = async |at: u64| {
        let text = browser.run(&WRITTEN.replace("AT", &at.to_string())).await;
        text.as_str().unwrap().to_owned()
    };
    browser
        .open(&gallery.url("message", Language::English))
        .await;
    until_whole(&browser).await;
    let expected = written(NOW.0 - 600_000).await;
    browser.until_shows("#at", &expected).await;
    assert_eq!(browser.text("#risen").await.as_deref(), Some(""));

    browser
        .open(&gallery.url("lowered", Language::English))
        .await;
    until_whole(&browser).await;
    let shows_a_time = async || browser.text("#risen").await.unwrap().contains(':');
    browser.until("the rise has a time", shows_a_time).await;
    assert_eq!(browser.text("#at").await.as_deref(), Some(""));
    // This browser heard of it an hour ago, and says so after a reload.
    browser
        .run(
            "const name = 'anteroom /.well-known/anteroom/position?room=lowered',
                 way = JSON.parse(localStorage.getItem(name));
             way.risen -= 3600000;
             way.risen -= way.risen % 60000;
             window.name = way.risen;
             localStorage.setItem(name, JSON.stringify(way))",
        )
        .await;
    let risen = browser.run("return Number(window.name)").await;
    browser.reload().await;
    browser
        .until_shows("#risen", &written(risen.as_u64().unwrap()).await)
        .await;
    browser.close().await;
}

/// Script that records all announcements, and lets the page's clock run twenty times as fast.
const LISTEN: &str = "window.heard = [];
    const start = Date.now(), now = Date.now.bind(Date);
    Date.now = () => start + (now() - start) * 20;
    for (const id of ['say', 'pos', 'shout']) {
        new MutationObserver(() => {
            const text = document.getElementById(id).textContent;
            if (text) window.heard.push([id, Date.now() - start, text]);
        }).observe(document.getElementById(id), {childList: true, characterData: true,
            subtree: true});
    }";

#[tokio::test]
async fn a_screen_reader_hears_the_position_once_a_minute_and_nothing_twice() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    browser
        .open(&gallery.url("moving", Language::English))
        .await;
    browser.run(LISTEN).await;
    let heard = async || {
        let heard = browser.run("return window.heard").await;
        heard.as_array().cloned().unwrap_or_default()
    };
    // The reason is another one at every poll, and the position as well.
    let has_heard = async || heard().await.len() >= 3;
    browser.until("three announcements", has_heard).await;
    let heard = heard().await;
    let mut texts = std::collections::BTreeSet::new();
    for (at, entry) in heard.iter().enumerate() {
        assert_eq!(entry[0], "pos", "{heard:?}");
        let text = entry[2].as_str().unwrap();
        assert!(text.starts_with("Your position in line: "), "{text}");
        assert!(text.contains("Estimated wait: 10–20 minutes."), "{text}");
        assert!(texts.insert(text), "twice: {text}");
        let before = at
            .checked_sub(1)
            .map(|before| heard[before][1].as_f64().unwrap());
        let gap = entry[1].as_f64().unwrap() - before.unwrap_or_default();
        assert!(
            before.is_none() || gap >= 59_000.0,
            "after {gap} ms: {heard:?}"
        );
    }
    browser.close().await;
}

#[tokio::test]
async fn state_position_and_turn_have_regions_of_their_own() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&gallery.url("full", Language::German)).await;
    until_whole(&browser).await;
    let regions = "return [...document.querySelectorAll('[role=status],[role=alert],[aria-live]')]\
                   .map(e => e.id + ' ' + e.getAttribute('role') + e.textContent).join()";
    assert_eq!(
        browser.run(regions).await,
        "say status,pos status,shout alert"
    );
    poll(&browser).await;
    let checked = "document.getElementById('say').textContent";
    let is_told = async || browser.run(&format!("return {checked}")).await != "";
    browser.until("a manual check is announced", is_told).await;
    browser.close().await;
}

/// Script that records where the page goes, instead of going there, and makes a second of the page
/// as short as a tenth.
const STAY: &str = "window.went = 0;
    window.addEventListener('beforeunload', () => { localStorage.went = 'yes'; });";

#[tokio::test]
async fn a_visible_page_announces_the_turn_and_waits_if_the_visitor_asks_for_it() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&gallery.url("held", Language::English)).await;
    until_in_line(&browser).await;
    browser.run(STAY).await;
    gallery.are_there_turns.send_replace(true);
    browser.until_shows("#heading", "It’s your turn").await;
    browser
        .until_shows("#label", "You go in automatically in")
        .await;
    let said = browser
        .run("return document.getElementById('shout').textContent")
        .await;
    assert!(
        said.as_str().unwrap().starts_with("It’s your turn."),
        "{said}"
    );
    browser.until_shows("#go", "Enter now").await;
    browser.take_pictures("turn").await;
    browser.click("#hold").await;
    browser
        .until_shows("#heading", "Your turn is held for you")
        .await;
    browser.until_shows("#hold", "Hold it longer").await;
    let title = browser.title().await;
    assert!(
        title.starts_with("(0:") || title.starts_with("(1:"),
        "{title}"
    );
    browser.take_pictures("held").await;
    // Extended once, which is all that the server allows.
    browser.click("#hold").await;
    let is_hidden = "return document.getElementById('hold').hidden";
    let is_extended = async || browser.run(is_hidden).await == true;
    browser
        .until("it cannot be extended again", is_extended)
        .await;
    assert_eq!(browser.run("return localStorage.went || ''").await, "");
    browser.click("#go").await;
    let has_gone = async || browser.run("return localStorage.went || ''").await == "yes";
    browser.until("the visitor enters", has_gone).await;
    browser.close().await;
}

#[tokio::test]
async fn a_page_in_the_background_holds_the_turn_for_its_visitor() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&gallery.url("held", Language::English)).await;
    until_in_line(&browser).await;
    browser
        .run(
            "Object.defineProperty(document, 'hidden', {value: true, configurable: true});
             window.icons = document.getElementById('icon').href",
        )
        .await;
    gallery.are_there_turns.send_replace(true);
    browser.until_shows("#tag", "Your turn, held").await;
    browser
        .until_shows(
            "#why",
            "This page was in the background, so we didn’t enter without you.",
        )
        .await;
    let has_dot = "return document.getElementById('icon').href !== window.icons";
    assert_eq!(browser.run(has_dot).await, true);
    // It comes to the front, and still waits for the visitor.
    browser
        .run(
            "Object.defineProperty(document, 'hidden', {value: false});
             document.dispatchEvent(new Event('visibilitychange'))",
        )
        .await;
    browser.until_shows("#label", "Enter within").await;
    let counts = async || {
        let left = browser.text("#number").await.unwrap_or_default();
        left.starts_with("0:5")
    };
    browser.until("it counts down", counts).await;
    browser.until_shows("#go", "Enter now").await;
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
    for state in NAMES {
        browser.open(&gallery.url(state, Language::English)).await;
        until_whole(&browser).await;
        browser.take_pictures(&format!("state-{state}")).await;
    }
    for language in Language::ALL {
        browser.open(&gallery.url("message", language)).await;
        until_whole(&browser).await;
        browser
            .take_pictures(&format!("language-{}", language.tag()))
            .await;
    }
    let title = browser.title().await;
    assert!(title.contains("413"), "{title}");
    browser.close().await;
}
