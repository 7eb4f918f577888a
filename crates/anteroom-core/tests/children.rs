//! Several nodes on one ledger: messages that are late, doubled, lost or out of order, nodes that
//! pause past their lease, die and come back. Never above a limit, never counted too low.

use std::collections::BTreeMap;

use anteroom_core::hash::LotteryKey;
use anteroom_core::id::{DataCenterId, NodeId, VisitorId};
use anteroom_core::ledger::{Ledger, LendingTerms};
use anteroom_core::room::check_in::Return;
use anteroom_core::room::{Capacity, CheckIn, Room, RoomIdentity, Verdict, Visit};
use anteroom_core::rules::{Limits, Rules};
use anteroom_core::sync::{Reply, SyncRequest};
use anteroom_core::ticket::Ticket;
use anteroom_core::time::{Millis, Minute, Span};
use proptest::prelude::*;

/// Nodes on the ledger: a pair that quarrels, and one that watches.
const NODES: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    Visit(usize),
    WaitingAsks(usize, usize),
    Returns(usize, usize),
    LogOut(usize, usize),
    Send(usize),
    /// The ledger hears the message in flight at this place; it may stay in flight and come again.
    Hear(usize, bool),
    /// A node hears the reply in flight at this place.
    Answer(usize, bool),
    Lose(usize),
    /// The usual case: a round trip without trouble.
    Sync(usize),
    TimePasses(Span),
    Die(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0..NODES;
    prop_oneof![
        8 => node.clone().prop_map(Step::Visit),
        4 => (node.clone(), 0usize..32).prop_map(|(n, at)| Step::WaitingAsks(n, at)),
        8 => (node.clone(), 0usize..32).prop_map(|(n, at)| Step::Returns(n, at)),
        1 => (node.clone(), 0usize..32).prop_map(|(n, at)| Step::LogOut(n, at)),
        4 => node.clone().prop_map(Step::Send),
        4 => (0usize..8, any::<bool>()).prop_map(|(at, stays)| Step::Hear(at, stays)),
        4 => (0usize..8, any::<bool>()).prop_map(|(at, stays)| Step::Answer(at, stays)),
        1 => (0usize..8).prop_map(Step::Lose),
        10 => node.clone().prop_map(Step::Sync),
        8 => (1u64..2_000).prop_map(|ms| Step::TimePasses(Span(ms))),
        1 => (2_000u64..30_000).prop_map(|ms| Step::TimePasses(Span(ms))),
        1 => node.prop_map(Step::Die),
    ]
}

struct World {
    rules: Rules,
    rooms: Vec<Room>,
    ledger: Ledger,
    now: Millis,
    lives: u64,
    ids: u64,
    requests: Vec<SyncRequest>,
    replies: Vec<(NodeId, Reply)>,
    owners: Vec<NodeId>,
    waiting: Vec<Ticket>,
    accepted: Vec<Ticket>,
    inside: BTreeMap<VisitorId, Millis>,
    admissions: BTreeMap<Minute, u32>,
    problem: Option<String>,
}

impl World {
    fn new(total: u32, rate: u32, session: Span) -> Self {
        let rules = Rules {
            limits: Limits {
                total_active_users: total,
                new_users_per_minute: rate,
            },
            session_duration: session,
            ..Rules::default()
        };
        let mut world = Self {
            rules,
            rooms: Vec::new(),
            ledger: Ledger::new(),
            now: Millis(1_694_432_754_000),
            lives: 0,
            ids: 0,
            requests: Vec::new(),
            replies: Vec::new(),
            owners: Vec::new(),
            waiting: Vec::new(),
            accepted: Vec::new(),
            inside: BTreeMap::new(),
            admissions: BTreeMap::new(),
            problem: None,
        };
        for _ in 0..NODES {
            let (room, id) = world.new_room();
            world.rooms.push(room);
            world.owners.push(id);
        }
        world
    }

    fn new_room(&mut self) -> (Room, NodeId) {
        self.lives += 1;
        let node = NodeId(self.lives);
        let identity = RoomIdentity {
            node,
            data_center: DataCenterId(1),
            lottery_key: LotteryKey([1; 16]),
        };
        (Room::new(identity, self.rules, Capacity::default()), node)
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Visit(node) => self.visit(node, None),
            Step::WaitingAsks(node, at) => {
                if !self.waiting.is_empty() {
                    let ticket = self.waiting[at % self.waiting.len()];
                    self.visit(node, Some(ticket));
                }
            }
            Step::Returns(node, at) => {
                if !self.accepted.is_empty() {
                    self.come_back(node, self.accepted[at % self.accepted.len()]);
                }
            }
            Step::LogOut(node, at) => {
                if !self.accepted.is_empty() {
                    let ticket = self.accepted[at % self.accepted.len()];
                    if self.rooms[node].handle_revoke(ticket, self.now) {
                        // Other nodes refuse it as soon as they hear of it; this visitor keeps its
                        // word and does not come back.
                        self.inside.remove(&ticket.visitor);
                        self.accepted.retain(|t| t.visitor != ticket.visitor);
                        self.waiting.retain(|t| t.visitor != ticket.visitor);
                        self.sync(node);
                    }
                }
            }
            Step::Send(node) => {
                let request = self.rooms[node].poll_sync(self.now);
                self.requests.push(request);
            }
            Step::Hear(at, stays) => {
                if !self.requests.is_empty() {
                    let at = at % self.requests.len();
                    let request = self.requests[at].clone();
                    if !stays {
                        self.requests.remove(at);
                    }
                    let reply = self.tell(&request);
                    self.replies.push((request.child, reply));
                }
            }
            Step::Answer(at, stays) => {
                if !self.replies.is_empty() {
                    let at = at % self.replies.len();
                    let (child, reply) = self.replies[at].clone();
                    if !stays {
                        self.replies.remove(at);
                    }
                    if let Some(node) = self.owners.iter().position(|owner| *owner == child) {
                        self.rooms[node].handle_reply(reply, self.now);
                    }
                }
            }
            Step::Lose(at) => {
                if !self.requests.is_empty() {
                    let at = at % self.requests.len();
                    self.requests.remove(at);
                }
            }
            Step::Sync(node) => self.sync(node),
            Step::TimePasses(span) => self.now = self.now + span,
            Step::Die(node) => {
                let (room, id) = self.new_room();
                self.rooms[node] = room;
                self.owners[node] = id;
            }
        }
        self.check();
    }

    fn check(&mut self) {
        let limits = self.rules.limits;
        let inside = self.inside.values().filter(|end| **end > self.now).count();
        if inside > limits.total_active_users as usize {
            self.problem = Some(format!("{inside} inside of {}", limits.total_active_users));
        }
        let admitted = self.admissions.get(&self.now.minute()).copied();
        if admitted.is_some_and(|count| count > limits.new_users_per_minute) {
            self.problem = Some(format!("{admitted:?} admitted in a minute"));
        }
    }

    fn visit(&mut self, node: usize, ticket: Option<Ticket>) {
        self.ids += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.ids.to_le_bytes());
        let mut visit = Visit {
            visitor: ticket.map_or(VisitorId(id), |ticket| ticket.visitor),
            ticket,
            may_ask_parent: true,
            gets_page: false,
        };
        let mut verdict = self.rooms[node].handle_visit(visit, self.now);
        if verdict == Verdict::AskParent {
            self.sync(node);
            visit.may_ask_parent = false;
            verdict = self.rooms[node].handle_visit(visit, self.now);
        }
        match verdict {
            Verdict::Admit(ticket) => {
                if ticket.accepted_at == Some(self.now) {
                    *self.admissions.entry(self.now.minute()).or_insert(0) += 1;
                    // The same ticket may be exchanged once at each node; both seats are counted.
                    self.waiting.retain(|t| t.visitor != ticket.visitor);
                }
                self.take_note(ticket);
            }
            Verdict::Queue(Some(ticket), _) => self.waiting.push(ticket),
            other => self.problem = Some(format!("unexpected verdict {other:?}")),
        }
    }

    fn come_back(&mut self, node: usize, ticket: Ticket) {
        let mut visit = Return {
            ticket,
            is_navigation: true,
            may_ask_parent: true,
        };
        let mut done = self.rooms[node].handle_check_in(visit, self.now);
        if done == CheckIn::AskParent {
            self.sync(node);
            visit.may_ask_parent = false;
            done = self.rooms[node].handle_check_in(visit, self.now);
        }
        if let CheckIn::Renewed(ticket) = done {
            self.take_note(ticket);
        }
    }

    fn take_note(&mut self, ticket: Ticket) {
        let end = ticket
            .seats
            .ends_at()
            .expect("an accepted ticket has a seat");
        let known = self.inside.entry(ticket.visitor).or_insert(end);
        *known = end.max(*known);
        self.accepted.push(ticket);
    }

    fn sync(&mut self, node: usize) {
        let request = self.rooms[node].poll_sync(self.now);
        let reply = self.tell(&request);
        self.rooms[node].handle_reply(reply, self.now);
    }

    fn tell(&mut self, request: &SyncRequest) -> Reply {
        let ledger = std::mem::take(&mut self.ledger);
        let (ledger, reply) = ledger.sync(request, LendingTerms::default(), self.now);
        self.ledger = ledger;
        reply
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn limits_hold_over_several_nodes_and_any_order_of_messages(
        total in 1u32..8,
        rate in 1u32..30,
        session in prop_oneof![Just(1u64), Just(5), Just(60), Just(300)],
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut world = World::new(total, rate, Span::from_secs(session));
        for step in steps {
            world.perform(step);
            if let Some(problem) = world.problem.take() {
                return Err(TestCaseError::fail(problem));
            }
        }
    }
}
