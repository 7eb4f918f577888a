//! The quota service: Envoys ask ahead for many calls at once, and report what became of them.
//!
//! A stream ([`stream`]) reads reports ([`report`]), and says which limit each bucket meets
//! ([`bucket`]). One desk for all ([`actor`]) keeps a book for each limit that somebody shares
//! ([`books`]), charges what it assigns where calls are counted, and tells it ([`told`]). So what
//! is assigned and what is asked one by one count against the same limit, at all nodes that share
//! counts.
//!
//! # Why one desk
//!
//! Reports come once a second, not with each request: one task has time for some hundred thousand a
//! second, and needs no locks.

mod actor;
mod books;
mod bucket;
mod report;
mod stream;
mod told;

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

use crate::asking::RequestHandler;
use crate::quota::actor::{QuotaActor, StreamEvent};
use crate::quota::report::ReportCodec;
use crate::quota::stream::Opened;
use crate::stats::QuotaStats;

/// Streams at once. Envoy has one for each filter that is set up, whatever its threads.
pub(crate) const STREAMS_MAX: usize = 128;
/// Longest report: as many buckets as a stream may have, with the longest names.
const REPORT_BYTES_MAX: usize = 1 << 20;
/// Facts that wait for the desk. Streams wait when they are as many, and their Envoys with them.
const FACTS_MAX: usize = 1_024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What is counted of the quota service.
#[derive(Debug, Default)]
pub(crate) struct QuotaTally {
    pub(crate) streams: AtomicU64,
    pub(crate) buckets: AtomicU64,
    pub(crate) members: AtomicU64,
    pub(crate) assigned: AtomicU64,
    pub(crate) allowed: AtomicU64,
    pub(crate) denied: AtomicU64,
    pub(crate) abandoned: AtomicU64,
    pub(crate) unfit: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl QuotaTally {
    pub(crate) fn read(&self) -> QuotaStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        QuotaStats {
            streams: read(&self.streams),
            limits: read(&self.buckets),
            buckets: read(&self.members),
            assigned: read(&self.assigned),
            allowed: read(&self.allowed),
            denied: read(&self.denied),
            abandoned: read(&self.abandoned),
            unfit: read(&self.unfit),
            refused: read(&self.refused),
        }
    }
}

/// Answers streams. Clones share all they have.
#[derive(Clone)]
pub(crate) struct Quotas {
    pub(crate) asking: Arc<RequestHandler>,
    pub(crate) facts: mpsc::Sender<StreamEvent>,
    clock: Clock,
    streams: Arc<Semaphore>,
    members: Arc<AtomicU64>,
    stopped: watch::Receiver<bool>,
}

/// A clock that never goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn now(self) -> TimestampUs {
        let micros = self.0.elapsed().as_micros();
        TimestampUs(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl Quotas {
    /// With a desk, which ends when it is aborted.
    pub(crate) fn start(
        asking: &Arc<RequestHandler>,
        stopped: watch::Receiver<bool>,
    ) -> (Self, JoinHandle<()>) {
        let (facts, told) = mpsc::channel(FACTS_MAX);
        let clock = Clock(Instant::now());
        let actor = QuotaActor::new(Arc::clone(asking), clock);
        let quotas = Self {
            asking: Arc::clone(asking),
            facts,
            clock,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            members: Arc::default(),
            stopped,
        };
        (quotas, tokio::spawn(actor.run(told)))
    }

    /// Answers a stream, for as long as it lasts.
    pub(crate) async fn serve<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let mut grpc =
            Grpc::new(ReportCodec::default()).max_decoding_message_size(REPORT_BYTES_MAX);
        let request = request.map(|body| body.map_err(Into::into));
        grpc.streaming(Opened(self), request).await
    }

    fn member(&self) -> MemberId {
        MemberId(self.members.fetch_add(1, Ordering::Relaxed))
    }

    fn counters(&self) -> &QuotaTally {
        &self.asking.counters.quota
    }
}
