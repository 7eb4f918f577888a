//! Limit per client, as a layer around a service that does nothing.

use std::convert::Infallible;
use std::future::Ready;
use std::net::SocketAddr;
use std::task::{Context, Poll, Waker};

use anteroom_config::Config;
use anteroom_limit::time::TimestampUs;
use anteroom_limit_http::{CountStores, Limiter, LimiterContext, RateLimitLayer};
use anteroom_proxy::body::Body;
use anteroom_proxy::forwarded::{Client, Scheme, TrustedProxies};
use anteroom_proxy::header_view::HeaderView;
use anteroom_proxy::path::Readings;
use anteroom_proxy::request_context::{KnownVisitor, RequestContext};
use http::header::ACCEPT;
use http::{HeaderValue, Request, Response};
use tokio::time::Instant;
use tower::Layer as _;

use crate::Options;
use crate::race::{self, Race, Runner};

const CLIENTS: u32 = 100_000;
const CHECKS: u64 = 500_000;
const CONFIG: &str = "[[room]]\nname = \"none\"\nhost = \"none.example\"\n\
                      origin = \"http://127.0.0.1:9\"\n\
                      total_active_users = 1\nnew_users_per_minute = 1\n\
                      [[limit]]\nname = \"api\"\nlimit = \"1000000/h\"\nalgorithm = \"gcra\"\n\
                      keys_max = 200000\n\
                      routes = [{ path = \"/api\" }]\n";

/// Program without waiting rooms.
struct Program(Instant);

impl LimiterContext for Program {
    fn now(&self) -> TimestampUs {
        let elapsed = u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX);
        TimestampUs(1_700_000_000_000_000 + elapsed)
    }

    fn wall_seconds(&self) -> u64 {
        1_700_000_000
    }

    fn visitor(&self, _: &Client, _: &Readings<'_>, _: HeaderView<'_>) -> Option<KnownVisitor> {
        None
    }
}

/// Service that responds at once.
#[derive(Clone)]
struct Nothing;

impl tower::Service<Request<Body>> for Nothing {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        std::future::ready(Ok(Response::new(Body::empty())))
    }
}

fn request(number: u32) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static("/api/orders");
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(ACCEPT, json);
    let [_, b, c, d] = number.to_be_bytes();
    let peer = SocketAddr::from(([10, b, c, d], 4711));
    let host = HeaderValue::from_static("shop.example");
    let client = Client::of(
        peer,
        Scheme::Http,
        host,
        request.headers(),
        &TrustedProxies::new([]),
    );
    request.extensions_mut().insert(RequestContext::new(client));
    request
}

fn send<S>(service: &mut S, number: u32)
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready());
    let mut response = std::pin::pin!(service.call(request(number)));
    let Poll::Ready(Ok(response)) = response.as_mut().poll(&mut context) else {
        panic!("no request has to wait");
    };
    assert_eq!(response.status(), 200);
}

/// Measures a service with and without the limit; the difference is the cost of the limit.
pub(crate) fn per_client(name: &str, options: &Options) -> anyhow::Result<Race> {
    let limited = |text: &str| {
        let config = Config::parse("bench.toml", text)?.config;
        let limiter = Limiter::new(
            &config.limits,
            CountStores::default(),
            Program(Instant::now()),
        )?;
        anyhow::Ok(RateLimitLayer::new(limiter).layer(Nothing))
    };
    let (mut bare, mut limited) = (Nothing, {
        let mut limited = limited(CONFIG)?;
        (0..CLIENTS).for_each(|number| send(&mut limited, number));
        limited
    });
    let mut at = [0_u32; 2];
    let next = |at: &mut u32| {
        *at = (*at + 61_803) % CLIENTS;
        *at
    };
    let [first, second] = &mut at;
    let runners: Vec<Runner<'_>> = vec![
        (
            "the request and its response alone",
            Box::new(move |checks| (0..checks).for_each(|_| send(&mut bare, next(first)))),
        ),
        (
            "behind a limit by address (gcra)",
            Box::new(move |checks| (0..checks).for_each(|_| send(&mut limited, next(second)))),
        ),
    ];
    let target = "the limit adds at most 0.5 CPU s/million";
    Ok(race::run(name, options, CHECKS, target, runners))
}
