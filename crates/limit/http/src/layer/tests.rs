//! What becomes of calls, in time that stands still.

mod elsewhere;
mod fates;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anteroom_config::{Host, LimitHeaders, LimitStore, OnLimit, Route, WithoutKey};
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::leaky_bucket::LeakyBucket;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::KeyMaker;
use anteroom_limit_store::local::LocalCounts;
use anteroom_proxy::forwarded::{Client, Scheme, TrustedProxies};
use anteroom_proxy::path::Readings;
use anteroom_proxy::request_context::KnownVisitor;
use anteroom_room::time::DurationMs;
use http::HeaderMap;
use http_body::Body as _;
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _};

use super::*;
use crate::caller::{Part, key_of_named};
use crate::counters::LimitCounters;
use crate::covers::{Covered, Covers};
use crate::limit::{Limit, RetainedState};
use crate::meter::Surroundings;
use crate::rate_limit_headers::policy_alone;
use crate::stores::{CountStores, StoreContact};

/// Time stands still but for tokio's, which is paused.
struct World {
    began: Instant,
    is_inside: Arc<AtomicBool>,
}

impl Surroundings for World {
    fn now(&self) -> TimestampUs {
        let elapsed = u64::try_from(self.began.elapsed().as_micros()).unwrap();
        TimestampUs(1_700_000_000_000_000 + elapsed)
    }

    fn wall_seconds(&self) -> u64 {
        1_700_000_000
    }

    fn has_rooms(&self) -> bool {
        true
    }

    fn is_polling(&self, path: &str) -> bool {
        path == "/.well-known/anteroom/place"
    }

    fn visitor(&self, _: &Client, _: &Readings<'_>, _: &HeaderMap) -> Option<KnownVisitor> {
        Some(KnownVisitor {
            id: [7; 16],
            is_inside: self.is_inside.load(Relaxed),
        })
    }
}

fn a_minute(calls: u32) -> Policy {
    let rate = Rate::new(calls, DurationUs::from_secs(60)).unwrap();
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
        spoken_policy: policy_alone(name, policy.rate()),
        counts_polling: false,
        keys_max: 1_000,
        store: LimitStore::Local,
        elsewhere: None,
        own: HashMap::new(),
        kept: Arc::new(RetainedState {
            counts: LocalCounts::new(1_000),
            contact: StoreContact::default(),
            keys: KeyMaker::new([1; 16]),
            counters: LimitCounters::default(),
        }),
    }
}

/// A service behind limits.
struct Site {
    meter: Arc<Limiter>,
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
        let meter = Limiter::new(&[], CountStores::default(), world).unwrap();
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
            let mut response = Response::new(Body::full("hello"));
            let context = RequestContext::of(&request).unwrap();
            if !context.is_over_limit {
                served.fetch_add(1, Relaxed);
            } else if request.uri().path().starts_with("/open") {
                response.extensions_mut().insert(CannotWait);
                let ticket = HeaderValue::from_static("ticket=1");
                response.headers_mut().insert(SET_COOKIE, ticket);
            } else {
                waiting.fetch_add(1, Relaxed);
            }
            std::future::ready(Ok::<_, Infallible>(response))
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
        let stats = self.meter.stats();
        let limit = stats.iter().find(|limit| limit.name == name).unwrap();
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
    request.extensions_mut().insert(RequestContext::new(client));
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
    let head = site.ask(Method::HEAD, "/", "192.0.2.7").await;
    assert_eq!(
        (head.status().as_u16(), head.body().size_hint().exact()),
        (429, Some(0))
    );
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
    let mut strict = limit("strict", a_minute(10));
    strict.counts_polling = true;
    let site = Site::behind(vec![shadow, strict]);
    let first = site.ask(Method::GET, "/", "192.0.2.7").await;
    let said = first.headers()["ratelimit"].to_str().unwrap();
    assert!(said.starts_with("\"strict\";r=9;"), "{said}");
    // What another limit has rejected, it does not count.
    assert_eq!(site.went(20, "/", "192.0.2.7").await, 9);
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
async fn nobody_hides_behind_a_made_up_value() {
    let mut keyed = limit("keyed", a_minute(2));
    keyed.parts = vec![Part::Header(http::HeaderName::from_static("x-api-key"))];
    keyed.without_key = WithoutKey::Skip;
    let site = Site::behind(vec![keyed]);
    let mut answers = Vec::new();
    for made_up in ["a", "b", "c", "d"] {
        let mut twice = request(Method::GET, "/", "192.0.2.7");
        for value in [made_up, "seven"] {
            let value = HeaderValue::from_static(value);
            twice.headers_mut().append("x-api-key", value);
        }
        answers.push(site.send(twice).await);
    }
    let statuses: Vec<u16> = answers
        .iter()
        .map(|answer| answer.status().as_u16())
        .collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
    // One limit is told of once, and counts a call once.
    let said = answers[1].headers()["ratelimit"].to_str().unwrap();
    assert!(
        said.starts_with("\"keyed\";r=0;") && !said.contains(','),
        "{said}"
    );
    assert_eq!(site.events("keyed"), [("admit", 2), ("reject", 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_key_is_counted_by_address_ignored_or_rejected() {
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
    let key = key_of_named(&api.parts, 64, &api.kept.keys, &["192.0.2.8".to_owned()]);
    api.own.insert(key.unwrap(), a_minute(4));
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
