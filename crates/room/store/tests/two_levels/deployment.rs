//! Two data centers of two nodes each below one root, and visitors who send requests to any node.

use std::collections::BTreeMap;

use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, Incarnation, NodeId, VisitorId};
use anteroom_room::ledger::{LeaseTerms, Ledger};
use anteroom_room::record_view::RecordView;
use anteroom_room::room::check_in::CheckInRequest;
use anteroom_room::room::request_flow::Intent;
use anteroom_room::room::{
    Capacity, CheckIn, Predecessors, Room, RoomIdentity, TurnWait, Verdict, Visit,
};
use anteroom_room::rules::{Limits, Rules};
use anteroom_room::sync::{Reply, SyncRequest};
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Minute, Timestamp};

use super::record::read;

pub(crate) const DATA_CENTERS: usize = 2;
/// Nodes of all data centers; node n is in data center n / 2.
pub(crate) const NODES: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Visit(usize),
    VisitWaiting(usize, usize),
    Returns(usize, usize),
    LogOut(usize, usize),
    Send(usize),
    /// Delivers the request at this index to its local ledger; with `true` it stays in flight.
    DeliverRequest(usize, bool),
    /// Delivers the reply at this index to its node.
    DeliverReply(usize, bool),
    LoseRequest(usize),
    /// Completes a whole sync of a node.
    Sync(usize),
    SendUp(usize),
    DeliverRequestUp(usize, bool),
    DeliverReplyUp(usize, bool),
    /// Completes a whole sync of a data center with the root.
    SyncUp(usize),
    TimePasses(DurationMs),
    CrashNode(usize),
    WipeLocal(usize),
    WipeRoot,
}

pub(crate) struct Deployment {
    rules: Rules,
    rooms: Vec<Room>,
    owners: Vec<NodeId>,
    local: Vec<Ledger>,
    root: Ledger,
    now: Timestamp,
    /// Clocks of the nodes for the record of their data center.
    local_clocks: Vec<RecordView>,
    /// Clock for the root's record at the node of each data center that carries its requests.
    root_clocks: Vec<RecordView>,
    incarnations: u64,
    ids: u64,
    requests: Vec<SyncRequest>,
    replies: Vec<(NodeId, Reply)>,
    requests_up: Vec<(usize, SyncRequest)>,
    /// Replies of the root, with the incarnation of the ledger that sent the request.
    replies_up: Vec<(usize, Incarnation, Reply)>,
    waiting: Vec<Ticket>,
    accepted: Vec<Ticket>,
    inside: BTreeMap<VisitorId, Timestamp>,
    admissions: BTreeMap<Minute, u32>,
    pub(crate) problem: Option<String>,
}

fn data_center(index: usize) -> DataCenterId {
    DataCenterId(1 + u32::try_from(index).unwrap_or(0))
}

impl Deployment {
    pub(crate) fn new(total: u32, rate: u32, session: DurationMs) -> Self {
        let rules = Rules {
            limits: Limits {
                total_active_users: total,
                new_users_per_minute: rate,
            },
            session_duration: session,
            ..Rules::default()
        };
        let now = Timestamp(1_694_432_754_000);
        let mut root = Ledger::found_empty(Incarnation(1), LeaseTerms::ROOT);
        root.assume_empty(LeaseTerms::ROOT);
        let mut deployment = Self {
            rules,
            rooms: Vec::new(),
            owners: Vec::new(),
            local: Vec::new(),
            root,
            now,
            local_clocks: vec![RecordView::default(); NODES],
            root_clocks: vec![RecordView::default(); DATA_CENTERS],
            incarnations: 1,
            ids: 0,
            requests: Vec::new(),
            replies: Vec::new(),
            requests_up: Vec::new(),
            replies_up: Vec::new(),
            waiting: Vec::new(),
            accepted: Vec::new(),
            inside: BTreeMap::new(),
            admissions: BTreeMap::new(),
            problem: None,
        };
        for index in 0..DATA_CENTERS {
            let ledger = deployment.empty_local(index);
            deployment.local.push(ledger);
        }
        for node in 0..NODES {
            let (room, id) = deployment.new_room(node);
            deployment.rooms.push(room);
            deployment.owners.push(id);
        }
        deployment
    }

    fn new_incarnation(&mut self) -> u64 {
        self.incarnations += 1;
        // Spread over all bits like random ones: some code compares only half of the bits.
        Incarnation::first(self.incarnations.wrapping_mul(0x9e37_79b9_7f4a_7c15)).0
    }

    fn empty_local(&mut self, index: usize) -> Ledger {
        Ledger::below_root(Incarnation(self.new_incarnation()), data_center(index))
    }

    fn new_room(&mut self, node: usize) -> (Room, NodeId) {
        let id = NodeId(self.new_incarnation());
        let identity = RoomIdentity {
            node: id,
            process: id,
            is_alone: false,
            data_center: data_center(node / 2),
            lottery_key: LotteryKey([1; 16]),
        };
        (
            Room::new(
                identity,
                Predecessors::default(),
                self.rules,
                Capacity::default(),
                self.now,
            ),
            id,
        )
    }

    pub(crate) fn perform(&mut self, step: Step) {
        match step {
            Step::Visit(node) => self.visit(node, None),
            Step::VisitWaiting(node, at) => {
                if let Some(&ticket) = pick(&self.waiting, at) {
                    self.visit(node, Some(ticket));
                }
            }
            Step::Returns(node, at) => {
                if let Some(&ticket) = pick(&self.accepted, at) {
                    self.return_visit(node, ticket);
                }
            }
            Step::LogOut(node, at) => self.log_out(node, at),
            Step::Send(node) => {
                let request = self.poll(node);
                self.requests.push(request);
            }
            Step::DeliverRequest(at, again) => {
                if let Some(request) = take(&mut self.requests, at, again) {
                    let reply = self.sync_local(&request);
                    self.replies.push((request.child, reply));
                }
            }
            Step::DeliverReply(at, again) => {
                if let Some((child, reply)) = take(&mut self.replies, at, again)
                    && let Some(node) = self.owners.iter().position(|owner| *owner == child)
                {
                    self.local_clocks[node].handle_reply(&reply, self.now);
                    self.rooms[node].handle_reply(reply, self.now);
                }
            }
            Step::LoseRequest(at) => drop(take(&mut self.requests, at, false)),
            Step::Sync(node) => self.sync(node),
            Step::SendUp(dc) => {
                let request = self.poll_up(dc);
                self.requests_up
                    .extend(request.map(|request| (dc, request)));
            }
            Step::DeliverRequestUp(at, again) => {
                if let Some((dc, request)) = take(&mut self.requests_up, at, again) {
                    let reply = self.sync_root(&request);
                    self.replies_up
                        .push((dc, Incarnation(request.child.0), reply));
                }
            }
            Step::DeliverReplyUp(at, again) => {
                if let Some((dc, incarnation, reply)) = take(&mut self.replies_up, at, again) {
                    self.deliver_reply_up(dc, incarnation, reply);
                }
            }
            Step::SyncUp(dc) => self.sync_up(dc),
            Step::TimePasses(span) => self.now = self.now + span,
            Step::CrashNode(node) => {
                let (room, id) = self.new_room(node);
                self.rooms[node] = room;
                self.local_clocks[node] = RecordView::default();
                self.owners[node] = id;
            }
            Step::WipeLocal(dc) => self.local[dc] = self.empty_local(dc),
            Step::WipeRoot => self.wipe_root(),
        }
        self.check();
    }

    /// Empties the global store. A data center that knew its ledger syncs at once.
    fn wipe_root(&mut self) {
        let knows = |ledger: &Ledger| {
            ledger
                .upstream()
                .is_some_and(|up| up.applied_reply.is_some())
        };
        let Some(witness) = self.local.iter().position(knows) else {
            return;
        };
        let incarnation = Incarnation(self.new_incarnation());
        self.root = Ledger::found_empty(incarnation, LeaseTerms::ROOT);
        self.sync_up(witness);
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
        for ledger in self.local.iter().chain([&self.root]) {
            let mut rebuilt = ledger.clone();
            rebuilt.rebuild_sums();
            let stats = |l: &Ledger| (l.active(), l.seats_leased(), l.waiting_total());
            if stats(ledger) != stats(&rebuilt) {
                self.problem = Some("sums differ from their parts".to_owned());
            }
        }
    }

    fn visit(&mut self, node: usize, ticket: Option<Ticket>) {
        self.ids += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.ids.to_le_bytes());
        let mut visit = Visit {
            is_poll: false,
            visitor: ticket.map_or(VisitorId(id), |ticket| ticket.visitor),
            ticket,
            may_sync: true,
            turn_wait: TurnWait::No,
            gets_page: false,
        };
        let mut verdict = self.rooms[node].handle_visit(visit, self.now);
        if verdict == Verdict::SyncWithParent {
            self.sync(node);
            verdict = self.rooms[node].handle_visit(visit, self.now);
        }
        if verdict == Verdict::SyncWithParent {
            self.sync_up(node / 2);
            self.sync(node);
            visit.may_sync = false;
            verdict = self.rooms[node].handle_visit(visit, self.now);
        }
        match verdict {
            Verdict::Admit(ticket) => {
                if ticket.accepted_at == Some(self.now) {
                    *self.admissions.entry(self.now.minute()).or_insert(0) += 1;
                    self.waiting.retain(|t| t.visitor != ticket.visitor);
                }
                self.note_admission(ticket);
            }
            Verdict::Queue(Some(ticket), _) => self.waiting.push(ticket),
            other => self.problem = Some(format!("unexpected verdict {other:?}")),
        }
    }

    fn return_visit(&mut self, node: usize, ticket: Ticket) {
        let mut visit = CheckInRequest {
            intent: Intent::Enter,
            ticket,
            is_navigation: true,
            may_sync: true,
        };
        let mut done = self.rooms[node].handle_check_in(visit, self.now);
        if done == CheckIn::SyncWithParent {
            self.sync(node);
            done = self.rooms[node].handle_check_in(visit, self.now);
        }
        if done == CheckIn::SyncWithParent {
            self.sync_up(node / 2);
            self.sync(node);
            visit.may_sync = false;
            done = self.rooms[node].handle_check_in(visit, self.now);
        }
        let ends_at = ticket.seats.ends_at().expect("it is an accepted ticket");
        match done {
            CheckIn::Renewed(ticket) => self.note_admission(ticket),
            CheckIn::Pass => {}
            CheckIn::Over if ends_at <= self.now => {}
            other => self.problem = Some(format!("{other:?} for a ticket that runs")),
        }
    }

    fn log_out(&mut self, node: usize, at: usize) {
        let Some(&ticket) = pick(&self.accepted, at) else {
            return;
        };
        if self.rooms[node].handle_revoke(ticket, self.now) {
            // This visitor does not return with its ticket.
            self.inside.remove(&ticket.visitor);
            self.accepted.retain(|t| t.visitor != ticket.visitor);
            self.waiting.retain(|t| t.visitor != ticket.visitor);
            self.sync(node);
        }
    }

    fn note_admission(&mut self, ticket: Ticket) {
        let end = ticket
            .seats
            .ends_at()
            .expect("an accepted ticket has a seat");
        let known = self.inside.entry(ticket.visitor).or_insert(end);
        *known = end.max(*known);
        self.accepted.push(ticket);
    }

    fn sync(&mut self, node: usize) {
        for _ in 0..2 {
            let request = self.poll(node);
            let reply = self.sync_local(&request);
            let is_void = matches!(reply, Reply::Void { .. });
            self.local_clocks[node].handle_reply(&reply, self.now);
            self.rooms[node].handle_reply(reply, self.now);
            if !is_void {
                break;
            }
        }
    }

    fn poll(&mut self, node: usize) -> SyncRequest {
        let mut request = self.rooms[node].poll_sync(self.now);
        self.local_clocks[node].stamp(&mut request, self.now);
        request
    }

    fn sync_local(&mut self, request: &SyncRequest) -> Reply {
        let dc = usize::try_from(request.data_center.0 - 1).expect("it is small");
        let mut ledger = read(&self.local[dc]);
        let now = ledger.time_of(request);
        let reply = ledger.handle_sync(request.clone(), LeaseTerms::default(), now);
        self.local[dc] = read(&ledger);
        reply
    }

    /// Returns the next request to the root; `None` before the first sync of a node.
    fn poll_up(&mut self, dc: usize) -> Option<SyncRequest> {
        let now = self.local[dc].as_of();
        let mut request = self.local[dc].poll_upstream(now)?;
        self.root_clocks[dc].stamp(&mut request, self.now);
        self.local[dc] = read(&self.local[dc]);
        Some(request)
    }

    fn sync_root(&mut self, request: &SyncRequest) -> Reply {
        // As if its sender had lost its races since another one applied it.
        if let Some(reply) = self.root.recorded_reply(request) {
            return reply;
        }
        let mut ledger = read(&self.root);
        let now = ledger.time_of(request);
        let reply = ledger.handle_sync(request.clone(), LeaseTerms::ROOT, now);
        self.root = read(&ledger);
        // A data center whose request another one applied works out the reply to it.
        let recorded = ledger.recorded_reply(request);
        if matches!(reply, Reply::Granted(_)) && recorded.as_ref() != Some(&reply) {
            self.problem = Some(format!("{recorded:?} is recorded, and not {reply:?}"));
        }
        reply
    }

    fn deliver_reply_up(&mut self, dc: usize, incarnation: Incarnation, reply: Reply) {
        self.root_clocks[dc].handle_reply(&reply, self.now);
        // Production code knows as well for which record the reply is.
        if self.local[dc].incarnation() == incarnation {
            let now = self.local[dc].as_of();
            self.local[dc].handle_upstream(reply, now);
            self.local[dc] = read(&self.local[dc]);
        }
    }

    fn sync_up(&mut self, dc: usize) {
        for _ in 0..2 {
            let Some(request) = self.poll_up(dc) else {
                break;
            };
            let reply = self.sync_root(&request);
            let is_void = matches!(reply, Reply::Void { .. });
            self.deliver_reply_up(dc, Incarnation(request.child.0), reply);
            if !is_void {
                break;
            }
        }
    }
}

fn pick<T>(all: &[T], at: usize) -> Option<&T> {
    all.get(at.checked_rem(all.len())?)
}

fn take<T: Clone>(all: &mut Vec<T>, at: usize, again: bool) -> Option<T> {
    let at = at.checked_rem(all.len())?;
    if again {
        all.get(at).cloned()
    } else {
        Some(all.remove(at))
    }
}
