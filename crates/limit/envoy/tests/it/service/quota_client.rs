//! A client of the quota service that keeps its stream by hand.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_envoy::wire::quota::{
    Action, BlanketRule, BucketAction, BucketId, BucketQuotaUsage, RateLimitQuotaResponse,
    RateLimitQuotaUsageReports, Strategy, TokenBucket,
};
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::unfold;
use http::{Method, Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::service::support::framed;

const PATH: &str = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";

/// What a bucket is told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Told {
    /// Calls, and for how many seconds.
    Assigned(u32, i64),
    Allowed,
    Denied,
    Abandoned,
}

/// The sending end of a stream.
pub(crate) struct Reports(mpsc::UnboundedSender<Bytes>);

impl Reports {
    pub(crate) fn send(&self, report: &RateLimitQuotaUsageReports) {
        // A stream that has ended shows that when it is read.
        let _ = self.0.send(framed(&report.encode_to_vec()).into());
    }

    /// Reports buckets of the domain `d`, each `key=value` pairs with `,` between them.
    pub(crate) fn report(&self, usages: &[(&str, u64, u64)]) {
        let usages = usages
            .iter()
            .map(|(bucket, allowed, denied)| usage(bucket, *allowed, *denied));
        self.send(&RateLimitQuotaUsageReports {
            domain: "d".to_owned(),
            bucket_quota_usages: usages.collect(),
        });
    }
}

/// A stream.
pub(crate) struct Quotas {
    reports: Reports,
    answers: Incoming,
    unread: BytesMut,
    code: Option<i32>,
}

impl Quotas {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let begun = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (mut connection, driver) = begun.unwrap();
        tokio::spawn(driver);
        let (sent, sending) = mpsc::unbounded_channel::<Bytes>();
        let frames = unfold(sending, |mut sending| async move {
            let frame = Frame::data(sending.recv().await?);
            Some((Ok::<_, Infallible>(frame), sending))
        });
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{address}{PATH}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(StreamBody::new(Box::pin(frames)))
            .unwrap();
        let response = connection.send_request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let code = response.headers().get("grpc-status");
        let code = code.map(|code| code.to_str().unwrap().parse().unwrap());
        Self {
            reports: Reports(sent),
            answers: response.into_body(),
            unread: BytesMut::new(),
            code,
        }
    }

    pub(crate) fn send(&self, report: &RateLimitQuotaUsageReports) {
        self.reports.send(report);
    }

    /// As [`Reports::report`].
    pub(crate) fn report(&self, usages: &[(&str, u64, u64)]) {
        self.reports.report(usages);
    }

    /// The sending end, and how many calls were assigned, as messages come.
    pub(crate) fn count(mut self) -> (Reports, Arc<AtomicU64>) {
        let assigned = Arc::new(AtomicU64::new(0));
        let (reports, count) = (Reports(self.reports.0.clone()), Arc::clone(&assigned));
        tokio::spawn(async move {
            while let Some(message) = self.message().await {
                for action in message.bucket_action {
                    if let (_, Told::Assigned(calls, _)) = told(action) {
                        count.fetch_add(calls.into(), Ordering::SeqCst);
                    }
                }
            }
        });
        (reports, assigned)
    }

    /// The next message; `None` at the end.
    pub(crate) async fn message(&mut self) -> Option<RateLimitQuotaResponse> {
        loop {
            if self.unread.len() >= 5 {
                let length = u32::from_be_bytes(self.unread[1..5].try_into().unwrap()) as usize;
                if self.unread.len() >= 5 + length {
                    self.unread.advance(5);
                    let message = self.unread.split_to(length);
                    return Some(RateLimitQuotaResponse::decode(message).unwrap());
                }
            }
            let frame = self.answers.frame().await?;
            match frame.unwrap().into_data() {
                Ok(data) => self.unread.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap();
                    self.code = Some(trailers["grpc-status"].to_str().unwrap().parse().unwrap());
                }
            }
        }
    }

    /// What is told next: buckets with their first keys' values, in alphabetical order.
    pub(crate) async fn told(&mut self) -> Vec<(String, Told)> {
        let message = self.message().await.unwrap();
        let mut told: Vec<_> = message.bucket_action.into_iter().map(told).collect();
        // The last that is said of a bucket holds.
        told.reverse();
        let mut seen = HashSet::new();
        told.retain(|(bucket, _)| seen.insert(bucket.clone()));
        told.sort_by(|one, other| one.0.cmp(&other.0));
        told
    }

    /// What one bucket is told next, where there is no other.
    pub(crate) async fn told_one(&mut self) -> Told {
        let mut told = self.told().await;
        assert_eq!(told.len(), 1, "{told:?}");
        told.remove(0).1
    }

    /// How it ends.
    pub(crate) async fn code(&mut self) -> i32 {
        while self.message().await.is_some() {}
        self.code.unwrap()
    }
}

fn told(action: BucketAction) -> (String, Told) {
    let mut id: Vec<_> = action.bucket_id.unwrap().bucket.into_iter().collect();
    id.sort();
    let id: Vec<String> = id
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let told = match action.bucket_action.unwrap() {
        Action::AbandonAction(_) => Told::Abandoned,
        Action::QuotaAssignmentAction(action) => {
            let lasts = action.assignment_time_to_live.unwrap();
            match action.rate_limit_strategy.unwrap().strategy.unwrap() {
                Strategy::TokenBucket(bucket) => Told::Assigned(calls_of(bucket), lasts.seconds),
                Strategy::BlanketRule(rule) if rule == i32::from(BlanketRule::AllowAll) => {
                    Told::Allowed
                }
                Strategy::BlanketRule(_) => Told::Denied,
                Strategy::RequestsPerTimeUnit(_) => panic!("Envoy does not know that"),
            }
        }
    };
    (id.join(","), told)
}

/// What a token bucket lets through: what is there at first, and what comes.
fn calls_of(bucket: TokenBucket) -> u32 {
    let comes = bucket.tokens_per_fill.unwrap().value;
    bucket.max_tokens + if comes > 1 { comes } else { 0 }
}

pub(crate) fn usage(bucket: &str, allowed: u64, denied: u64) -> BucketQuotaUsage {
    let pairs = bucket.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    BucketQuotaUsage {
        bucket_id: Some(BucketId {
            bucket: pairs.collect::<HashMap<_, _>>(),
        }),
        num_requests_allowed: allowed,
        num_requests_denied: denied,
        ..BucketQuotaUsage::default()
    }
}
