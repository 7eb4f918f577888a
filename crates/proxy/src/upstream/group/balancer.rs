//! Candidates of a group, and the choice among them.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tower::balance::p2c::Balance;
use tower::discover::ServiceList;
use tower::load::Load;

use crate::upstream::health::Condition;
use crate::upstream::origin::Origin;
use crate::upstream::request::RequestBody;

/// Candidates as of some number of changes.
pub(super) struct Balancer<B> {
    pub(super) as_of: u64,
    /// Time at which the next ejected origin comes back.
    pub(super) until: Option<Instant>,
    pub(super) members: Vec<usize>,
    balance: Balance<ServiceList<Vec<Candidate<B>>>, ()>,
}

/// Candidate origin.
#[derive(Debug)]
struct Candidate<B> {
    index: usize,
    origin: Arc<Origin<B>>,
}

impl<B> std::fmt::Debug for Balancer<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Balancer({:?})", self.members)
    }
}

impl<B: RequestBody> Balancer<B> {
    pub(super) fn among(origins: &[Arc<Origin<B>>], as_of: u64) -> Self {
        let now = Instant::now();
        let mut until: Option<Instant> = None;
        let mut up = Vec::new();
        let mut not_unhealthy = Vec::new();
        for (index, origin) in origins.iter().enumerate() {
            let health = origin.health.lock();
            if health.condition(now) == Condition::Up {
                up.push(index);
            } else if let Some(back) = health.back_at().filter(|back| *back > now) {
                until = Some(until.map_or(back, |until| until.min(back)));
            }
            if !health.is_unhealthy() {
                not_unhealthy.push(index);
            }
        }
        let ranks = [up, not_unhealthy, (0..origins.len()).collect()];
        let members = ranks.into_iter().find(|members| !members.is_empty());
        let members = members.unwrap_or_default();
        let candidates = members.iter().map(|index| Candidate {
            index: *index,
            origin: Arc::clone(&origins[*index]),
        });
        Self {
            as_of,
            until,
            balance: Balance::new(ServiceList::new(candidates.collect::<Vec<_>>())),
            members,
        }
    }

    pub(super) fn pick(&mut self) -> Option<usize> {
        use tower::Service as _;
        // Candidates are always ready, so no waker is needed.
        let mut context = Context::from_waker(Waker::noop());
        match self.balance.poll_ready(&mut context) {
            Poll::Ready(Ok(())) => self.balance.call(()).now_or_never()?.ok(),
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }
}

impl<B> Load for Candidate<B> {
    type Metric = usize;

    fn load(&self) -> usize {
        self.origin.counts.in_flight.load(Relaxed)
    }
}

impl<B> tower::Service<()> for Candidate<B> {
    type Response = usize;
    type Error = Infallible;
    type Future = Ready<Result<usize, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        ready(Ok(self.index))
    }
}
