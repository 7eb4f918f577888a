//! Responses to requests, on a paused clock.

mod over_limit;
mod shared_store;

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
use anteroom_proxy::header_view::HeaderView;
use anteroom_proxy::path::Readings;
use anteroom_proxy::request_context::KnownVisitor;
use anteroom_room::time::DurationMs;
use http_body::Body as _;
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _};

use super::*;
use crate::client_key::{Part, key_of_named};
use crate::counters::LimitCounters;
use crate::covers::{Covered, Covers};
use crate::limit::{Limit, RetainedState};
use crate::limiter::LimiterContext;
use crate::rate_limit_headers::policy_alone;
use crate::stores::{CountStores, StoreContact};

/// Surroundings whose time is tokio's, which is paused.
struct PausedClock {
    began: Instant,
    is_inside: Arc<AtomicBool>,
}

impl LimiterContext for PausedClock {
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
        path == "/.well-known/anteroom/position"
    }

    fn visitor(&self, _: &Client, _: &Readings<'_>, _: HeaderView<'_>) -> Option<KnownVisitor> {
        Some(KnownVisitor {
            id: [7; 16],
            is_active: self.is_inside.load(Relaxed),
        })
    }
}

fn a_minute(requests: u32) -> Policy {
    let rate = Rate::new(requests, DurationUs::from_secs(60)).unwrap();
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
        headers: LimitHeaders {
            ietf: true,
            legacy: None,
        },
        policy_header: policy_alone(name, policy.rate()),
        counts_polling: false,
        keys_max: 1_000,
        store: LimitStore::Local,
        shared_store: None,
        own: HashMap::new(),
        kept: Arc::new(RetainedState {
            counts: LocalCounts::new(1_000),
            contact: StoreContact::default(),
            keys: KeyMaker::new([1; 16]),
            counters: LimitCounters::default(),
        }),
    }
}

/// Service behind limits.
struct Site {
    limiter: Arc<Limiter>,
    is_inside: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
}

impl Site {
    fn behind(limits: Vec<Limit>) -> Self {
        let is_inside = Arc::new(AtomicBool::new(false));
        let surroundings = PausedClock {
            began: Instant::now(),
            is_inside: Arc::clone(&is_inside),
        };
        let limiter = Limiter::new(&[], CountStores::default(), surroundings).unwrap();
        limiter.commit(Plan::of(limits));
        Self {
            limiter,
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
                response.extensions_mut().insert(CannotQueue);
                let ticket = HeaderValue::from_static("ticket=1");
                response.headers_mut().insert(SET_COOKIE, ticket);
            } else {
                waiting.fetch_add(1, Relaxed);
            }
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let limited = RateLimitLayer::new(Arc::clone(&self.limiter)).layer(site);
        limited.oneshot(request).await.unwrap()
    }

    async fn send_to(&self, method: Method, path: &str, address: &str) -> Response<Body> {
        self.send(request(method, path, address)).await
    }

    async fn get(&self) -> StatusCode {
        self.send_to(Method::GET, "/", "192.0.2.7").await.status()
    }

    /// Sends `requests` requests and returns how many were allowed.
    async fn allowed(&self, requests: usize, path: &str, address: &str) -> usize {
        let mut allowed = 0;
        for _ in 0..requests {
            let response = self.send_to(Method::GET, path, address).await;
            allowed += usize::from(response.status() == 200);
        }
        allowed
    }

    fn events(&self, name: &str) -> Vec<(&'static str, u64)> {
        let stats = self.limiter.stats();
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
async fn each_client_gets_what_the_limit_allows() {
    let site = Site::behind(vec![limit("api", a_minute(5))]);
    assert_eq!(site.allowed(20, "/", "192.0.2.7").await, 5);
    assert_eq!(site.allowed(20, "/", "192.0.2.8").await, 5);
    assert_eq!(site.events("api"), [("allow", 10), ("reject", 30)]);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(site.allowed(20, "/", "192.0.2.7").await, 5);
}

#[tokio::test(start_paused = true)]
async fn responses_state_the_limit() {
    let site = Site::behind(vec![limit("api", a_minute(1))]);
    let first = site.send_to(Method::GET, "/", "192.0.2.7").await;
    assert_eq!(first.headers()["ratelimit-policy"], "\"api\";q=1;w=60");
    assert!(
        first.headers()["ratelimit"]
            .to_str()
            .unwrap()
            .starts_with("\"api\";r=0;t=")
    );
    assert_eq!(first.body().size_hint().exact(), Some(5));
    let second = site.send_to(Method::GET, "/", "192.0.2.7").await;
    assert_eq!(second.status(), 429);
    assert!(second.headers().contains_key("retry-after"));
    assert!(second.headers().contains_key("ratelimit"));
    let head = site.send_to(Method::HEAD, "/", "192.0.2.7").await;
    assert_eq!(
        (head.status().as_u16(), head.body().size_hint().exact()),
        (429, Some(0))
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_one_limit_rejects_costs_nothing_at_the_others() {
    let site = Site::behind(vec![
        limit("day", a_minute(10)),
        limit("burst", a_minute(2)),
    ]);
    assert_eq!(site.allowed(50, "/", "192.0.2.7").await, 2);
    assert_eq!(site.events("day"), [("allow", 2)]);
    assert_eq!(site.events("burst"), [("allow", 2), ("reject", 48)]);
    let last = site.send_to(Method::GET, "/", "192.0.2.7").await;
    let state = last.headers()["ratelimit"].to_str().unwrap();
    assert!(state.starts_with("\"day\";r=8;"), "{state}");
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
    assert_eq!(site.allowed(5, "/shop", "192.0.2.7").await, 5);
    assert_eq!(site.allowed(5, "/login", "192.0.2.7").await, 1);
    assert_eq!(site.allowed(5, "/%6cogin", "192.0.2.7").await, 0);
    let posted = site.send_to(Method::POST, "/login", "192.0.2.7").await;
    assert_eq!(posted.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_limit_in_shadow_mode_allows_everything() {
    let mut shadow = limit("new", a_minute(2));
    shadow.is_shadow = true;
    let mut strict = limit("strict", a_minute(10));
    strict.counts_polling = true;
    let site = Site::behind(vec![shadow, strict]);
    let first = site.send_to(Method::GET, "/", "192.0.2.7").await;
    let state = first.headers()["ratelimit"].to_str().unwrap();
    assert!(state.starts_with("\"strict\";r=9;"), "{state}");
    // It does not count what another limit rejects.
    assert_eq!(site.allowed(20, "/", "192.0.2.7").await, 9);
    assert_eq!(site.events("new"), [("allow", 2), ("shadow", 8)]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_page_may_poll_unless_polling_counts() {
    let polling = "/.well-known/anteroom/position";
    let site = Site::behind(vec![limit("api", a_minute(1))]);
    assert_eq!(site.allowed(9, polling, "192.0.2.7").await, 9);
    let mut all = limit("all", a_minute(1));
    all.counts_polling = true;
    let site = Site::behind(vec![all]);
    assert_eq!(site.allowed(9, polling, "192.0.2.7").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_made_up_value_does_not_hide_a_client() {
    let mut keyed = limit("keyed", a_minute(2));
    keyed.parts = vec![Part::Header(http::HeaderName::from_static("x-api-key"))];
    keyed.without_key = WithoutKey::Skip;
    let site = Site::behind(vec![keyed]);
    let mut responses = Vec::new();
    for made_up in ["a", "b", "c", "d"] {
        let mut twice = request(Method::GET, "/", "192.0.2.7");
        for value in [made_up, "seven"] {
            let value = HeaderValue::from_static(value);
            twice.headers_mut().append("x-api-key", value);
        }
        responses.push(site.send(twice).await);
    }
    let statuses: Vec<u16> = responses
        .iter()
        .map(|response| response.status().as_u16())
        .collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
    // One limit has one entry, and counts a request once.
    let state = responses[1].headers()["ratelimit"].to_str().unwrap();
    assert!(
        state.starts_with("\"keyed\";r=0;") && !state.contains(','),
        "{state}"
    );
    assert_eq!(site.events("keyed"), [("allow", 2), ("reject", 2)]);
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
            .allowed(5, "/", "192.0.2.7")
            .await,
        2
    );
    let site = without(WithoutKey::Skip);
    assert_eq!(site.allowed(5, "/", "192.0.2.7").await, 5);
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
    assert_eq!(site.allowed(9, "/", "192.0.2.7").await, 2);
    assert_eq!(site.allowed(9, "/", "192.0.2.8").await, 4);
}

#[tokio::test(start_paused = true)]
async fn counts_stay_when_limits_change() {
    let first = limit("api", a_minute(2));
    let kept = Arc::clone(&first.kept);
    let site = Site::behind(vec![first]);
    assert_eq!(site.allowed(9, "/", "192.0.2.7").await, 2);
    let mut second = limit("api", a_minute(5));
    second.kept = kept;
    site.limiter.commit(Plan::of(vec![second]));
    assert_eq!(site.allowed(9, "/", "192.0.2.7").await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_client_is_rejected() {
    let site = Site::behind(vec![limit("api", a_minute(2))]);
    let mut unknown = request(Method::GET, "/", "192.0.2.7");
    unknown.extensions_mut().clear();
    assert_eq!(site.send(unknown).await.status(), 500);
    let odd = site.send_to(Method::GET, "/%00", "192.0.2.7").await;
    assert_eq!(odd.status(), 400);
    assert_eq!(site.served.load(Relaxed), 0);
}
