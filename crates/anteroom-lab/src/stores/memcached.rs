//! Optimistic: read the state, decide, write it back if nobody has written meanwhile, and otherwise try
//! again.

use std::collections::BTreeMap;

use anteroom_limits::algorithm::Algorithm as _;
use anteroom_limits::cost::Cost;
use anteroom_limits::policy::{Policy, State};
use anteroom_limits::time::Micros;
use anteroom_limits::verdict::Outcome;

use super::desk::{Arrival, Desk, Store};
use crate::outcome::Fate;
use crate::run::Plan;

/// A call is given up after so many writes that came to nothing, as in the gateway: its client waits for the answer.
const TRIES_MAX: u32 = 8;

/// A state and its version for each client.
pub(crate) struct Memcached {
    policy: Policy,
    kept: BTreeMap<u32, (u64, State)>,
}

/// A call that is being decided.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    client: u32,
    tries: u32,
}

/// What is on its way.
pub(crate) enum Message {
    /// To the store: `gets`.
    Read(Attempt),
    /// To the node.
    Found(Attempt, u64, State),
    /// To the store: `cas`, decided then.
    Write(Attempt, u64, State, Decided),
    /// To the node: somebody else wrote first.
    Lost(Attempt),
}

/// When a call was let through, if its write is the first.
#[derive(Clone, Copy)]
pub(crate) struct Decided {
    goes_on_at: Micros,
}

impl Memcached {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            policy: plan.policy,
            kept: BTreeMap::new(),
        }
    }

    fn decide(&self, attempt: Attempt, version: u64, mut state: State, desk: &mut Desk<Message>) {
        let verdict = self.policy.step(&mut state, desk.now(), Cost::ONE);
        let Outcome::Admit { delay } = verdict.outcome else {
            desk.tell(attempt.client, &verdict);
            return;
        };
        let decided = Decided {
            goes_on_at: desk.now() + delay,
        };
        desk.send(Message::Write(attempt, version, state, decided));
    }

    fn write(
        &mut self,
        attempt: Attempt,
        version: u64,
        state: State,
        decided: Decided,
        desk: &mut Desk<Message>,
    ) {
        desk.costs.writes += 1;
        let kept = self.kept.entry(attempt.client).or_default();
        if kept.0 == version {
            *kept = (version + 1, state);
            desk.decide(attempt.client, decided.goes_on_at, Fate::Admitted);
            // The way back changes nothing any more.
            desk.costs.messages += 1;
            return;
        }
        desk.costs.writes_lost += 1;
        desk.send(Message::Lost(attempt));
    }
}

impl Store for Memcached {
    type Message = Message;

    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<Message>) {
        desk.send(Message::Read(Attempt {
            client: call.client,
            tries: 0,
        }));
    }

    fn handle_message(&mut self, message: Message, desk: &mut Desk<Message>) {
        match message {
            Message::Read(attempt) => {
                let kept = self.kept.get(&attempt.client).cloned();
                let (version, state) = kept.unwrap_or_default();
                desk.send(Message::Found(attempt, version, state));
            }
            Message::Found(attempt, version, state) => self.decide(attempt, version, state, desk),
            Message::Write(attempt, version, state, decided) => {
                self.write(attempt, version, state, decided, desk);
            }
            Message::Lost(attempt) if attempt.tries + 1 >= TRIES_MAX => {
                desk.decide(attempt.client, desk.now(), Fate::Undecided);
            }
            Message::Lost(attempt) => desk.send(Message::Read(Attempt {
                tries: attempt.tries + 1,
                ..attempt
            })),
        }
    }
}
