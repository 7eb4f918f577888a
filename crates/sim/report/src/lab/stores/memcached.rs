//! Optimistic store: read the state, decide, write it back if it is unchanged, and otherwise try
//! again.
//!
//! With backoff it works like the store `memcached`: requests of one node for one client wait for
//! each other ([`super::turns`]). A writer that was too slow pauses for a random time that grows.
//! Without backoff it works as in the article: all writers try at once, and again at once.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::swapping::{TRIES, pause_longest};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Outcome;

use super::scheduler::{Arrival, Scheduler, Store};
use super::turns::{NodeClient, Turn, Turns};
use crate::lab::outcome::Fate;
use crate::lab::rng::{LabRng, Purpose};
use crate::lab::run::Plan;

/// Latest start of a try, as in the gateway.
const TIMEOUT: DurationUs = DurationUs::from_secs(1);

/// Behaviour of writers that write at the same moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RetryPolicy {
    /// Writers try again at once.
    Immediate,
    /// Requests of one node wait for each other, and nodes pause between tries.
    Backoff,
}

/// State and version by client.
pub(crate) struct Memcached {
    policy: Policy,
    retry: RetryPolicy,
    turns: Turns<Attempt>,
    rng: LabRng,
    stored: BTreeMap<u32, (u64, State)>,
}

/// Request that is being decided.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    node_client: NodeClient,
    tries: u32,
    until: TimestampUs,
    /// Start of the last try.
    began_at: TimestampUs,
}

/// Message on its way.
pub(crate) enum Message {
    /// Message to the store: `gets`.
    Read(Attempt),
    /// Message to the node.
    Found(Attempt, u64, State),
    /// Message to the store: `cas`, decided at that time.
    Write(Attempt, u64, State, Decided),
    /// Message to the node: written.
    Done(NodeClient),
    /// Message to the node: another writer was faster.
    Lost(Attempt),
    /// The pause is over.
    Again(Attempt),
}

/// Time at which a request goes on, if its write succeeds.
#[derive(Clone, Copy)]
pub(crate) struct Decided {
    goes_on_at: TimestampUs,
}

impl Memcached {
    pub(crate) fn new(plan: &Plan, retry: RetryPolicy) -> Self {
        Self {
            policy: plan.policy,
            retry,
            turns: Turns::default(),
            rng: LabRng::new(plan.seed, Purpose::Pauses),
            stored: BTreeMap::new(),
        }
    }

    fn begin(attempt: Attempt, scheduler: &mut Scheduler<Message>) {
        scheduler.send(Message::Read(Attempt {
            began_at: scheduler.now(),
            ..attempt
        }));
    }

    /// Ends a request at its node and begins the next one.
    fn end(&mut self, node_client: NodeClient, scheduler: &mut Scheduler<Message>) {
        if self.retry == RetryPolicy::Immediate {
            return;
        }
        self.give_up_late(node_client, scheduler);
        if let Some(next) = self.turns.next(node_client) {
            Self::begin(next, scheduler);
        }
    }

    /// Gives up requests that have waited too long.
    fn give_up_late(&mut self, node_client: NodeClient, scheduler: &mut Scheduler<Message>) {
        let now = scheduler.now();
        while let Some(late) = self
            .turns
            .take_first_if(node_client, |first| first.until <= now)
        {
            scheduler.decide(node_client.client, late.until, Fate::Undecided);
        }
    }

    fn decide(
        &mut self,
        attempt: Attempt,
        version: u64,
        mut state: State,
        scheduler: &mut Scheduler<Message>,
    ) {
        let verdict = self.policy.step(&mut state, scheduler.now(), Cost::ONE);
        let Outcome::Allow { delay } = verdict.outcome else {
            scheduler.record(attempt.node_client.client, &verdict);
            self.end(attempt.node_client, scheduler);
            return;
        };
        let decided = Decided {
            goes_on_at: scheduler.now() + delay,
        };
        scheduler.send(Message::Write(attempt, version, state, decided));
    }

    fn write(
        &mut self,
        attempt: Attempt,
        version: u64,
        state: State,
        decided: Decided,
        scheduler: &mut Scheduler<Message>,
    ) {
        scheduler.costs.writes += 1;
        let client = attempt.node_client.client;
        let stored = self.stored.entry(client).or_default();
        if stored.0 == version {
            *stored = (version + 1, state);
            scheduler.decide(client, decided.goes_on_at, Fate::Admitted);
            scheduler.send(Message::Done(attempt.node_client));
            return;
        }
        scheduler.costs.writes_lost += 1;
        scheduler.send(Message::Lost(attempt));
    }

    /// Handles a write that came too late.
    fn lose(&mut self, attempt: Attempt, scheduler: &mut Scheduler<Message>) {
        let again_at = match self.retry {
            RetryPolicy::Immediate => scheduler.now(),
            RetryPolicy::Backoff => scheduler.now() + self.pause(attempt, scheduler.now()),
        };
        let later = Attempt {
            tries: attempt.tries + 1,
            ..attempt
        };
        if later.tries >= TRIES || again_at >= attempt.until {
            scheduler.decide(attempt.node_client.client, scheduler.now(), Fate::Undecided);
            self.end(attempt.node_client, scheduler);
        } else {
            scheduler.wake(again_at, Message::Again(later));
        }
    }

    fn pause(&mut self, attempt: Attempt, now: TimestampUs) -> DurationUs {
        let longest = pause_longest(attempt.tries, now.since(attempt.began_at));
        self.rng.part_of(longest)
    }
}

impl Store for Memcached {
    type Message = Message;

    fn handle_request(&mut self, request: Arrival, scheduler: &mut Scheduler<Message>) {
        let now = scheduler.now();
        let node_client = NodeClient {
            node: request.node,
            client: request.client,
        };
        let attempt = Attempt {
            node_client,
            tries: 0,
            until: now + TIMEOUT,
            began_at: now,
        };
        if self.retry == RetryPolicy::Immediate {
            Self::begin(attempt, scheduler);
            return;
        }
        self.give_up_late(node_client, scheduler);
        match self.turns.enqueue(node_client, attempt) {
            Turn::Now => Self::begin(attempt, scheduler),
            Turn::Later => {}
            Turn::Full => scheduler.decide(request.client, now, Fate::Undecided),
        }
    }

    fn handle_message(&mut self, message: Message, scheduler: &mut Scheduler<Message>) {
        match message {
            Message::Read(attempt) => {
                let stored = self.stored.get(&attempt.node_client.client).cloned();
                let (version, state) = stored.unwrap_or_default();
                scheduler.send(Message::Found(attempt, version, state));
            }
            Message::Found(attempt, version, state) => {
                self.decide(attempt, version, state, scheduler);
            }
            Message::Write(attempt, version, state, decided) => {
                self.write(attempt, version, state, decided, scheduler);
            }
            Message::Done(node_client) => self.end(node_client, scheduler),
            Message::Lost(attempt) => self.lose(attempt, scheduler),
            Message::Again(attempt) => Self::begin(attempt, scheduler),
        }
    }
}
