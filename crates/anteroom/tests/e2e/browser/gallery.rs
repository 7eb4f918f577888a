//! Every state of the page in a browser: what an accessibility checker finds, whether it fits a small
//! screen, and pictures for people to look at.
//!
//! The pages and the answers to their questions are made by the gateway's own code, for visitors that
//! do not exist: no fault has to be brought about to see its page.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use anteroom_config::language::Language;
use anteroom_core::decision::{Place, QueueReason, WaitRange};
use anteroom_core::rules::{QueueingMethod, Rules};
use anteroom_core::time::{Millis, Span};
use anteroom_gateway::waiting::{Answer, Look, RequestKind, WaitingView, place_endpoint, respond};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::browser::{Browser, Setup};

/// The checker: <https://github.com/dequelabs/axe-core>, unchanged.
const AXE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/testdata/axe/axe.min.js"
));

/// Everything that it knows, for the whole page; each finding on a line.
const FIND: &str = "return axe.run(document, {resultTypes: ['violations']}).then(r => r.violations\
    .map(v => v.id + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join(' | ')).join('\\n'))";

/// Saturday, 1 August 2026, 09:41:48 UTC, in a line of 1,204.
const NOW: Millis = Millis(1_785_578_400_000 - 1_092_000);

/// Every state by its name, which is the room's name too.
const STATES: [&str; 16] = [
    "full",
    "your-turn-soon",
    "unknown",
    "lot",
    "draw",
    "queue-all",
    "paused",
    "early",
    "early-unknown",
    "rejecting",
    "store-away",
    "recovering",
    "recovering-unknown",
    "origin-down",
    "after-post",
    "message",
];

fn view(state: &'static str, language: Language) -> WaitingView<'static> {
    let opening = NOW + Span::from_secs(1_092);
    let reason = match state {
        "your-turn-soon" | "lot" => QueueReason::NotYourTurn,
        "queue-all" | "paused" => QueueReason::QueueAll,
        "early" | "draw" => QueueReason::NotOpenYet { opens_at: opening },
        "early-unknown" => QueueReason::NotOpenYet {
            opens_at: Millis::NEVER,
        },
        "rejecting" => QueueReason::Rejecting,
        "store-away" => QueueReason::StoreAway,
        "recovering" => QueueReason::Recovering {
            reopens_at: opening,
        },
        "recovering-unknown" => QueueReason::Recovering {
            reopens_at: Millis::NEVER,
        },
        "origin-down" => QueueReason::OriginDown,
        _ => QueueReason::Full,
    };
    let is_known = state != "unknown";
    let place = Place {
        reason,
        people_ahead: is_known.then_some(412),
        people_waiting: 1_204,
        wait: is_known.then_some(WaitRange {
            low: Span::from_secs(600),
            middle: Span::from_secs(840),
            high: Span::from_secs(1_200),
        }),
        ask_after: (reason != QueueReason::Rejecting).then_some(Span::from_secs(60)),
        arrived_at: NOW - Span::from_secs(95),
    };
    let rules = Rules {
        queueing_method: if state == "lot" {
            QueueingMethod::Random
        } else {
            QueueingMethod::Fifo
        },
        draw: state == "draw",
        ..Rules::default()
    };
    let message = "The payment service is being mended. Next news by 10:40.";
    WaitingView {
        language,
        let_in_last_minute: is_known.then_some(38),
        is_paused: state == "paused",
        message: matches!(state, "message" | "queue-all" | "paused").then_some(message),
        ..WaitingView::new(state, &rules, place, NOW)
    }
}

/// Serves all states: `/STATE/TAG`. Those called `turn` and `cut` look like `full`, and then the question
/// is answered with a turn, or not at all.
struct Gallery {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Gallery {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer));
                tokio::spawn(connection);
            }
        });
        Self { address, serving }
    }

    fn url(&self, state: &str, language: Language) -> String {
        format!("http://{}/{state}/{}", self.address, language.tag())
    }
}

impl Drop for Gallery {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
    let query = request.uri().query().unwrap_or_default();
    let is_question = request.uri().path() == place_endpoint::PATH;
    let (name, language) = if is_question {
        let room = place_endpoint::room_of(query).unwrap();
        (room, place_endpoint::language_of(query).unwrap())
    } else {
        let mut parts = request.uri().path().trim_start_matches('/').split('/');
        let name = parts.next().unwrap().to_owned();
        (
            name,
            Language::of_tag(parts.next().unwrap_or("en")).unwrap(),
        )
    };
    let script_states = ["turn", "cut"];
    let mut known = STATES.into_iter().chain(script_states);
    let Some(state) = known.find(|state| *state == name) else {
        return Err(io::Error::other("no such state"));
    };
    let view = view(state, language);
    if is_question {
        return match state {
            "turn" => Ok(place_endpoint::not_waiting().map(Full::new)),
            "cut" => Err(io::Error::other("cut")),
            _ => Ok(place_endpoint::still_waiting(&view, false).map(Full::new)),
        };
    }
    let answer = Answer {
        kind: if state == "after-post" {
            RequestKind::PageAfterPost
        } else {
            RequestKind::Page
        },
        is_head: false,
        queueing_status: StatusCode::OK,
    };
    let look = Look {
        template: None,
        target: request.uri().path(),
    };
    Ok(respond(&view, answer, look).map(Full::new))
}

/// What the checker says against the page as it is now.
async fn findings(browser: &Browser) -> String {
    browser
        .run(&format!("{AXE};\n{FIND}"))
        .await
        .as_str()
        .unwrap()
        .to_owned()
}

/// Waits until the script has put in what it heard, so that the page is whole.
async fn until_whole(browser: &Browser, state: &str) {
    if state != "rejecting" {
        let heard = "return performance.getEntriesByType('resource').length > 0 \
                     && document.getElementById('live').textContent !== ''";
        let is_whole = async || browser.run(heard).await == true;
        browser.until("the script has asked", is_whole).await;
    }
}

#[tokio::test]
async fn an_accessibility_checker_finds_nothing_in_any_state() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    let mut found = BTreeMap::new();
    let mut check = async |what: String| {
        let findings = findings(&browser).await;
        if !findings.is_empty() {
            found.insert(what, findings);
        }
    };
    for light in ["light", "dark"] {
        browser.set_light(light).await;
        for state in STATES {
            browser.open(&gallery.url(state, Language::English)).await;
            until_whole(&browser, state).await;
            check(format!("{state} {light}")).await;
        }
    }
    for language in Language::ALL {
        browser.open(&gallery.url("message", language)).await;
        until_whole(&browser, "message").await;
        check(format!("{language:?}")).await;
    }
    browser.open(&gallery.url("cut", Language::English)).await;
    let says_cut = async || {
        let live = browser.text("#live").await.unwrap_or_default();
        live.starts_with("No connection at the moment. Your place is safe for 5 minutes")
    };
    browser
        .until("the page says that nobody answers", says_cut)
        .await;
    check("cut".to_owned()).await;
    browser.open(&gallery.url("turn", Language::English)).await;
    browser.until_shows("#heading", "It is your turn").await;
    check("turn".to_owned()).await;
    // Loaded again, and still not in: the ticket got lost, and the page says so.
    browser
        .until_shows("#reason", "Trying again in 20 seconds.")
        .await;
    check("bounced".to_owned()).await;
    assert!(found.is_empty(), "{found:#?}");
    browser.close().await;
}

#[tokio::test]
async fn without_cookies_the_checker_finds_nothing_either_and_the_checker_does_find_faults() {
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
async fn every_page_fits_a_small_screen_and_four_times_the_size_and_nothing_moves() {
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
                assert_eq!(browser.run(small).await, 0, "too small to be hit");
            }
        }
    }
    browser.close().await;
}

#[tokio::test]
async fn a_screen_reader_is_told_what_changes_and_nothing_else() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    browser.open(&gallery.url("full", Language::German)).await;
    until_whole(&browser, "full").await;
    let said = async || {
        browser
            .run("return document.getElementById('say').textContent")
            .await
    };
    assert_eq!(said().await, "", "the page has just been read out");
    let regions = "return document.querySelectorAll('[role=status],[aria-live]').length";
    assert_eq!(browser.run(regions).await, 1);
    browser.click("#check").await;
    let checked = "Gerade nachgesehen: Sie warten noch.";
    browser.until_shows("#live", checked).await;
    assert_eq!(said().await, checked, "who asks gets an answer");
    browser.close().await;
}

/// Only where somebody wants pictures; a test of nothing otherwise.
#[tokio::test]
async fn all_states_are_photographed_where_somebody_wants_pictures() {
    let gallery = Gallery::open().await;
    let browser = Browser::start(Setup::Usual).await;
    for state in STATES {
        browser.open(&gallery.url(state, Language::English)).await;
        until_whole(&browser, state).await;
        browser.photograph(&format!("state-{state}")).await;
    }
    for language in Language::ALL {
        browser.open(&gallery.url("message", language)).await;
        until_whole(&browser, "message").await;
        browser
            .photograph(&format!("language-{}", language.tag()))
            .await;
    }
    let title = browser.title().await;
    assert!(title.starts_with("412 · "), "{title}");
    browser.close().await;
}
