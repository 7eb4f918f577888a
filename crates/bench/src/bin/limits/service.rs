//! Envoy's rate limit service, compared with a tonic server that reads the same request and sends a
//! constant response.
//!
//! Each server has its own thread, whose processor time is read from the kernel. Requests are sent
//! at a fixed rate, independent of the responses; latency counts from the due time of a request.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::Duration;

use anteroom_config::{OnStoreFailure, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore};
use anteroom_envoy::wire::{
    Code, Descriptor, DescriptorStatus, Entry, RateLimit, RateLimitRequest, RateLimitResponse,
};
use anteroom_envoy::{Counts, RateLimitService, ServiceSockets};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::mixed::MixedCounts;
use anyhow::Context as _;
use bytes::{BufMut as _, Bytes, BytesMut};
use hdrhistogram::Histogram;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic_prost::ProstCodec;

use crate::Options;
use crate::race::{Cost, Race, Row};

const CONNECTIONS: usize = 4;
/// Requests per second.
const RATE: u32 = 4_000;
const SECONDS: u32 = 3;
const KEYS: u32 = 10_000;

pub(crate) fn one(name: &str, options: &Options) -> anyhow::Result<Race> {
    race(name, options, 1)
}

pub(crate) fn ten(name: &str, options: &Options) -> anyhow::Result<Race> {
    race(name, options, 10)
}

/// Server on its own thread.
struct Served {
    address: SocketAddr,
    thread: u32,
}

impl Served {
    fn start<F>(
        serve: impl FnOnce(mpsc::Sender<SocketAddr>) -> F + Send + 'static,
    ) -> anyhow::Result<Self>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        let (address_sender, address) = mpsc::channel();
        let (thread_sender, thread) = mpsc::channel();
        std::thread::spawn(move || {
            let id = rustix::thread::gettid();
            thread_sender
                .send(id.as_raw_nonzero().get().unsigned_abs())
                .expect("the main thread waits");
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime");
            let served = runtime.block_on(serve(address_sender));
            served.expect("the server runs");
        });
        Ok(Self {
            thread: thread.recv()?,
            address: address.recv().context("the server did not start")?,
        })
    }

    /// Returns the processor time that its thread has used, in seconds.
    fn cpu_s(&self) -> anyhow::Result<f64> {
        let path = format!("/proc/self/task/{}/schedstat", self.thread);
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        let nanos: u64 = text.split(' ').next().context(path)?.parse()?;
        Ok(nanos as f64 / 1e9)
    }
}

async fn ours(started: mpsc::Sender<SocketAddr>) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let descriptors: String = (0..10)
        .map(|n| {
            format!("- key: key{n}\n  rate_limit: {{unit: hour, requests_per_unit: 1000000}}\n")
        })
        .collect();
    fs::write(
        folder.path().join("edge.yaml"),
        format!("domain: edge\ndescriptors:\n{descriptors}"),
    )?;
    let config = RateLimitServiceConfig {
        grpc: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        http: None,
        config_dir: folder.path().to_owned(),
        merge_domains: false,
        store: RateLimitStore::Local,
        on_store_failure: OnStoreFailure::Closed,
        keys_max: 1_000_000,
        shadow_mode: false,
        charge_rejected: false,
        headers: RateLimitHeaders::None,
        dynamic_metadata: false,
    };
    let began = Instant::now();
    let now = Arc::new(move || {
        let elapsed = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        TimestampUs(1_700_000_000_000_000 + elapsed)
    });
    let counts = Counts::Local(Arc::new(MixedCounts::new(config.keys_max)));
    let sockets = ServiceSockets::open(&config)?;
    let service = RateLimitService::start(sockets, &config, counts, now).await?;
    started.send(service.grpc().context("gRPC is configured")?)?;
    std::future::pending().await
}

/// Service that reads a request and allows each descriptor.
#[derive(Clone)]
struct Bare;

impl UnaryService<RateLimitRequest> for Bare {
    type Response = RateLimitResponse;
    type Future = std::future::Ready<Result<tonic::Response<RateLimitResponse>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<RateLimitRequest>) -> Self::Future {
        let allow = |_: &Descriptor| DescriptorStatus {
            code: Code::Ok.into(),
            current_limit: Some(RateLimit {
                requests_per_unit: 1_000_000,
                unit: 3,
                name: String::new(),
            }),
            limit_remaining: 999_999,
            ..DescriptorStatus::default()
        };
        let response = RateLimitResponse {
            overall_code: Code::Ok.into(),
            statuses: request.get_ref().descriptors.iter().map(allow).collect(),
            ..RateLimitResponse::default()
        };
        std::future::ready(Ok(tonic::Response::new(response)))
    }
}

impl NamedService for Bare {
    const NAME: &'static str = "envoy.service.ratelimit.v3.RateLimitService";
}

impl tower::Service<Request<Body>> for Bare {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async { Ok(Grpc::new(ProstCodec::default()).unary(Self, request).await) })
    }
}

async fn bare(started: mpsc::Sender<SocketAddr>) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    started.send(listener.local_addr()?)?;
    let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
    let server = tonic::transport::Server::builder().add_service(Bare);
    server.serve_with_incoming(incoming).await?;
    Ok(())
}

fn request(number: u32, descriptors: u32) -> Bytes {
    let entry = |n: u32| Descriptor {
        entries: vec![Entry {
            key: format!("key{n}"),
            value: format!("10.0.{}.{}", number % KEYS / 256, number % 256),
        }],
        limit: None,
        hits_addend: None,
        is_negative_hits: false,
    };
    let request = RateLimitRequest {
        domain: "edge".to_owned(),
        descriptors: (0..descriptors).map(entry).collect(),
        hits_addend: 0,
    };
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(request.encoded_len()).unwrap_or(u32::MAX));
    request.encode(&mut bytes).expect("the buffer grows");
    bytes.freeze()
}

/// Sends requests at the rate, and returns the latencies in microseconds.
async fn load(address: SocketAddr, descriptors: u32) -> anyhow::Result<Histogram<u64>> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        connections.push(sender);
    }
    let began = Instant::now();
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..RATE * SECONDS {
        let due = Duration::from_secs(1) * number / RATE;
        let ahead = due.saturating_sub(began.elapsed());
        if ahead > Duration::from_millis(1) {
            tokio::time::sleep(ahead).await;
        }
        let mut sender = connections[number as usize % CONNECTIONS].clone();
        let bytes = request(number, descriptors);
        requests.spawn(async move {
            let request = Request::post(format!(
                "http://{address}/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
            ));
            let request = request
                .header("content-type", "application/grpc")
                .header("te", "trailers");
            let response = sender.send_request(request.body(Full::new(bytes))?).await?;
            let body = response.into_body().collect().await?.to_bytes();
            let response = RateLimitResponse::decode(&body[5..])?;
            anyhow::ensure!(response.overall_code == i32::from(Code::Ok), "{response:?}");
            anyhow::Ok(began.elapsed().saturating_sub(due))
        });
    }
    let mut times = Histogram::new(3)?;
    while let Some(took) = requests.join_next().await {
        times.saturating_record(u64::try_from(took??.as_micros())?);
    }
    Ok(times)
}

fn race(name: &str, options: &Options, descriptors: u32) -> anyhow::Result<Race> {
    let servers = [
        ("tonic alone, constant response", Served::start(bare)?),
        ("anteroom, counts in memory", Served::start(ours)?),
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let mut costs: [Vec<Cost>; 2] = Default::default();
    let mut times: [Histogram<u64>; 2] = [Histogram::new(3)?, Histogram::new(3)?];
    for round in 0..=options.rounds {
        for (at, (_, server)) in servers.iter().enumerate() {
            let cpu = server.cpu_s()?;
            let took = runtime.block_on(load(server.address, descriptors))?;
            // The first round fills caches and memory.
            if round > 0 {
                let requests = f64::from(RATE * SECONDS);
                costs[at].push(Cost {
                    cpu_s_per_million: (server.cpu_s()? - cpu) * 1e6 / requests,
                    per_second: f64::from(RATE),
                });
                times[at].add(&took)?;
            }
        }
    }
    let middle = costs.map(crate::race::middle);
    let first = middle[0].cpu_s_per_million;
    for ((who, _), times) in servers.iter().zip(&times) {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| times.value_at_quantile(part));
        eprintln!(
            "{who}: p50 {p50} us, p99 {p99} us, p99.9 {p999} us at {RATE} requests per second"
        );
    }
    let lines = servers.iter().zip(middle).map(|((who, _), cost)| Row {
        who,
        cost,
        to_first: cost.cpu_s_per_million / first,
    });
    Ok(Race {
        name: name.to_owned(),
        lines: lines.collect(),
        target: "at most 1.20 x tonic alone",
    })
}
