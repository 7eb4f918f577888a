//! Optimistic: read the state, decide, write it back if nobody has written meanwhile, and otherwise
//! try again.
//!
//! As the store `memcached` does it: calls of one node for one client wait for each other
//! ([`super::turns`]), and whoever was too slow waits for a time that grows and that chance
//! shortens. Or plainly, as the article has it: everybody at once, and again at once.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::swapping::{TRIES, pause_longest};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Outcome;

use super::desk::{Arrival, Desk, Store};
use super::turns::{Place, Turn, Turns};
use crate::lab::outcome::Fate;
use crate::lab::rng::{Dice, Purpose};
use crate::lab::run::Plan;

/// No try begins later, as in the gateway.
const PATIENCE: DurationUs = DurationUs::from_secs(1);

/// How those deal with each other who write at one moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Manner {
    /// They do not.
    Plain,
    /// Calls of one node wait for each other, and nodes pause.
    Patient,
}

/// A state and its version for each client.
pub(crate) struct Memcached {
    policy: Policy,
    manner: Manner,
    turns: Turns<Attempt>,
    rng: Dice,
    kept: BTreeMap<u32, (u64, State)>,
}

/// A call that is being decided.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    place: Place,
    tries: u32,
    until: TimestampUs,
    /// When the last try began.
    began_at: TimestampUs,
}

/// What is on its way.
pub(crate) enum Message {
    /// To the store: `gets`.
    Read(Attempt),
    /// To the node.
    Found(Attempt, u64, State),
    /// To the store: `cas`, decided then.
    Write(Attempt, u64, State, Decided),
    /// To the node: written.
    Done(Place),
    /// To the node: somebody else wrote first.
    Lost(Attempt),
    /// The pause is over.
    Again(Attempt),
}

/// When a call was let through, if its write is the first.
#[derive(Clone, Copy)]
pub(crate) struct Decided {
    goes_on_at: TimestampUs,
}

impl Memcached {
    pub(crate) fn new(plan: &Plan, manner: Manner) -> Self {
        Self {
            policy: plan.policy,
            manner,
            turns: Turns::default(),
            rng: Dice::new(plan.seed, Purpose::Pauses),
            kept: BTreeMap::new(),
        }
    }

    fn begin(attempt: Attempt, desk: &mut Desk<Message>) {
        desk.send(Message::Read(Attempt {
            began_at: desk.now(),
            ..attempt
        }));
    }

    /// A call is decided, or given up, at its node: the next one's turn.
    fn end(&mut self, place: Place, desk: &mut Desk<Message>) {
        if self.manner == Manner::Plain {
            return;
        }
        self.give_up_late(place, desk);
        if let Some(next) = self.turns.next(place) {
            Self::begin(next, desk);
        }
    }

    /// Those who have waited for too long.
    fn give_up_late(&mut self, place: Place, desk: &mut Desk<Message>) {
        let now = desk.now();
        while let Some(late) = self.turns.take_first_if(place, |first| first.until <= now) {
            desk.decide(place.client, late.until, Fate::Undecided);
        }
    }

    fn decide(
        &mut self,
        attempt: Attempt,
        version: u64,
        mut state: State,
        desk: &mut Desk<Message>,
    ) {
        let verdict = self.policy.step(&mut state, desk.now(), Cost::ONE);
        let Outcome::Admit { delay } = verdict.outcome else {
            desk.tell(attempt.place.client, &verdict);
            self.end(attempt.place, desk);
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
        let client = attempt.place.client;
        let kept = self.kept.entry(client).or_default();
        if kept.0 == version {
            *kept = (version + 1, state);
            desk.decide(client, decided.goes_on_at, Fate::Admitted);
            desk.send(Message::Done(attempt.place));
            return;
        }
        desk.costs.writes_lost += 1;
        desk.send(Message::Lost(attempt));
    }

    /// Somebody else was quicker.
    fn lose(&mut self, attempt: Attempt, desk: &mut Desk<Message>) {
        let again_at = match self.manner {
            Manner::Plain => desk.now(),
            Manner::Patient => desk.now() + self.pause(attempt, desk.now()),
        };
        let later = Attempt {
            tries: attempt.tries + 1,
            ..attempt
        };
        if later.tries >= TRIES || again_at >= attempt.until {
            desk.decide(attempt.place.client, desk.now(), Fate::Undecided);
            self.end(attempt.place, desk);
        } else {
            desk.wake(again_at, Message::Again(later));
        }
    }

    fn pause(&mut self, attempt: Attempt, now: TimestampUs) -> DurationUs {
        let longest = pause_longest(attempt.tries, now.since(attempt.began_at));
        self.rng.part_of(longest)
    }
}

impl Store for Memcached {
    type Message = Message;

    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<Message>) {
        let now = desk.now();
        let place = Place {
            node: call.node,
            client: call.client,
        };
        let attempt = Attempt {
            place,
            tries: 0,
            until: now + PATIENCE,
            began_at: now,
        };
        if self.manner == Manner::Plain {
            Self::begin(attempt, desk);
            return;
        }
        self.give_up_late(place, desk);
        match self.turns.stand(place, attempt) {
            Turn::Now => Self::begin(attempt, desk),
            Turn::Later => {}
            Turn::Crowded => desk.decide(call.client, now, Fate::Undecided),
        }
    }

    fn handle_message(&mut self, message: Message, desk: &mut Desk<Message>) {
        match message {
            Message::Read(attempt) => {
                let kept = self.kept.get(&attempt.place.client).cloned();
                let (version, state) = kept.unwrap_or_default();
                desk.send(Message::Found(attempt, version, state));
            }
            Message::Found(attempt, version, state) => self.decide(attempt, version, state, desk),
            Message::Write(attempt, version, state, decided) => {
                self.write(attempt, version, state, decided, desk);
            }
            Message::Done(place) => self.end(place, desk),
            Message::Lost(attempt) => self.lose(attempt, desk),
            Message::Again(attempt) => Self::begin(attempt, desk),
        }
    }
}
