//! Node: a clock, its leases, and the requests that wait there. It does what a real node does
//! around [`Holding`], and nothing more.

use anteroom_limit::cost::Cost;
use anteroom_limit::leases::epoch::{
    self, Before, Epoch, EpochDecision, EpochId, EpochObservation,
};
use anteroom_limit::leases::holding::{Decision, Holding, Turn};
use anteroom_limit::leases::members::Reports;
use anteroom_limit::leases::message::{Request, RequestId};
use anteroom_limit::leases::parent::grant;
use anteroom_limit::leases::record::Record;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Outcome;

use crate::leases::mutations::Mutation;
use crate::leases::store::{Loaded, Message, Reply};

/// Longest time that a request waits for replies, in us.
const TIMEOUT: u64 = 2_000_000;

pub(crate) struct Node {
    offset: u64,
    drift_ppm: i64,
    pub(crate) holding: Holding,
    pub(crate) limit: LeasedLimit,
    pub(crate) cut_until: u64,
    incarnation: u64,
    number: u64,
    waiting: Vec<Waiting>,
    witnessed: Option<EpochId>,
    round: Option<Request>,
    mutation: Option<Mutation>,
}

#[derive(Clone, Copy)]
struct Waiting {
    cost: u32,
    turn: Turn,
    since: u64,
}

/// Purpose of a message; the reply carries it back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    /// Request of the node; `None` if the message only reads the epoch.
    request: Option<Request>,
    /// Time by the node's clock.
    sent_at: TimestampUs,
    /// Time at which the node sent the read behind a write.
    read_at: TimestampUs,
}

/// Outcomes of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) admitted: u32,
    pub(crate) rejected: u32,
    pub(crate) unavailable: u32,
}

impl Outcomes {
    fn count(&mut self, decision: Decision, cost: u32) {
        match decision {
            Decision::Decided(verdict) => match verdict.outcome {
                Outcome::Allow { .. } => self.admitted += cost,
                Outcome::Reject { .. } => self.rejected += 1,
            },
            Decision::Uncertain(_) => self.rejected += 1,
            Decision::Unavailable => self.unavailable += 1,
            Decision::Wait(_) => {}
        }
    }
}

impl Node {
    pub(crate) fn new(
        limit: LeasedLimit,
        offset: u64,
        drift_ppm: i64,
        mutation: Option<Mutation>,
    ) -> Self {
        Self {
            offset,
            drift_ppm: match mutation {
                Some(Mutation::SlowClock) => -300_000,
                _ => drift_ppm,
            },
            holding: Holding::new(),
            limit,
            cut_until: 0,
            incarnation: offset,
            number: 0,
            waiting: Vec::new(),
            witnessed: None,
            round: None,
            mutation,
        }
    }

    pub(crate) fn now(&self, real: u64) -> TimestampUs {
        let drift = i128::from(real) * i128::from(self.drift_ppm) / 1_000_000;
        let now = u64::try_from(i128::from(real + self.offset) + drift);
        TimestampUs(now.expect("the clock stays above zero"))
    }

    /// Restarts the node without its memory.
    pub(crate) fn crash(&mut self, incarnation: u64) {
        self.holding = Holding::new();
        self.waiting.clear();
        self.witnessed = None;
        self.round = None;
        if self.mutation == Some(Mutation::ReusesRequestIds) {
            self.number = 0;
        } else {
            self.incarnation = incarnation;
        }
    }

    /// Handles a request of a client.
    pub(crate) fn handle_request(&mut self, real: u64, cost: u32) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let decision = self.holding.decide(self.now(real), Cost::take(cost));
        outcomes.count(decision, cost);
        if let Decision::Wait(turn) = decision {
            let since = real;
            self.waiting.push(Waiting { cost, turn, since });
        }
        outcomes
    }

    /// Decides again about waiting requests.
    pub(crate) fn decide_waiting(&mut self, real: u64) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let now = self.now(real);
        let holding = &mut self.holding;
        self.waiting.retain_mut(|one| {
            let decision = holding.decide_again(now, Cost::take(one.cost), one.turn);
            outcomes.count(decision, one.cost);
            if let Decision::Wait(turn) = decision {
                one.turn = turn;
                let has_time = real < one.since + TIMEOUT;
                outcomes.unavailable += u32::from(!has_time);
                return has_time;
            }
            false
        });
        outcomes
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
            &self.limit,
        )?;
        self.number += 1;
        self.round = Some(request);
        Some((Message::Load, Purpose::at(now, Some(request))))
    }

    /// Reads the epoch.
    pub(crate) fn read_epoch(&self, real: u64) -> (Message, Purpose) {
        (Message::Load, Purpose::at(self.now(real), None))
    }

    pub(crate) fn timeout(&mut self, real: u64, purpose: Purpose) {
        if let Some(request) = purpose.request {
            self.holding.handle_failure(self.now(real), request.id);
        }
    }

    /// Continues with the step after a reply.
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
                let read_at = match self.mutation {
                    Some(Mutation::CountsFromTheReply) => now,
                    Some(Mutation::CountsFromTheWrite) => purpose.sent_at,
                    _ => purpose.read_at,
                };
                self.holding.handle_reply(now, &answer, read_at);
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
        let epoch = match self.decide_epoch(loaded, random) {
            EpochDecision::InForce(epoch) => epoch,
            EpochDecision::Reporting(..) => return None,
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
        let mut outcome = grant(&self.limit, &epoch, record.as_ref(), &request, loaded.now);
        if self.mutation == Some(Mutation::CrossesFixedWindows) {
            outcome.reply.ttl = self.limit.ttl();
        }
        let (expected, answer) = (loaded.expected_client(), outcome.reply);
        if let Some(write) = outcome.write {
            again.read_at = purpose.sent_at;
            let write = Box::new(write);
            let message = Message::Swap {
                expected,
                write,
                reply: answer,
            };
            return Some((message, again));
        }
        self.holding.handle_reply(now, &answer, purpose.sent_at);
        None
    }

    fn decide_epoch(&self, loaded: &Loaded, random: u64) -> EpochDecision {
        let record = loaded.epoch.as_ref().map(|kept| &kept.value);
        let omits_witness = self.mutation == Some(Mutation::NoWitness);
        epoch::decide(EpochObservation {
            record,
            identity: loaded.identity,
            longest_loss: None,
            reports: Reports::Missing,
            now: loaded.now,
            witnessed: self.witnessed.filter(|_| !omits_witness),
            random,
        })
    }

    /// Returns the record as the mutation reads it.
    fn read(&self, loaded: &Loaded, epoch: &Epoch) -> Option<Record> {
        let mut record = loaded.client.as_ref().map(|kept| kept.value.clone());
        match self.mutation {
            Some(Mutation::TrustsOldRecords) => {
                if let Some(record) = &mut record {
                    record.epoch = epoch.id;
                }
            }
            Some(Mutation::CarriesNothingOver) => {
                record = record.filter(|record| record.lent_by == self.limit);
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

/// Changes an epoch as the mutation says.
pub(crate) fn mutate(message: &mut Message, mutation: Option<Mutation>) {
    if let Message::SwapEpoch { epoch, .. } = message
        && mutation == Some(Mutation::NoReserve)
    {
        epoch.before = Before::Nothing;
    }
}
