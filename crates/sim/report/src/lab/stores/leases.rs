//! Leases of requests to nodes, by the code of `anteroom-limit`, in one step at the store.
//!
//! A round is what a node of the gateway does when all is well. It sends one request, and the store
//! replies from the client's record, after it has written it. Cases that cost a gateway more do not
//! happen here: an empty store, a clock that was set back, a changed limit.

use std::collections::BTreeMap;

use anteroom_limit::cost::Cost;
use anteroom_limit::leases::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::leases::holding::{Decision, Holding, Turn};
use anteroom_limit::leases::message::{LeaseReply, Request, RequestId};
use anteroom_limit::leases::parent::grant;
use anteroom_limit::leases::record::Record;
use anteroom_limit::leases::widened::{LeasedLimit, NotLeasableError};
use anteroom_limit::policy::Policy;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::scheduler::{Arrival, Scheduler, Store};
use crate::lab::outcome::Fate;
use crate::lab::rng::{LabRng, Purpose};
use crate::lab::run::Plan;

/// Longest wait of a request for a reply, as in the gateway.
const TIMEOUT: DurationUs = DurationUs::from_secs(1);

/// Leases of nodes, and records of the store.
pub(crate) struct Leases {
    leased_limit: LeasedLimit,
    epoch: Epoch,
    records: BTreeMap<u32, Record>,
    holders: BTreeMap<NodeClient, Holder>,
    number: u64,
    leased: u64,
    spent: u64,
}

/// Client at a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct NodeClient {
    node: u32,
    client: u32,
}

/// State of a client at a node: its lease, and the requests that wait for more.
#[derive(Default)]
struct Holder {
    holding: Holding,
    waiting: Vec<(Turn, TimestampUs)>,
}

/// Lease request under way.
#[derive(Clone, Copy)]
pub(crate) struct LeaseRequest {
    node_client: NodeClient,
    request: Request,
    /// Time at which it was sent; the lease counts from then on.
    sent_at: TimestampUs,
}

/// Message on its way.
pub(crate) enum Message {
    /// Message to the store.
    Request(LeaseRequest),
    /// Message to the node.
    Reply(LeaseRequest, Box<LeaseReply>),
    /// A request may have waited too long.
    WaitEnds(NodeClient),
}

impl Leases {
    /// Returns the leased limit of a policy, with leases of the usual length.
    pub(crate) fn leased_limit(policy: &Policy) -> Result<LeasedLimit, NotLeasableError> {
        LeasedLimit::new(*policy)
    }

    pub(crate) fn new(plan: &Plan, leased_limit: LeasedLimit) -> Self {
        let mut rng = LabRng::new(plan.seed, Purpose::Names);
        Self {
            leased_limit,
            epoch: Epoch {
                id: EpochId {
                    number: 1,
                    random: rng.word(),
                },
                identity: StoreIdentity(1),
                // Before all requests, recorded ones included.
                began_at: TimestampUs(0),
                before: Before::Nothing,
                longest_loss: None,
            },
            records: BTreeMap::new(),
            holders: BTreeMap::new(),
            number: 0,
            leased: 0,
            spent: 0,
        }
    }

    /// Sends a request if one is due.
    fn poll(&mut self, node_client: NodeClient, scheduler: &mut Scheduler<Message>) {
        let holder = self.holders.entry(node_client).or_default();
        let id = RequestId {
            incarnation: u64::from(node_client.node),
            number: self.number,
        };
        let now = scheduler.now();
        if let Some(request) = holder.holding.poll_request(now, id, &self.leased_limit) {
            self.number += 1;
            scheduler.send(Message::Request(LeaseRequest {
                node_client,
                request,
                sent_at: now,
            }));
        }
    }

    /// Decides again about all waiting requests.
    fn decide_waiting(&mut self, node_client: NodeClient, scheduler: &mut Scheduler<Message>) {
        let holder = self.holders.entry(node_client).or_default();
        let now = scheduler.now();
        let mut spent = 0;
        holder.waiting.retain_mut(|(turn, since)| {
            let decision = holder.holding.decide_again(now, Cost::ONE, *turn);
            match decision {
                Decision::Wait(later) => {
                    *turn = later;
                    if now.since(*since) < TIMEOUT {
                        return true;
                    }
                    scheduler.decide(node_client.client, now, Fate::Undecided);
                }
                Decision::Decided(verdict) => {
                    spent += u64::from(verdict.is_allowed());
                    scheduler.record(node_client.client, &verdict);
                }
                Decision::Uncertain(_) | Decision::Unavailable => {
                    scheduler.decide(node_client.client, now, Fate::Undecided)
                }
            }
            false
        });
        self.spent += spent;
        self.poll(node_client, scheduler);
    }

    /// Handles a lease request at the store.
    fn grant(&mut self, lease_request: LeaseRequest, scheduler: &mut Scheduler<Message>) {
        let client = lease_request.node_client.client;
        let record = self.records.get(&client);
        let granted = grant(
            &self.leased_limit,
            &self.epoch,
            record,
            &lease_request.request,
            scheduler.now(),
        );
        if let Some(write) = granted.write {
            scheduler.costs.writes += 1;
            self.leased += u64::from(granted.reply.granted);
            self.records.insert(client, write.record);
        }
        scheduler.send(Message::Reply(lease_request, Box::new(granted.reply)));
    }

    /// Handles a grant at the node.
    fn handle_grant(
        &mut self,
        lease_request: LeaseRequest,
        answer: &LeaseReply,
        scheduler: &mut Scheduler<Message>,
    ) {
        let holder = self.holders.entry(lease_request.node_client).or_default();
        holder
            .holding
            .handle_reply(scheduler.now(), answer, lease_request.sent_at);
        self.decide_waiting(lease_request.node_client, scheduler);
    }
}

impl Store for Leases {
    type Message = Message;

    fn handle_request(&mut self, request: Arrival, scheduler: &mut Scheduler<Message>) {
        let node_client = NodeClient {
            node: request.node,
            client: request.client,
        };
        let holder = self.holders.entry(node_client).or_default();
        let now = scheduler.now();
        match holder.holding.decide(now, Cost::ONE) {
            Decision::Decided(verdict) => {
                self.spent += u64::from(verdict.is_allowed());
                scheduler.record(request.client, &verdict);
            }
            Decision::Wait(turn) => {
                holder.waiting.push((turn, now));
                scheduler.wake(now + TIMEOUT, Message::WaitEnds(node_client));
            }
            Decision::Uncertain(_) | Decision::Unavailable => {
                scheduler.decide(request.client, now, Fate::Undecided)
            }
        }
        self.poll(node_client, scheduler);
    }

    fn handle_message(&mut self, message: Message, scheduler: &mut Scheduler<Message>) {
        match message {
            Message::Request(lease_request) => self.grant(lease_request, scheduler),
            Message::Reply(lease_request, answer) => {
                self.handle_grant(lease_request, &answer, scheduler);
            }
            Message::WaitEnds(node_client) => self.decide_waiting(node_client, scheduler),
        }
    }

    /// Counts them at the end, when every lease has expired or is of no use.
    fn stranded(&self) -> u64 {
        self.leased.saturating_sub(self.spent)
    }
}
