//! Quota service: Envoys get many requests assigned ahead, and report their use.
//!
//! A stream ([`stream`]) reads reports ([`report`]), and finds the limit of each bucket
//! ([`bucket`]). One [`actor`] keeps a ledger for each shared limit ([`ledgers`]). It takes the
//! cost of an assignment from the same counts as single requests, and sends the assignment
//! ([`assignments`]). So both count against the same limit, at all nodes that share counts.
//!
//! # Why one actor
//!
//! Reports come once a second, not with each request: one task can handle some hundred thousand a
//! second, and needs no locks.

mod actor;
mod assignments;
mod bucket;
mod ledgers;
mod report;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_limit::quota::book::MemberId;
use anteroom_limit::time::TimestampUs;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::server::Grpc;

use crate::quota::actor::{QuotaActor, StreamEvent};
use crate::quota::report::ReportCodec;
use crate::quota::stream::QuotaService;
use crate::request_handler::RequestHandler;
use crate::stats::QuotaCounters;

/// Streams at once. Envoy opens one per configured filter, whatever the number of its threads.
pub(crate) const STREAMS_MAX: usize = 128;
/// Longest report: as many buckets as a stream may have, with the longest names.
const REPORT_BYTES_MAX: usize = 1 << 20;
/// Facts queued for the actor. When the queue is full, streams wait, and their Envoys with them.
const FACTS_MAX: usize = 1_024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Quota service. Clones share all state.
#[derive(Clone)]
pub(crate) struct Quotas {
    pub(crate) handler: Arc<RequestHandler>,
    pub(crate) facts: mpsc::Sender<StreamEvent>,
    clock: Clock,
    streams: Arc<Semaphore>,
    members: Arc<AtomicU64>,
    stopped: watch::Receiver<bool>,
}

/// Monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn now(self) -> TimestampUs {
        let micros = self.0.elapsed().as_micros();
        TimestampUs(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl Quotas {
    /// Starts the service with its actor, which ends when it is aborted.
    pub(crate) fn start(
        handler: &Arc<RequestHandler>,
        stopped: watch::Receiver<bool>,
    ) -> (Self, JoinHandle<()>) {
        let (facts, receiver) = mpsc::channel(FACTS_MAX);
        let clock = Clock(Instant::now());
        let actor = QuotaActor::new(Arc::clone(handler), clock);
        let quotas = Self {
            handler: Arc::clone(handler),
            facts,
            clock,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            members: Arc::default(),
            stopped,
        };
        (quotas, tokio::spawn(actor.run(receiver)))
    }

    /// Serves a stream, for as long as it lasts.
    pub(crate) async fn serve<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let mut grpc =
            Grpc::new(ReportCodec::default()).max_decoding_message_size(REPORT_BYTES_MAX);
        let request = request.map(|body| body.map_err(Into::into));
        grpc.streaming(QuotaService(self), request).await
    }

    fn member(&self) -> MemberId {
        MemberId(self.members.fetch_add(1, Ordering::Relaxed))
    }

    fn counters(&self) -> &QuotaCounters {
        &self.handler.counters.quota
    }
}
