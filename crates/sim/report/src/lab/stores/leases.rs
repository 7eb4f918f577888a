//! Calls are lent to nodes: the lending of `anteroom-limit` itself, in one step at the store.
//!
//! A round is what a node of the gateway does where nothing is unusual: one question, which the
//! store answers from what it keeps of the client and has written down before it answers. What
//! costs a gateway more (a store that was emptied, a clock that was set back, a changed limit) does
//! not happen here.

use std::collections::BTreeMap;

use anteroom_limit::cost::Cost;
use anteroom_limit::lending::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::lending::holding::{Decision, Holding, Turn};
use anteroom_limit::lending::message::{Answer, Request, RequestId};
use anteroom_limit::lending::parent::lend;
use anteroom_limit::lending::record::Record;
use anteroom_limit::lending::widened::{LeasedLimit, NotLeasableError};
use anteroom_limit::policy::Policy;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::desk::{Arrival, Desk, Store};
use crate::lab::outcome::Fate;
use crate::lab::rng::{Dice, Purpose};
use crate::lab::run::Plan;

/// How long a call waits for an answer, as in the gateway.
const PATIENCE: DurationUs = DurationUs::from_secs(1);

/// What nodes hold, and what the store keeps.
pub(crate) struct Leases {
    lending: LeasedLimit,
    epoch: Epoch,
    kept: BTreeMap<u32, Record>,
    holders: BTreeMap<Place, Holder>,
    number: u64,
    lent: u64,
    spent: u64,
}

/// A client at a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Place {
    node: u32,
    client: u32,
}

/// What a node has of a client: what it holds, and who waits for more.
#[derive(Default)]
struct Holder {
    holding: Holding,
    waiting: Vec<(Turn, TimestampUs)>,
}

/// A round of a node, under way.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    place: Place,
    request: Request,
    /// When it was sent: from then on a lease is counted.
    sent_at: TimestampUs,
}

/// What is on its way.
pub(crate) enum Message {
    /// To the store.
    Ask(Round),
    /// To the node.
    Answer(Round, Box<Answer>),
    /// Somebody may have waited too long.
    Look(Place),
}

impl Leases {
    /// What is lent of this limit, with leases of the usual length.
    pub(crate) fn lending(policy: &Policy) -> Result<LeasedLimit, NotLeasableError> {
        LeasedLimit::new(*policy)
    }

    pub(crate) fn new(plan: &Plan, lending: LeasedLimit) -> Self {
        let mut rng = Dice::new(plan.seed, Purpose::Names);
        Self {
            lending,
            epoch: Epoch {
                id: EpochId {
                    number: 1,
                    random: rng.word(),
                },
                identity: StoreIdentity(1),
                // Before all calls, recorded ones too.
                began_at: TimestampUs(0),
                before: Before::Nothing,
            },
            kept: BTreeMap::new(),
            holders: BTreeMap::new(),
            number: 0,
            lent: 0,
            spent: 0,
        }
    }

    /// Sends a request if one is due.
    fn poll(&mut self, place: Place, desk: &mut Desk<Message>) {
        let holder = self.holders.entry(place).or_default();
        let id = RequestId {
            incarnation: u64::from(place.node),
            number: self.number,
        };
        let now = desk.now();
        if let Some(request) = holder.holding.poll_request(now, id, &self.lending) {
            self.number += 1;
            desk.send(Message::Ask(Round {
                place,
                request,
                sent_at: now,
            }));
        }
    }

    /// Decides again about all who wait.
    fn settle(&mut self, place: Place, desk: &mut Desk<Message>) {
        let holder = self.holders.entry(place).or_default();
        let now = desk.now();
        let mut spent = 0;
        holder.waiting.retain_mut(|(turn, since)| {
            let decision = holder.holding.decide_again(now, Cost::ONE, *turn);
            match decision {
                Decision::Ask(later) => {
                    *turn = later;
                    if now.since(*since) < PATIENCE {
                        return true;
                    }
                    desk.decide(place.client, now, Fate::Undecided);
                }
                Decision::Decided(verdict) => {
                    spent += u64::from(verdict.is_admitted());
                    desk.tell(place.client, &verdict);
                }
                Decision::Away => desk.decide(place.client, now, Fate::Undecided),
            }
            false
        });
        self.spent += spent;
        self.poll(place, desk);
    }

    /// At the store.
    fn step(&mut self, round: Round, desk: &mut Desk<Message>) {
        let client = round.place.client;
        let record = self.kept.get(&client);
        let lent = lend(
            &self.lending,
            &self.epoch,
            record,
            &round.request,
            desk.now(),
        );
        if let Some(write) = lent.write {
            desk.costs.writes += 1;
            self.lent += u64::from(lent.answer.held);
            self.kept.insert(client, write.record);
        }
        desk.send(Message::Answer(round, Box::new(lent.answer)));
    }

    /// At the node: what was lent is there.
    fn take(&mut self, round: Round, answer: &Answer, desk: &mut Desk<Message>) {
        let holder = self.holders.entry(round.place).or_default();
        holder
            .holding
            .handle_answer(desk.now(), answer, round.sent_at);
        self.settle(round.place, desk);
    }
}

impl Store for Leases {
    type Message = Message;

    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<Message>) {
        let place = Place {
            node: call.node,
            client: call.client,
        };
        let holder = self.holders.entry(place).or_default();
        let now = desk.now();
        match holder.holding.decide(now, Cost::ONE) {
            Decision::Decided(verdict) => {
                self.spent += u64::from(verdict.is_admitted());
                desk.tell(call.client, &verdict);
            }
            Decision::Ask(turn) => {
                holder.waiting.push((turn, now));
                desk.wake(now + PATIENCE, Message::Look(place));
            }
            Decision::Away => desk.decide(call.client, now, Fate::Undecided),
        }
        self.poll(place, desk);
    }

    fn handle_message(&mut self, message: Message, desk: &mut Desk<Message>) {
        match message {
            Message::Ask(round) => self.step(round, desk),
            Message::Answer(round, answer) => self.take(round, &answer, desk),
            Message::Look(place) => self.settle(place, desk),
        }
    }

    /// Whatever was lent is over by now, or of no use to anybody any more.
    fn stranded(&self) -> u64 {
        self.lent.saturating_sub(self.spent)
    }
}
