//! Tests of requests through a real Envoy.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anteroom_config::{OnStoreFailure, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore};
use anteroom_envoy::{Counts, RateLimitService, ServiceSockets};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::mixed::MixedCounts;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::http1::handshake;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

use crate::envoy::process::{Envoy, Setup};

/// 13 s past a minute; the clock stands still.
const NOW: TimestampUs = TimestampUs(1_767_225_613_000_000);

const FILE: &str = "
domain: edge
descriptors:
- {key: client, value: vip, rate_limit: {unlimited: true}}
- {key: client, rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: path, value: api, rate_limit: {unit: hour, requests_per_unit: 5}}
- {key: path, value: look, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
";

/// Sends one request.
pub(crate) async fn get(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, HeaderMap, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut connection, driver) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let mut request = Request::get(path).header("host", "example.com");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let (head, body) = connection.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    (head.status.as_u16(), head.headers, text)
}

/// Service, Envoy, and an origin that counts requests.
struct Stage {
    service: RateLimitService,
    envoy: Envoy,
    served: Arc<AtomicU32>,
    _folder: TempDir,
}

impl Stage {
    async fn new(denies_on_failure: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("edge.yaml"), FILE).unwrap();
        let config = RateLimitServiceConfig {
            grpc: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            http: None,
            config_dir: folder.path().to_owned(),
            merge_domains: false,
            store: RateLimitStore::Local,
            on_store_failure: OnStoreFailure::Closed,
            keys_max: 1_000,
            shadow_mode: false,
            charge_rejected: false,
            headers: RateLimitHeaders::RateLimit,
            dynamic_metadata: true,
        };
        let counts = Counts::Local(Arc::new(MixedCounts::new(1_000)));
        let sockets = ServiceSockets::open(&config).unwrap();
        let service = RateLimitService::start(sockets, &config, counts, Arc::new(|| NOW));
        let service = service.await.unwrap();
        let served = Arc::new(AtomicU32::new(0));
        let envoy = Envoy::start(Setup {
            origin: origin(Arc::clone(&served)).await,
            service: service.grpc().unwrap(),
            denies_on_failure,
        });
        let envoy = envoy.await;
        Self {
            service,
            envoy,
            served,
            _folder: folder,
        }
    }

    async fn get(&self, path: &str, client: &str) -> (u16, HeaderMap) {
        let (status, headers, _) = get(self.envoy.address(), path, &[("x-client", client)]).await;
        (status, headers)
    }

    async fn statuses(&self, path: &str, client: &str, times: usize) -> Vec<u16> {
        let mut statuses = Vec::new();
        for _ in 0..times {
            statuses.push(self.get(path, client).await.0);
        }
        statuses
    }

    fn served(&self) -> u32 {
        self.served.load(Ordering::SeqCst)
    }
}

pub(crate) async fn origin(served: Arc<AtomicU32>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let served = Arc::clone(&served);
            let hello = service_fn(move |_| {
                served.fetch_add(1, Ordering::SeqCst);
                let hello = Response::new(Full::new(Bytes::from_static(b"hello")));
                async { Ok::<_, Infallible>(hello) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), hello));
        }
    });
    address
}

#[tokio::test]
async fn envoy_enforces_the_limits_and_adds_their_headers() {
    let stage = Stage::new(false).await;
    assert_eq!(stage.statuses("/", "a", 9).await, [200; 9], "no limit");
    let log = || stage.envoy.log();
    let (status, headers) = stage.get("/api", "a").await;
    assert_eq!(status, 200, "{}", log());
    // Headers of the service, and Envoy's own, derived from the response.
    assert_eq!(headers["ratelimit-limit"], "3");
    assert_eq!(headers["ratelimit-remaining"], "2");
    assert_eq!(headers["ratelimit-reset"], "47");
    assert_eq!(headers["x-ratelimit-limit"], "3, 3;w=60, 5;w=3600");
    assert_eq!(headers["x-ratelimit-remaining"], "2");
    assert_eq!(headers["x-ratelimit-reset"], "47");
    assert_eq!(stage.statuses("/api", "a", 4).await, [200, 200, 429, 429]);
    let (status, headers) = stage.get("/api", "a").await;
    assert_eq!(status, 429);
    assert_eq!(headers["x-envoy-ratelimited"], "true");
    assert_eq!(headers["ratelimit-remaining"], "0");
    // A rejected request takes from no limit: of the five for all, two are left.
    assert_eq!(stage.statuses("/api", "b", 3).await, [200, 200, 429]);
    assert_eq!(stage.statuses("/api", "vip", 1).await, [429], "for all");
    assert_eq!(stage.served(), 9 + 5);
}

#[tokio::test]
async fn shadow_limits_and_limits_of_the_request_work() {
    let stage = Stage::new(false).await;
    assert_eq!(stage.statuses("/look", "a", 4).await, [200; 4]);
    let stats = stage.service.stats();
    assert_eq!(stats.limits["edge.path_look"][4], ("shadow_mode", 3));
    let overridden = stage.statuses("/brought", "a", 5).await;
    assert_eq!(
        overridden,
        [200, 200, 200, 429, 429],
        "{}",
        stage.envoy.log()
    );
}

#[tokio::test]
async fn without_the_service_envoy_follows_its_config() {
    for (denies, expected) in [(false, 200), (true, 500)] {
        let stage = Stage::new(denies).await;
        assert_eq!(stage.get("/api", "a").await.0, 200);
        stage.service.stop().await;
        assert_eq!(stage.statuses("/api", "a", 6).await, [expected; 6]);
        assert_eq!(stage.statuses("/", "a", 1).await, [200], "no limit");
    }
}

#[tokio::test]
async fn values_of_any_length_and_kind_reach_the_service() {
    let stage = Stage::new(true).await;
    let long = "x".repeat(2_000);
    for client in ["a", "a_b", "a=b,c", "\u{fc}", &long] {
        // Five for all, and each value is a client of its own.
        assert_eq!(stage.get("/api", client).await.0, 200, "{client}");
    }
    let answers = stage.service.stats().answers;
    assert!(answers.contains(&("ok", 5)), "{answers:?}");
}
