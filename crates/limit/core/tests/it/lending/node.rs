//! A node: a clock, what it holds, the calls that wait there. It does what a real one has to do
//! around [`Holding`], and nothing more.

use anteroom_limit::cost::Cost;
use anteroom_limit::lending::epoch::{
    self, Before, Epoch, EpochDecision, EpochId, EpochObservation,
};
use anteroom_limit::lending::holding::{Decision, Holding, Turn};
use anteroom_limit::lending::message::{Request, RequestId};
use anteroom_limit::lending::parent::lend;
use anteroom_limit::lending::record::Record;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Outcome;

use crate::lending::planted::Bug;
use crate::lending::store::{Loaded, Message, Reply};

/// How long a call waits for answers at most.
const PATIENCE: u64 = 2_000_000;

pub(crate) struct Node {
    offset: u64,
    drift_ppm: i64,
    pub(crate) holding: Holding,
    pub(crate) lending: LeasedLimit,
    pub(crate) cut_until: u64,
    incarnation: u64,
    number: u64,
    waiting: Vec<Waiting>,
    witnessed: Option<EpochId>,
    round: Option<Request>,
    bug: Option<Bug>,
}

#[derive(Clone, Copy)]
struct Waiting {
    cost: u32,
    turn: Turn,
    since: u64,
}

/// What a message is for; an answer brings it back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    /// `None`: only to see the epoch.
    request: Option<Request>,
    /// By the node's clock.
    sent_at: TimestampUs,
    /// When the read was sent on which a write rests.
    read_at: TimestampUs,
}

/// What became of calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) admitted: u32,
    pub(crate) rejected: u32,
    pub(crate) away: u32,
}

impl Told {
    fn count(&mut self, decision: Decision, cost: u32) {
        match decision {
            Decision::Decided(verdict) => match verdict.outcome {
                Outcome::Admit { .. } => self.admitted += cost,
                Outcome::Reject { .. } => self.rejected += 1,
            },
            Decision::Away => self.away += 1,
            Decision::Ask(_) => {}
        }
    }
}

impl Node {
    pub(crate) fn new(lending: LeasedLimit, offset: u64, drift_ppm: i64, bug: Option<Bug>) -> Self {
        Self {
            offset,
            drift_ppm: match bug {
                Some(Bug::SlowClock) => -300_000,
                _ => drift_ppm,
            },
            holding: Holding::new(),
            lending,
            cut_until: 0,
            incarnation: offset,
            number: 0,
            waiting: Vec::new(),
            witnessed: None,
            round: None,
            bug,
        }
    }

    pub(crate) fn now(&self, real: u64) -> TimestampUs {
        let drift = i128::from(real) * i128::from(self.drift_ppm) / 1_000_000;
        TimestampUs(u64::try_from(i128::from(real + self.offset) + drift).expect("it is a time"))
    }

    /// Starts anew and knows nothing.
    pub(crate) fn crash(&mut self, incarnation: u64) {
        self.holding = Holding::new();
        self.waiting.clear();
        self.witnessed = None;
        self.round = None;
        if self.bug == Some(Bug::SameNamesAgain) {
            self.number = 0;
        } else {
            self.incarnation = incarnation;
        }
    }

    /// A call comes.
    pub(crate) fn call(&mut self, real: u64, cost: u32) -> Told {
        let mut told = Told::default();
        let decision = self.holding.decide(self.now(real), Cost::take(cost));
        told.count(decision, cost);
        if let Decision::Ask(turn) = decision {
            let since = real;
            self.waiting.push(Waiting { cost, turn, since });
        }
        told
    }

    /// Those who wait are decided again.
    pub(crate) fn settle(&mut self, real: u64) -> Told {
        let mut told = Told::default();
        let now = self.now(real);
        let holding = &mut self.holding;
        self.waiting.retain_mut(|one| {
            let decision = holding.decide_again(now, Cost::take(one.cost), one.turn);
            told.count(decision, one.cost);
            if let Decision::Ask(turn) = decision {
                one.turn = turn;
                let has_patience = real < one.since + PATIENCE;
                told.away += u32::from(!has_patience);
                return has_patience;
            }
            false
        });
        told
    }

    pub(crate) fn poll(&mut self, real: u64) -> Option<(Message, Purpose)> {
        let now = self.now(real);
        let (incarnation, number) = (self.incarnation, self.number);
        let request = self.holding.poll_request(
            now,
            RequestId {
                incarnation,
                number,
            },
            &self.lending,
        )?;
        self.number += 1;
        self.round = Some(request);
        Some((Message::Load, Purpose::at(now, Some(request))))
    }

    /// Looks which epoch it is.
    pub(crate) fn look(&self, real: u64) -> (Message, Purpose) {
        (Message::Load, Purpose::at(self.now(real), None))
    }

    pub(crate) fn timeout(&mut self, real: u64, purpose: Purpose) {
        if let Some(request) = purpose.request {
            self.holding.handle_failure(self.now(real), request.id);
        }
    }

    /// Goes on with what an answer is to.
    pub(crate) fn handle(
        &mut self,
        real: u64,
        reply: Reply,
        purpose: Purpose,
        random: u64,
    ) -> Option<(Message, Purpose)> {
        let now = self.now(real);
        match reply {
            Reply::Swapped(answer) => {
                let read_at = match self.bug {
                    Some(Bug::CountsFromTheAnswer) => now,
                    Some(Bug::CountsFromTheWrite) => purpose.sent_at,
                    _ => purpose.read_at,
                };
                self.holding.handle_answer(now, &answer, read_at);
                None
            }
            Reply::Loaded(loaded) => self.handle_loaded(now, &loaded, purpose, random),
        }
    }

    fn handle_loaded(
        &mut self,
        now: TimestampUs,
        loaded: &Loaded,
        purpose: Purpose,
        random: u64,
    ) -> Option<(Message, Purpose)> {
        let mut again = Purpose {
            sent_at: now,
            ..purpose
        };
        let epoch = match self.judge(loaded, random) {
            EpochDecision::InForce(epoch) => epoch,
            EpochDecision::Write(epoch) => {
                let expected = loaded.expected_epoch();
                return Some((Message::SwapEpoch { expected, epoch }, again));
            }
        };
        self.witnessed = Some(epoch::later(self.witnessed, epoch.id));
        let request = purpose.request?;
        if self.round.is_none_or(|round| round.id != request.id) {
            return None;
        }
        let record = self.read(loaded, &epoch);
        let mut lent = lend(&self.lending, &epoch, record.as_ref(), &request, loaded.now);
        if self.bug == Some(Bug::CrossesFixedWindows) {
            lent.answer.ttl = self.lending.ttl();
        }
        let (expected, answer) = (loaded.expected_client(), lent.answer);
        if let Some(write) = lent.write {
            again.read_at = purpose.sent_at;
            let write = Box::new(write);
            let message = Message::Swap {
                expected,
                write,
                answer,
            };
            return Some((message, again));
        }
        self.holding.handle_answer(now, &answer, purpose.sent_at);
        None
    }

    fn judge(&self, loaded: &Loaded, random: u64) -> EpochDecision {
        let record = loaded.epoch.as_ref().map(|kept| &kept.value);
        let is_silent = self.bug == Some(Bug::NoWitness);
        epoch::judge(EpochObservation {
            record,
            identity: loaded.identity,
            now: loaded.now,
            witnessed: self.witnessed.filter(|_| !is_silent),
            random,
        })
    }

    /// What it reads, with the bug that is planted.
    fn read(&self, loaded: &Loaded, epoch: &Epoch) -> Option<Record> {
        let mut record = loaded.client.as_ref().map(|kept| kept.value.clone());
        match self.bug {
            Some(Bug::BelievesOldRecords) => {
                if let Some(record) = &mut record {
                    record.epoch = epoch.id;
                }
            }
            Some(Bug::CarriesNothingOver) => {
                record = record.filter(|record| record.lent_by == self.lending);
            }
            _ => {}
        }
        record
    }
}

impl Purpose {
    fn at(now: TimestampUs, request: Option<Request>) -> Self {
        Self {
            request,
            sent_at: now,
            read_at: now,
        }
    }
}

/// What the bug makes of an epoch.
pub(crate) fn spoil(message: &mut Message, bug: Option<Bug>) {
    if let Message::SwapEpoch { epoch, .. } = message
        && bug == Some(Bug::NoReserve)
    {
        epoch.before = Before::Nothing;
    }
}
