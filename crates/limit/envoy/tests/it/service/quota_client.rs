//! Client of the quota service with a hand-made stream.

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

/// Update of a bucket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Update {
    /// Number of requests, and for how many seconds.
    Assigned(u32, i64),
    Allowed,
    Denied,
    Abandoned,
}

/// Sending half of a stream.
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

/// Quota stream.
pub(crate) struct Quotas {
    reports: Reports,
    responses: Incoming,
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
            responses: response.into_body(),
            unread: BytesMut::new(),
            code,
        }
    }

    pub(crate) fn send(&self, report: &RateLimitQuotaUsageReports) {
        self.reports.send(report);
    }

    /// Reports like [`Reports::report`].
    pub(crate) fn report(&self, usages: &[(&str, u64, u64)]) {
        self.reports.report(usages);
    }

    /// Returns the sending half, and the number of requests assigned, as messages come.
    pub(crate) fn count(mut self) -> (Reports, Arc<AtomicU64>) {
        let assigned = Arc::new(AtomicU64::new(0));
        let (reports, count) = (Reports(self.reports.0.clone()), Arc::clone(&assigned));
        tokio::spawn(async move {
            while let Some(message) = self.message().await {
                for action in message.bucket_action {
                    if let (_, Update::Assigned(requests, _)) = update_of(action) {
                        count.fetch_add(requests.into(), Ordering::SeqCst);
                    }
                }
            }
        });
        (reports, assigned)
    }

    /// Reads the next message; `None` at the end.
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
            let frame = self.responses.frame().await?;
            match frame.unwrap().into_data() {
                Ok(data) => self.unread.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap();
                    self.code = Some(trailers["grpc-status"].to_str().unwrap().parse().unwrap());
                }
            }
        }
    }

    /// Reads the next updates: buckets by their keys and values, in alphabetical order.
    pub(crate) async fn updates(&mut self) -> Vec<(String, Update)> {
        let message = self.message().await.unwrap();
        let mut updates: Vec<_> = message.bucket_action.into_iter().map(update_of).collect();
        // The last update of a bucket counts.
        updates.reverse();
        let mut seen = HashSet::new();
        updates.retain(|(bucket, _)| seen.insert(bucket.clone()));
        updates.sort_by(|one, other| one.0.cmp(&other.0));
        updates
    }

    /// Reads the next update, which must be the only one.
    pub(crate) async fn next_update(&mut self) -> Update {
        let mut updates = self.updates().await;
        assert_eq!(updates.len(), 1, "{updates:?}");
        updates.remove(0).1
    }

    /// Reads to the end, and returns the status.
    pub(crate) async fn code(&mut self) -> i32 {
        while self.message().await.is_some() {}
        self.code.unwrap()
    }
}

fn update_of(action: BucketAction) -> (String, Update) {
    let mut id: Vec<_> = action.bucket_id.unwrap().bucket.into_iter().collect();
    id.sort();
    let id: Vec<String> = id
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let update = match action.bucket_action.unwrap() {
        Action::AbandonAction(_) => Update::Abandoned,
        Action::QuotaAssignmentAction(action) => {
            let lasts = action.assignment_time_to_live.unwrap();
            match action.rate_limit_strategy.unwrap().strategy.unwrap() {
                Strategy::TokenBucket(bucket) => Update::Assigned(calls_of(bucket), lasts.seconds),
                Strategy::BlanketRule(rule) if rule == i32::from(BlanketRule::AllowAll) => {
                    Update::Allowed
                }
                Strategy::BlanketRule(_) => Update::Denied,
                Strategy::RequestsPerTimeUnit(_) => panic!("Envoy does not know that"),
            }
        }
    };
    (id.join(","), update)
}

/// Returns how many requests a token bucket allows: its tokens, and its refill.
fn calls_of(bucket: TokenBucket) -> u32 {
    let refill = bucket.tokens_per_fill.unwrap().value;
    bucket.max_tokens + if refill > 1 { refill } else { 0 }
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
