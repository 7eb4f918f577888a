//! Service with files and a clock of the test, and clients that speak gRPC and HTTP by hand.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_config::{OnStoreFailure, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore};
use anteroom_envoy::wire::{
    Code, Descriptor, Entry, RateLimitRequest, RateLimitResponse, UInt64Value,
};
use anteroom_envoy::{Counts, RateLimitService, ServiceSockets};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::mixed::MixedCounts;
use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tempfile::TempDir;
use tokio::net::TcpStream;

/// 13 s past the start of an hour.
pub(crate) const START: TimestampUs = TimestampUs(1_767_225_613_000_000);

/// Service of a test.
pub(crate) struct Stage {
    pub(crate) service: RateLimitService,
    pub(crate) folder: TempDir,
    time: Arc<AtomicU64>,
}

pub(crate) fn local() -> Counts {
    Counts::Local(Arc::new(MixedCounts::new(10_000)))
}

/// Returns the default settings.
pub(crate) fn settings(folder: &TempDir) -> RateLimitServiceConfig {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    RateLimitServiceConfig {
        grpc: any,
        http: any,
        config_dir: folder.path().to_owned(),
        merge_domains: false,
        store: RateLimitStore::Local,
        on_store_failure: OnStoreFailure::Closed,
        keys_max: 10_000,
        shadow_mode: false,
        charge_rejected: false,
        headers: RateLimitHeaders::None,
        dynamic_metadata: false,
    }
}

impl Stage {
    /// Starts a service with this file.
    pub(crate) async fn new(text: &str) -> Self {
        Self::with(text, local(), |_| {}).await
    }

    /// Starts a service with other settings and another store.
    pub(crate) async fn with(
        text: &str,
        counts: Counts,
        change: impl FnOnce(&mut RateLimitServiceConfig),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = settings(&folder);
        change(&mut config);
        let sockets = ServiceSockets::open(&config).unwrap();
        Self::at(sockets, text, counts, (folder, config)).await
    }

    /// Starts a service on open sockets.
    pub(crate) async fn at(
        sockets: ServiceSockets,
        text: &str,
        counts: Counts,
        (folder, config): (TempDir, RateLimitServiceConfig),
    ) -> Self {
        fs::write(folder.path().join("limits.yaml"), text).unwrap();
        let time = Arc::new(AtomicU64::new(START.0));
        let shown = Arc::clone(&time);
        let now = Arc::new(move || TimestampUs(shown.load(Ordering::SeqCst)));
        let service = RateLimitService::start(sockets, &config, counts, now);
        let service = service.await.unwrap();
        Self {
            service,
            folder,
            time,
        }
    }

    pub(crate) fn wait_seconds(&self, seconds: u64) {
        self.time.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    /// Sets the clock of the counts back.
    pub(crate) fn set_back(&self, seconds: u64) {
        self.time.fetch_sub(seconds * 1_000_000, Ordering::SeqCst);
    }

    pub(crate) async fn client(&self) -> Grpc {
        Grpc::connect(self.service.grpc().unwrap()).await
    }
}

/// One gRPC connection.
pub(crate) struct Grpc {
    address: SocketAddr,
    connection: http2::SendRequest<Full<Bytes>>,
}

/// Result of a gRPC request.
pub(crate) struct Called {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) body: Bytes,
}

impl Grpc {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let begun = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (connection, driver) = begun.unwrap();
        tokio::spawn(driver);
        Self {
            address,
            connection,
        }
    }

    /// Sends a request with these bytes as its body.
    pub(crate) async fn call(&mut self, path: &str, body: Vec<u8>) -> Called {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{}{path}", self.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Full::from(body))
            .unwrap();
        self.connection.ready().await.unwrap();
        let response = self.connection.send_request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let head = response.headers().clone();
        let collected = response.into_body().collect().await.unwrap();
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let of = |name: &str| -> Option<String> {
            let value = head.get(name).or_else(|| trailers.get(name))?;
            Some(value.to_str().unwrap().to_owned())
        };
        Called {
            code: of("grpc-status").unwrap().parse().unwrap(),
            message: of("grpc-message").unwrap_or_default().replace("%20", " "),
            body: collected.to_bytes(),
        }
    }

    /// Sends a rate limit request. Returns the status and its message if there is no response.
    pub(crate) async fn try_send(
        &mut self,
        request: &RateLimitRequest,
    ) -> Result<RateLimitResponse, (i32, String)> {
        let called = self.call(PATH, framed(&request.encode_to_vec())).await;
        match called.code {
            0 => Ok(RateLimitResponse::decode(called.body.slice(5..)).unwrap()),
            code => Err((code, called.message)),
        }
    }

    pub(crate) async fn send(&mut self, request: &RateLimitRequest) -> RateLimitResponse {
        self.try_send(request).await.unwrap()
    }

    /// Sends a rate limit request. Returns whether it was admitted, and the same for each
    /// descriptor with what is left.
    pub(crate) async fn outcome(&mut self, request: &RateLimitRequest) -> (bool, Vec<(bool, u32)>) {
        let response = self.send(request).await;
        let is_ok = |code: i32| code == i32::from(Code::Ok);
        let statuses = response.statuses.iter();
        let statuses = statuses.map(|status| (is_ok(status.code), status.limit_remaining));
        (is_ok(response.overall_code), statuses.collect())
    }
}

pub(crate) const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Returns a message with gRPC's prefix.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.len().try_into().unwrap());
    frame.put_slice(message);
    frame.to_vec()
}

/// Returns a request for the domain `d`: each descriptor is `key=value` pairs with `,` between
/// them.
pub(crate) fn request_of(descriptors: &[&str]) -> RateLimitRequest {
    let descriptors = descriptors.iter().map(|text| {
        let entries = text.split(',').map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Entry {
                key: key.to_owned(),
                value: value.to_owned(),
            }
        });
        Descriptor {
            entries: entries.collect(),
            ..Descriptor::default()
        }
    });
    RateLimitRequest {
        domain: "d".to_owned(),
        descriptors: descriptors.collect(),
        hits_addend: 0,
    }
}

/// Returns the hits of a descriptor.
#[expect(clippy::unnecessary_wraps, reason = "as the message has it")]
pub(crate) fn hits(value: u64) -> Option<UInt64Value> {
    Some(UInt64Value { value })
}

/// Sends one request over HTTP/1.1.
pub(crate) async fn http(
    address: SocketAddr,
    method: Method,
    path: &str,
    body: impl Into<Bytes>,
) -> (StatusCode, HeaderMap, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    let begun = http1::handshake(TokioIo::new(stream)).await;
    let (mut connection, driver) = begun.unwrap();
    tokio::spawn(driver);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "ratelimit")
        .body(Full::new(body.into()))
        .unwrap();
    let response = connection.send_request(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    (head.status, head.headers, text)
}
