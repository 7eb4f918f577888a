//! Responses of the gateway itself, with the fast path and without it: pages, positions and new
//! tickets are the same, and the fast path gives them without the layers.

use std::collections::BTreeSet;

use anteroom_e2e::eventually;
use anteroom_testkit::wire::Wire;

use crate::proxy::whole_gateway::{Origin, Site};

const BROWSER: &str = "Accept: text/html\r\nSec-Fetch-Mode: navigate\r\n\
                       Accept-Encoding: gzip\r\nAccept-Language: de\r\n";
const POLL: &str = "/.well-known/anteroom/position?room=shop&lang=en";

/// Head of a response, and its body.
struct Answered {
    head: String,
    body: Vec<u8>,
}

impl Answered {
    /// Returns the status line and the headers. Of a cookie only its name and attributes count, and
    /// of lengths and times that they are there: they differ from visitor to visitor.
    fn shape(&self) -> (String, BTreeSet<String>) {
        let mut lines = self.head.lines().map(str::to_lowercase);
        let status = lines.next().unwrap();
        let lines = lines.filter(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            match name {
                "set-cookie" => {
                    let (pair, attributes) = value.split_once(';').unwrap();
                    let cookie = pair.split('=').next().unwrap();
                    let attributes = attributes
                        .split('=')
                        .map(|part| part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
                    let attributes: Vec<_> = attributes.collect();
                    format!("{name}: {cookie};{}", attributes.join("="))
                }
                "date" | "content-length" | "retry-after" => name.to_owned(),
                _ => line.clone(),
            }
        });
        (status, lines.collect())
    }

    fn cookie(&self) -> Option<String> {
        let mut lines = self.head.lines();
        let set = lines.find_map(|line| line.strip_prefix("set-cookie: "))?;
        set.split(';').next().map(str::to_owned)
    }
}

/// Sends a request on a kept connection.
async fn ask(wire: &mut Wire, method: &str, target: &str, lines: &str) -> Answered {
    wire.send(&format!(
        "{method} {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n"
    ))
    .await;
    let head = wire.read_until("\r\n\r\n").await;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.filter(|_| method != "HEAD");
    let length = length.map_or(0, |length| length.parse().unwrap());
    let body = wire.try_read(length).await.unwrap().into_bytes();
    Answered { head, body }
}

/// Sends what a browser and programs send while they wait, on one connection.
async fn while_waiting(site: &Site) -> Vec<(String, BTreeSet<String>)> {
    let mut wire = Wire::connect(site.gateway.address()).await;
    let first = ask(&mut wire, "GET", "/lamps?a=1", BROWSER).await;
    assert!(!first.body.is_empty());
    let cookie = format!(
        "Cookie: {}\r\n",
        first.cookie().expect("a new visitor's ticket")
    );
    let mut seen = vec![first.shape()];
    let browser = format!("{BROWSER}{cookie}");
    let image = format!("Accept: image/png\r\nSec-Fetch-Dest: image\r\n{cookie}");
    let data = format!("Accept: application/json\r\nSec-Fetch-Mode: cors\r\n{cookie}");
    let compact = format!("{POLL}&k=");
    for (method, target, lines) in [
        ("GET", "/lamps?a=1", &*browser),
        ("HEAD", "/lamps?a=1", &*browser),
        ("GET", "/lamp.png", &*image),
        ("GET", "/lamps.json", &*data),
        ("GET", POLL, &*cookie),
        ("GET", &*compact, &*cookie),
        ("HEAD", POLL, &*cookie),
        ("GET", POLL, ""),
        ("GET", "/", "Cookie: __anteroom_shop=invalid\r\n"),
    ] {
        seen.push(ask(&mut wire, method, target, lines).await.shape());
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_visitors_get_the_same_responses_on_both_ways() {
    let origin = Origin::start("one").await;
    let open =
        async |fast_path| Site::open_on(fast_path, &[origin.address], "queue_all = true").await;
    let (fast, usual) = (open(true).await, open(false).await);
    let (of_fast, of_usual) = (while_waiting(&fast).await, while_waiting(&usual).await);
    for (at, (fast, usual)) in of_fast.iter().zip(&of_usual).enumerate() {
        assert_eq!(fast, usual, "request {at}");
    }
    // All but those that met overrides older than a second, which the layers wait for.
    let answered = fast.on_fast_path("answered").await;
    let layers = fast.on_fast_path("layers").await;
    assert_eq!(answered + layers, 10);
    assert!(answered >= 5, "{answered} of 10 without the layers");
    assert_eq!(usual.on_fast_path("answered").await, 0);
    for name in ["queue", "poll"] {
        let sample = format!("anteroom_verdicts_total{{room=\"shop\",verdict=\"{name}\"}}");
        let (of_fast, of_usual) = (fast.metric(&sample).await, usual.metric(&sample).await);
        assert_eq!(of_fast, of_usual, "{name}");
    }
    fast.gateway.stop_soon().await;
    usual.gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_is_admitted_on_the_fast_path() {
    let origin = Origin::start("one").await;
    let open = async |fast_path| Site::open_on(fast_path, &[origin.address], "").await;
    let (fast, usual) = (open(true).await, open(false).await);
    let mut shapes = Vec::new();
    for site in [&fast, &usual] {
        // The first visitor waits for the room to open.
        site.active_visitor_cookie().await;
        let mut wire = Wire::connect(site.gateway.address()).await;
        let admitted = ask(&mut wire, "GET", "/", BROWSER).await;
        let cookie = admitted.cookie().expect("a ticket");
        assert_eq!(admitted.body, b"this is one");
        let again = format!("{BROWSER}Cookie: {cookie}\r\n");
        let again = ask(&mut wire, "GET", "/", &again).await;
        assert_eq!((again.cookie(), &*again.body), (None, &b"this is one"[..]));
        shapes.push((admitted.shape(), again.shape()));
    }
    assert_eq!(shapes[0], shapes[1]);
    let sample = "anteroom_verdicts_total{room=\"shop\",verdict=\"admit\"}";
    assert_eq!(fast.metric(sample).await.as_deref(), Some("2"));
    assert_eq!(usual.metric(sample).await.as_deref(), Some("2"));
    assert!(fast.on_fast_path("forwarded").await >= 2);
    fast.gateway.stop_soon().await;
    usual.gateway.stop_soon().await;
}

/// A limit counts a request once, also if its room needs the layers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_counts_new_visitors_and_rejects_them_without_the_layers() {
    let origin = Origin::start("one").await;
    let limit =
        "queue_all = true\n[[limit]]\nname = \"api\"\nlimit = \"2/h\"\nkey = \"client_address\"\n";
    let site = Site::open_on(true, &[origin.address], limit).await;
    let mut wire = Wire::connect(site.gateway.address()).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let answered = ask(&mut wire, "GET", "/", BROWSER).await;
        statuses.push(answered.head[9..12].to_owned());
    }
    assert_eq!(statuses, ["200", "200", "429"]);
    for (method, lines) in [
        ("HEAD", BROWSER),
        ("GET", "Accept: application/json\r\n"),
        ("DELETE", "Content-Length: 0\r\n"),
    ] {
        let answered = ask(&mut wire, method, "/", lines).await;
        assert!(answered.head.contains("ratelimit: "), "{}", answered.head);
        statuses.push(answered.head[9..12].to_owned());
    }
    assert_eq!(statuses[3..], ["429", "429", "429"]);
    let layers = site.on_fast_path("layers").await;
    assert_eq!(site.on_fast_path("answered").await + layers, 6);
    assert!(
        layers <= 2,
        "those that a limit rejects never take the layers"
    );
    let counted = async |verdict: &str| {
        let sample =
            format!("anteroom_limit_requests_total{{limit=\"api\",verdict=\"{verdict}\"}}");
        site.metric(&sample).await.unwrap()
    };
    assert_eq!(
        (&*counted("allow").await, &*counted("reject").await),
        ("2", "4")
    );
    site.gateway.stop_soon().await;
}

/// Fills the room, and returns the cookie of the first visitor who waits.
async fn fill(wire: &mut Wire) -> String {
    for _ in 0..200 {
        let answered = ask(wire, "GET", "/", BROWSER).await;
        if answered.head.contains("anteroom-verdict: queue") {
            return answered.cookie().expect("a new visitor's ticket");
        }
    }
    panic!("the room is not full");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_while_it_waits_for_its_turn_counts_as_gone() {
    let origin = Origin::start("one").await;
    for fast_path in [true, false] {
        let site = Site::open_on(fast_path, &[origin.address], "").await;
        site.active_visitor_cookie().await;
        let mut wire = Wire::connect(site.gateway.address()).await;
        let cookie = fill(&mut wire).await;
        wire.send(&format!(
            "GET {POLL}&wait=1 HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"
        ))
        .await;
        drop(wire);
        let of =
            |verdict| format!("anteroom_verdicts_total{{room=\"shop\",verdict=\"{verdict}\"}}");
        eventually("the client is gone", async || {
            site.metric(&of("gone")).await.as_deref() == Some("1")
        })
        .await;
        assert_eq!(site.metric(&of("reject")).await.as_deref(), Some("0"));
        site.gateway.stop_soon().await;
    }
}

/// Limits that look for a visitor's ticket, and the room, read the same cookie.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_ticket_counts_once() {
    let origin = Origin::start("one").await;
    for limit in ["", "on_limit = \"wait\"", "on_limit = \"reject\""] {
        let limit = format!(
            "cookie_suffix = \"x\"\n[[limit]]\nname = \"api\"\nlimit = \"100/h\"\n\
             key = \"everybody\"\n{limit}\n"
        );
        for fast_path in [true, false] {
            let site = Site::open_on(fast_path, &[origin.address], &limit).await;
            let mut wire = Wire::connect(site.gateway.address()).await;
            let cookie = format!("{BROWSER}Cookie: __anteroom_x=invalid\r\n");
            ask(&mut wire, "GET", "/", &cookie).await;
            let sample = "anteroom_invalid_tickets_total{room=\"shop\"}";
            let counted = site.metric(sample).await;
            assert_eq!(counted.as_deref(), Some("1"), "{limit} {fast_path}");
            site.gateway.stop_soon().await;
        }
    }
}
