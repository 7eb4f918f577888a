//! Limits in front of an axum router instead of the gateway.

use std::net::SocketAddr;

use anteroom_config::Config;
use anteroom_limit::time::TimestampUs;
use anteroom_limit_http::{CountStores, Limiter, LimiterContext, RateLimitLayer};
use anteroom_proxy::forwarded::{Client, Scheme, TrustedProxies};
use anteroom_proxy::header_view::HeaderView;
use anteroom_proxy::path::Readings;
use anteroom_proxy::request_context::{KnownVisitor, RequestContext};
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{HeaderValue, Request};
use tower::ServiceExt as _;

/// Program without waiting rooms, whose clock stands still.
struct Program;

impl LimiterContext for Program {
    fn now(&self) -> TimestampUs {
        TimestampUs(1_700_000_000_000_000)
    }

    fn wall_seconds(&self) -> u64 {
        1_700_000_000
    }

    fn visitor(&self, _: &Client, _: &Readings<'_>, _: HeaderView<'_>) -> Option<KnownVisitor> {
        None
    }
}

const LIMITS: &str = "[[room]]\nname = \"none\"\nhost = \"none.example\"\n\
                      origin = \"http://127.0.0.1:9\"\n\
                      total_active_users = 1\nnew_users_per_minute = 1\n\
                      [[limit]]\nname = \"api\"\nlimit = \"2/min\"\n\
                      routes = [{ path = \"/api\" }]\n\
                      [[limit]]\nname = \"sale\"\nlimit = \"1/min\"\non_limit = \"wait\"\n\
                      routes = [{ path = \"/sale\" }]\n";

#[tokio::test]
async fn limits_stand_in_front_of_a_router() {
    let config = Config::parse("limits.toml", LIMITS).unwrap().config;
    let limiter = Limiter::new(&config.limits, CountStores::default(), Program).unwrap();
    let app = Router::new()
        .route("/api", get(async || "hello"))
        .route("/about", get(async || "about"))
        .route("/sale", get(async || "sale"))
        .layer(RateLimitLayer::new(limiter));
    let send = async |path: &str| {
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        let peer = SocketAddr::from(([192, 0, 2, 7], 4711));
        let host = HeaderValue::from_static("shop.example");
        let trusted = TrustedProxies::new([]);
        let client = Client::of(peer, Scheme::Http, host, request.headers(), &trusted);
        request.extensions_mut().insert(RequestContext::new(client));
        let response = app.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 10_000).await;
        (status, String::from_utf8(body.unwrap().to_vec()).unwrap())
    };
    let hello = (200, "hello".to_owned());
    assert_eq!(
        [send("/api").await, send("/api").await],
        [hello.clone(), hello]
    );
    let (status, problem) = send("/api").await;
    assert_eq!(status, 429);
    assert!(
        problem.contains("\"violated-policies\":[\"api\"]"),
        "{problem}"
    );
    assert_eq!(send("/about").await, (200, "about".to_owned()));
    // There are no rooms to queue in.
    assert_eq!(send("/sale").await.0, 200);
    assert_eq!(send("/sale").await.0, 429);
}
