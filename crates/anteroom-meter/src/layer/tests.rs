//! What becomes of calls, in time that stands still.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anteroom_config::{Host, LimitHeaders, OnLimit, Route, WithoutKey};
use anteroom_core::time::Span;
use anteroom_counts::KeyMaker;
use anteroom_counts::local::LocalCounts;
use anteroom_gateway::forwarded::{Client, Scheme, TrustedProxies};
use anteroom_gateway::layer::KnownVisitor;
use anteroom_gateway::path::Readings;
use anteroom_limits::cost::Cost;
use anteroom_limits::fixed_window::FixedWindow;
use anteroom_limits::leaky_bucket::LeakyBucket;
use anteroom_limits::policy::Policy;
use anteroom_limits::rate::Rate;
use anteroom_limits::time::{MicroSpan, Micros};
use http::{HeaderMap, Method};
use http_body::Body as _;
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _};

use super::*;
use crate::caller::Part;
use crate::covers::{Covered, Covers};
use crate::limit::{Kept, Limit};
use crate::meter::Surroundings;
use crate::tally::Tally;

/// Time stands still but for tokio's, which is paused.
struct World {
    began: Instant,
    is_inside: Arc<AtomicBool>,
}

impl Surroundings for World {
    fn now(&self) -> Micros {
        let elapsed = u64::try_from(self.began.elapsed().as_micros()).unwrap();
        Micros(1_700_000_000_000_000 + elapsed)
    }

    fn wall_seconds(&self) -> u64 {
        1_700_000_000
    }

    fn visitor(&self, _: &Client, _: &Readings<'_>, _: &HeaderMap) -> Option<KnownVisitor> {
        Some(KnownVisitor {
            id: [7; 16],
            is_inside: self.is_inside.load(Relaxed),
        })
    }
}

fn a_minute(calls: u32) -> Policy {
    let rate = Rate::new(calls, MicroSpan::from_secs(60)).unwrap();
    Policy::FixedWindow(FixedWindow::new(rate))
}

fn limit(name: &str, policy: Policy) -> Limit {
    Limit {
        name: name.into(),
        policy,
        covers: Covers::new(&[]).unwrap(),
        parts: vec![Part::Address],
        ipv6_prefix: 64,
        without_key: WithoutKey::ClientAddress,
        cost: Cost::ONE,
        on_limit: OnLimit::Reject,
        is_shadow: false,
        spoken: LimitHeaders {
            ietf: true,
            legacy: None,
        },
        counts_polling: false,
        overrides: HashMap::new(),
        kept: Arc::new(Kept {
            counts: LocalCounts::new(1_000),
            keys: KeyMaker::new([1; 16]),
            tally: Tally::default(),
            keys_max: 1_000,
        }),
    }
}

/// A service behind limits.
struct Site {
    meter: Arc<Meter>,
    is_inside: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
}

impl Site {
    fn behind(limits: Vec<Limit>) -> Self {
        let is_inside = Arc::new(AtomicBool::new(false));
        let world = World {
            began: Instant::now(),
            is_inside: Arc::clone(&is_inside),
        };
        let meter = Meter::new(&[], world).unwrap();
        meter.commit(Plan::of(limits));
        Self {
            meter,
            is_inside,
            served: Arc::default(),
            waiting: Arc::default(),
        }
    }

    async fn send(&self, request: Request<Bytes>) -> Response<Body> {
        let (served, waiting) = (Arc::clone(&self.served), Arc::clone(&self.waiting));
        let site = tower::service_fn(move |request: Request<Bytes>| {
            let over = request.extensions().get::<OverLimit>().is_some();
            let count = if over { &waiting } else { &served };
            count.fetch_add(1, Relaxed);
            std::future::ready(Ok::<_, Infallible>(Response::new(Body::full("hello"))))
        });
        let limited = RateLimitLayer::new(Arc::clone(&self.meter)).layer(site);
        limited.oneshot(request).await.unwrap()
    }

    async fn ask(&self, method: Method, path: &str, address: &str) -> Response<Body> {
        self.send(request(method, path, address)).await
    }

    async fn get(&self) -> StatusCode {
        self.ask(Method::GET, "/", "192.0.2.7").await.status()
    }

    /// How many of so many calls went through.
    async fn went(&self, calls: usize, path: &str, address: &str) -> usize {
        let mut went = 0;
        for _ in 0..calls {
            let response = self.ask(Method::GET, path, address).await;
            went += usize::from(response.status() == 200);
        }
        went
    }

    fn events(&self, name: &str) -> Vec<(&'static str, u64)> {
        let figures = self.meter.figures();
        let limit = figures.iter().find(|limit| limit.name == name).unwrap();
        let seen = limit.events.iter().filter(|(_, count)| *count > 0);
        seen.map(|(event, count)| (event.name(), *count)).collect()
    }
}

fn request(method: Method, path: &str, address: &str) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    let address: IpAddr = address.parse().unwrap();
    let host = HeaderValue::from_static("shop.example");
    let trusted = TrustedProxies::new([]);
    let peer = SocketAddr::new(address, 4711);
    let client = Client::of(peer, Scheme::Http, host, request.headers(), &trusted);
    request.extensions_mut().insert(client);
    request
}

#[tokio::test(start_paused = true)]
async fn each_client_goes_through_as_often_as_the_limit_says() {
    let site = Site::behind(vec![limit("api", a_minute(5))]);
    assert_eq!(site.went(20, "/", "192.0.2.7").await, 5);
    assert_eq!(site.went(20, "/", "192.0.2.8").await, 5);
    assert_eq!(site.events("api"), [("admit", 10), ("reject", 30)]);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(site.went(20, "/", "192.0.2.7").await, 5);
}

#[tokio::test(start_paused = true)]
async fn answers_say_how_the_limit_stands() {
    let site = Site::behind(vec![limit("api", a_minute(1))]);
    let first = site.ask(Method::GET, "/", "192.0.2.7").await;
    assert_eq!(first.headers()["ratelimit-policy"], "\"api\";q=1;w=60");
    assert!(
        first.headers()["ratelimit"]
            .to_str()
            .unwrap()
            .starts_with("\"api\";r=0;t=")
    );
    assert_eq!(first.body().size_hint().exact(), Some(5));
    let second = site.ask(Method::GET, "/", "192.0.2.7").await;
    assert_eq!(second.status(), 429);
    assert!(second.headers().contains_key("retry-after"));
    assert!(second.headers().contains_key("ratelimit"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_one_limit_rejects_is_charged_by_none() {
    let site = Site::behind(vec![
        limit("day", a_minute(10)),
        limit("burst", a_minute(2)),
    ]);
    assert_eq!(site.went(50, "/", "192.0.2.7").await, 2);
    assert_eq!(site.events("day"), [("admit", 2)]);
    assert_eq!(site.events("burst"), [("admit", 2), ("reject", 48)]);
    let last = site.ask(Method::GET, "/", "192.0.2.7").await;
    let said = last.headers()["ratelimit"].to_str().unwrap();
    assert!(said.starts_with("\"day\";r=8;"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn only_requests_that_a_limit_covers_count() {
    let mut login = limit("login", a_minute(1));
    login.covers = Covers::new(&[Covered {
        route: Route {
            host: Host::Any,
            path: "/login".to_owned(),
        },
        methods: vec![Method::GET],
    }])
    .unwrap();
    let site = Site::behind(vec![login]);
    assert_eq!(site.went(5, "/shop", "192.0.2.7").await, 5);
    assert_eq!(site.went(5, "/login", "192.0.2.7").await, 1);
    assert_eq!(site.went(5, "/%6cogin", "192.0.2.7").await, 0);
    let posted = site.ask(Method::POST, "/login", "192.0.2.7").await;
    assert_eq!(posted.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_only_looks_lets_all_through() {
    let mut shadow = limit("new", a_minute(2));
    shadow.is_shadow = true;
    let site = Site::behind(vec![shadow]);
    let first = site.ask(Method::GET, "/", "192.0.2.7").await;
    assert!(!first.headers().contains_key("ratelimit"));
    assert_eq!(site.went(9, "/", "192.0.2.7").await, 9);
    assert_eq!(site.events("new"), [("admit", 2), ("shadow", 8)]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_page_may_ask_as_often_as_it_is_told() {
    let polling = "/.well-known/anteroom/place";
    let site = Site::behind(vec![limit("api", a_minute(1))]);
    assert_eq!(site.went(9, polling, "192.0.2.7").await, 9);
    let mut all = limit("all", a_minute(1));
    all.counts_polling = true;
    let site = Site::behind(vec![all]);
    assert_eq!(site.went(9, polling, "192.0.2.7").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_held_until_it_may_go() {
    let rate = Rate::new(60, MicroSpan::from_secs(60)).unwrap();
    let mut smooth = limit("smooth", Policy::LeakyBucket(LeakyBucket::new(rate, 10)));
    smooth.on_limit = OnLimit::Delay {
        max: Span::from_secs(3),
    };
    let site = Site::behind(vec![smooth]);
    let began = Instant::now();
    let answers = futures_util::future::join_all((0..6).map(|_| async {
        let status = site.get().await;
        (status.as_u16(), began.elapsed().as_secs())
    }));
    let answers = answers.await;
    // One at once, one a second, none after more than three; those give their places back.
    let expected = [(200, 0), (200, 1), (200, 2), (200, 3), (429, 0), (429, 0)];
    assert_eq!(answers, expected);
    assert_eq!(
        site.events("smooth"),
        [("admit", 1), ("reject", 2), ("delay", 3)]
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(site.get().await, 200);
}

#[tokio::test(start_paused = true)]
async fn also_one_that_its_window_rejects_is_held_if_that_is_soon_over() {
    let rate = Rate::new(1, MicroSpan::from_secs(2)).unwrap();
    let mut window = limit("window", Policy::FixedWindow(FixedWindow::new(rate)));
    window.on_limit = OnLimit::Delay {
        max: Span::from_secs(5),
    };
    let site = Site::behind(vec![window]);
    let began = Instant::now();
    for expected in [0, 2, 4] {
        assert_eq!(site.get().await, 200);

        assert_eq!(began.elapsed().as_secs(), expected);
    }
    assert_eq!(site.events("window"), [("admit", 1), ("delay", 2)]);
    assert_eq!(site.waiting.load(Relaxed), 0);
    let mut strict = limit("strict", a_minute(0));
    strict.on_limit = OnLimit::Delay {
        max: Span::from_secs(5),
    };
    let site = Site::behind(vec![strict]);
    assert_eq!(site.get().await, 429);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_not_inside_waits_and_whoever_is_is_told_so() {
    let mut door = limit("door", a_minute(1));
    door.on_limit = OnLimit::Wait;
    let site = Site::behind(vec![door]);
    assert_eq!(site.get().await, 200);
    assert_eq!(site.get().await, 200);
    assert_eq!(
        (site.served.load(Relaxed), site.waiting.load(Relaxed)),
        (1, 1)
    );
    site.is_inside.store(true, Relaxed);
    assert_eq!(site.get().await, 429);
    assert_eq!(
        site.events("door"),
        [("admit", 1), ("reject", 1), ("wait", 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_counted_by_address_or_not_at_all_or_refused() {
    let without = |without_key| {
        let mut keyed = limit("keyed", a_minute(2));
        keyed.parts = vec![Part::Header(http::HeaderName::from_static("x-api-key"))];
        keyed.without_key = without_key;
        Site::behind(vec![keyed])
    };
    assert_eq!(
        without(WithoutKey::ClientAddress)
            .went(5, "/", "192.0.2.7")
            .await,
        2
    );
    let site = without(WithoutKey::Skip);
    assert_eq!(site.went(5, "/", "192.0.2.7").await, 5);
    assert_eq!(site.events("keyed"), [("skip", 5)]);
    let site = without(WithoutKey::Reject);
    assert_eq!(site.get().await, 400);
    let mut with_key = request(Method::GET, "/", "192.0.2.7");
    with_key
        .headers_mut()
        .insert("x-api-key", HeaderValue::from_static("seven"));
    assert_eq!(site.send(with_key).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_client_may_have_a_limit_of_its_own() {
    let mut api = limit("api", a_minute(2));
    let client = vec![b"192.0.2.8".to_vec()];
    api.overrides.insert(client, a_minute(4));
    let site = Site::behind(vec![api]);
    assert_eq!(site.went(9, "/", "192.0.2.7").await, 2);
    assert_eq!(site.went(9, "/", "192.0.2.8").await, 4);
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_stays_when_limits_change() {
    let first = limit("api", a_minute(2));
    let kept = Arc::clone(&first.kept);
    let site = Site::behind(vec![first]);
    assert_eq!(site.went(9, "/", "192.0.2.7").await, 2);
    let mut second = limit("api", a_minute(5));
    second.kept = kept;
    site.meter.commit(Plan::of(vec![second]));
    assert_eq!(site.went(9, "/", "192.0.2.7").await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_nobody_is_refused() {
    let site = Site::behind(vec![limit("api", a_minute(2))]);
    let mut nobodys = request(Method::GET, "/", "192.0.2.7");
    nobodys.extensions_mut().clear();
    assert_eq!(site.send(nobodys).await.status(), 500);
    let odd = site.ask(Method::GET, "/%00", "192.0.2.7").await;
    assert_eq!(odd.status(), 400);
    assert_eq!(site.served.load(Relaxed), 0);
}
