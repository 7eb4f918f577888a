//! Virtual time: which call or message is next, and who decided what.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};

use crate::lab::outcome::{Decision, Fate};
use crate::lab::rng::{Dice, Purpose};
use crate::lab::traffic::Call;

/// A way to share what nodes know.
pub(crate) trait Store {
    /// What is on its way between nodes and stores.
    type Message;

    /// A call has come to a node.
    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<Self::Message>);

    /// A message has arrived.
    fn handle_message(&mut self, message: Self::Message, desk: &mut Desk<Self::Message>);

    /// Calls that were lent and not used, when all is over.
    fn stranded(&self) -> u64 {
        0
    }
}

/// A call at a node, right now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) node: u32,
    pub(crate) client: u32,
}

/// What a run costs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Costs {
    pub(crate) messages: u64,
    pub(crate) writes: u64,
    pub(crate) writes_lost: u64,
    pub(crate) lag: DurationUs,
}

/// The clock, the messages on their way, and the decisions so far.
pub(crate) struct Desk<M> {
    now: TimestampUs,
    on_their_way: BinaryHeap<Posted<M>>,
    sent: u64,
    rng: Dice,
    delay: DurationUs,
    decisions: Vec<Decision>,
    pub(crate) costs: Costs,
}

impl<M> Desk<M> {
    pub(crate) fn new(seed: u64, delay: DurationUs) -> Self {
        Self {
            now: TimestampUs(0),
            on_their_way: BinaryHeap::new(),
            sent: 0,
            rng: Dice::new(seed, Purpose::Network),
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

    /// Lets something happen at a moment, without a message.
    pub(crate) fn wake(&mut self, at: TimestampUs, message: M) {
        self.sent += 1;
        self.on_their_way.push(Posted {
            at,
            number: self.sent,
            message,
        });
    }

    /// What an algorithm said right now.
    pub(crate) fn tell(&mut self, client: u32, verdict: &Verdict) {
        match verdict.outcome {
            Outcome::Admit { delay } => self.decide(client, self.now + delay, Fate::Admitted),
            Outcome::Reject { .. } => self.decide(client, self.now, Fate::Refused),
        }
    }

    pub(crate) fn decide(&mut self, client: u32, at: TimestampUs, fate: Fate) {
        self.decisions.push(Decision { at, client, fate });
    }

    /// Takes note that a node has heard of a call only now.
    pub(crate) fn hear(&mut self, called_at: TimestampUs) {
        self.costs.lag = self.costs.lag.max(self.now.since(called_at));
    }

    /// All decisions, in the order in which they were made, and what they cost.
    pub(crate) fn close(self) -> (Vec<Decision>, Costs) {
        (self.decisions, self.costs)
    }

    fn next_at(&self) -> Option<TimestampUs> {
        self.on_their_way.peek().map(|posted| posted.at)
    }
}

/// Brings all calls to their nodes and all messages to where they go, in the order of time; of a
/// call and a message at one moment the call comes first.
pub(crate) fn serve<S: Store>(
    store: &mut S,
    desk: &mut Desk<S::Message>,
    calls: &[Call],
    nodes: &[u32],
) {
    for (call, node) in calls.iter().zip(nodes) {
        deliver(store, desk, Some(call.at));
        desk.now = call.at;
        let arrival = Arrival {
            node: *node,
            client: call.client,
        };
        store.handle_call(arrival, desk);
    }
    deliver(store, desk, None);
}

/// All messages before a moment.
fn deliver<S: Store>(store: &mut S, desk: &mut Desk<S::Message>, before: Option<TimestampUs>) {
    while desk
        .next_at()
        .is_some_and(|at| before.is_none_or(|before| at < before))
    {
        let Some(posted) = desk.on_their_way.pop() else {
            return;
        };
        desk.now = posted.at;
        store.handle_message(posted.message, desk);
    }
}

/// A message on its way.
struct Posted<M> {
    at: TimestampUs,
    number: u64,
    message: M,
}

impl<M> Ord for Posted<M> {
    /// The next one is the greatest; of two at one moment the one that was sent first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<M> PartialOrd for Posted<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> PartialEq for Posted<M> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<M> Eq for Posted<M> {}
