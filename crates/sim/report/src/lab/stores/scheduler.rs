//! Scheduler of virtual time: requests and messages in order, and the decisions about requests.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};

use crate::lab::outcome::{Decision, Fate};
use crate::lab::rng::{LabRng, Purpose};
use crate::lab::traffic::Request;

/// Way to share counts among nodes.
pub(crate) trait Store {
    /// Message between nodes and stores.
    type Message;

    /// Handles a request that has reached a node.
    fn handle_request(&mut self, request: Arrival, scheduler: &mut Scheduler<Self::Message>);

    /// Handles a message that has arrived.
    fn handle_message(&mut self, message: Self::Message, scheduler: &mut Scheduler<Self::Message>);

    /// Returns the leased requests that were never used, at the end.
    fn stranded(&self) -> u64 {
        0
    }
}

/// Request at a node, at the present moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) node: u32,
    pub(crate) client: u32,
}

/// Costs of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Costs {
    pub(crate) messages: u64,
    pub(crate) writes: u64,
    pub(crate) writes_lost: u64,
    pub(crate) lag: DurationUs,
}

/// Clock, messages on their way, and decisions until now.
pub(crate) struct Scheduler<M> {
    now: TimestampUs,
    in_flight: BinaryHeap<Scheduled<M>>,
    sent: u64,
    rng: LabRng,
    delay: DurationUs,
    decisions: Vec<Decision>,
    pub(crate) costs: Costs,
}

impl<M> Scheduler<M> {
    pub(crate) fn new(seed: u64, delay: DurationUs) -> Self {
        Self {
            now: TimestampUs(0),
            in_flight: BinaryHeap::new(),
            sent: 0,
            rng: LabRng::new(seed, Purpose::Network),
            delay,
            decisions: Vec::new(),
            costs: Costs::default(),
        }
    }

    pub(crate) fn now(&self) -> TimestampUs {
        self.now
    }

    /// Sends a message over the network.
    pub(crate) fn send(&mut self, message: M) {
        self.costs.messages += 1;
        let delay = self.rng.half_or_more(self.delay);
        self.wake(self.now + delay, message);
    }

    /// Plans a message at a moment, without the network.
    pub(crate) fn wake(&mut self, at: TimestampUs, message: M) {
        self.sent += 1;
        self.in_flight.push(Scheduled {
            at,
            number: self.sent,
            message,
        });
    }

    /// Records the verdict of an algorithm at the present moment.
    pub(crate) fn record(&mut self, client: u32, verdict: &Verdict) {
        match verdict.outcome {
            Outcome::Allow { delay } => self.decide(client, self.now + delay, Fate::Admitted),
            Outcome::Reject { .. } => self.decide(client, self.now, Fate::Rejected),
        }
    }

    pub(crate) fn decide(&mut self, client: u32, at: TimestampUs, fate: Fate) {
        self.decisions.push(Decision { at, client, fate });
    }

    /// Records that a node learns only now of a request of that time.
    pub(crate) fn note_lag(&mut self, requested_at: TimestampUs) {
        self.costs.lag = self.costs.lag.max(self.now.since(requested_at));
    }

    /// Returns all decisions, in the order in which they were made, and their costs.
    pub(crate) fn close(self) -> (Vec<Decision>, Costs) {
        (self.decisions, self.costs)
    }

    fn next_at(&self) -> Option<TimestampUs> {
        self.in_flight.peek().map(|scheduled| scheduled.at)
    }
}

/// Delivers all requests and all messages in the order of time; of a request and a message at one
/// moment the request comes first.
pub(crate) fn serve<S: Store>(
    store: &mut S,
    scheduler: &mut Scheduler<S::Message>,
    requests: &[Request],
    nodes: &[u32],
) {
    for (request, node) in requests.iter().zip(nodes) {
        deliver(store, scheduler, Some(request.at));
        scheduler.now = request.at;
        let arrival = Arrival {
            node: *node,
            client: request.client,
        };
        store.handle_request(arrival, scheduler);
    }
    deliver(store, scheduler, None);
}

/// Delivers all messages before a moment.
fn deliver<S: Store>(
    store: &mut S,
    scheduler: &mut Scheduler<S::Message>,
    before: Option<TimestampUs>,
) {
    while scheduler
        .next_at()
        .is_some_and(|at| before.is_none_or(|before| at < before))
    {
        let Some(scheduled) = scheduler.in_flight.pop() else {
            return;
        };
        scheduler.now = scheduled.at;
        store.handle_message(scheduled.message, scheduler);
    }
}

/// Message that is planned.
struct Scheduled<M> {
    at: TimestampUs,
    number: u64,
    message: M,
}

impl<M> Ord for Scheduled<M> {
    /// Orders by time, latest first, and of two at one moment the earlier message is the greater
    /// one. The heap then returns the next one.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<M> PartialOrd for Scheduled<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> PartialEq for Scheduled<M> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<M> Eq for Scheduled<M> {}
