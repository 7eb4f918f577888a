//! A node has decided: the judge looks at it, and the visitor goes on.

use anteroom_room::decision::QueuePosition;
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};

use super::Simulation;
use super::event::Event;
use super::slab::Key;
use super::visiting::code_of;
use crate::crowd::{CopyUse, Phase, TicketCopy};
use crate::deployment::node::{NodeReply, Request, Role, Sent, VisitorState};
use crate::measure::Entry;
use crate::rng::Draw;

/// How late a question comes after the interval that it was told: the network and a busy phone.
const LATE_FROM: DurationMs = DurationMs(20);
const LATE_TO: DurationMs = DurationMs(120);
/// A second tab is opened so long after the first answer.
const TAB_FROM: DurationMs = DurationMs(200);
const TAB_TO: DurationMs = DurationMs(3_000);
/// Where no wait is told, those who will not be there leave within this.
const NO_SHOW_WITHIN: DurationMs = DurationMs::from_secs(60);

impl Simulation {
    pub(super) fn answer(
        &mut self,
        request: &Request,
        said: NodeReply,
        met_as: VisitorState,
        node_now: Timestamp,
    ) {
        self.digest.add(self.now.0);
        let end = ticket_of(&said).and_then(|ticket| ticket.seats.ends_at());
        self.digest
            .add(code_of(&said, met_as) ^ (u64::from(request.node) << 8));
        self.digest.add(end.map_or(0, |end| end.0));
        self.trace_answer(request, &said, met_as);
        self.judge_answer(request, &said, met_as, node_now);
        match request.role {
            Role::Page => self.follow_page(request, said),
            Role::Part => self.take_ticket(request.owner, &said),
            Role::Tab => {
                self.take_ticket(request.owner, &said);
                self.drop_copy(request.owner);
            }
            Role::Replay => self.drop_copy(request.owner),
        }
    }

    /// A browser's answer to something that is not its main page.
    fn take_ticket(&mut self, owner: Key, said: &NodeReply) {
        let now = self.now;
        if let (Some(ticket), Some(visitor)) = (ticket_of(said), self.crowd.visitors.get_mut(owner))
        {
            visitor.adopt(*ticket, now);
        }
    }

    fn follow_page(&mut self, request: &Request, said: NodeReply) {
        let Some(visitor) = self.crowd.visitors.get_mut(request.owner) else {
            return;
        };
        if visitor.phase == Phase::ArrivalKind {
            self.measure
                .handle_first_answer(self.now.since(request.arrived_at));
            if matches!(said, NodeReply::Queue(..)) {
                self.measure
                    .handle_queued_newcomer(&mut self.judge, self.rules.pacing, self.now);
            }
        }
        match said {
            NodeReply::Queue(Some(ticket), place) => self.wait(request.owner, ticket, &place),
            NodeReply::Queue(None, _) => self.part(request.owner),
            NodeReply::Admit(ticket) | NodeReply::Renewed(ticket) => {
                self.look(request, Some(ticket))
            }
            NodeReply::Pass | NodeReply::AskParent | NodeReply::TakeNumber(_) => {
                self.look(request, None)
            }
        }
    }

    /// A visitor is told to wait.
    fn wait(&mut self, key: Key, ticket: Ticket, place: &QueuePosition) {
        let now = self.now;
        let Some(visitor) = self.crowd.visitors.get_mut(key) else {
            return;
        };
        if visitor.phase == Phase::Inside {
            let patience = visitor.leaves_at.since(visitor.arrived_at);
            visitor.leaves_at = now + patience;
            visitor.arrived_at = now;
        }
        if visitor.phase != Phase::Waiting {
            visitor.phase = Phase::Waiting;
            let (data_center, is_followed) = (visitor.data_center, visitor.keeps_cookies);
            self.measure
                .handle_join(data_center, visitor.arrived_at, is_followed);
            if visitor.is_no_show {
                let told = place.wait.map_or(NO_SHOW_WITHIN, |wait| wait.middle);
                visitor.stops_at = now + visitor.lot.between(DurationMs::ZERO, told);
            }
        }
        let is_first = visitor.ticket.is_none();
        if visitor.keeps_cookies {
            visitor.ticket = Some(ticket);
        }
        let late = visitor.lot.between(LATE_FROM, LATE_TO);
        let asks_at = now + place.ask_after.unwrap_or(NO_SHOW_WITHIN) + late;
        let next = asks_at.min(visitor.leaves_at);
        self.plan(next, Event::Asks { visitor: key });
        if is_first {
            self.open_tab(key);
        }
    }

    /// A visitor sees a page.
    fn look(&mut self, request: &Request, ticket: Option<Ticket>) {
        let (key, now) = (request.owner, self.now);
        let Some(visitor) = self.crowd.visitors.get_mut(key) else {
            return;
        };
        let before = visitor.phase;
        if before != Phase::Inside {
            let entry = Entry {
                data_center: visitor.data_center,
                arrived_at: visitor.arrived_at,
                has_waited: before == Phase::Waiting,
                keeps_cookies: visitor.keeps_cookies,
            };
            if entry.has_waited {
                self.measure
                    .handle_part(entry.data_center, entry.arrived_at, entry.keeps_cookies);
            }
            self.measure.handle_entry(entry, now);
            visitor.phase = Phase::Inside;
        }
        let is_first = visitor.ticket.is_none();
        let mut exchanged = None;
        if let Some(ticket) = ticket.filter(|_| visitor.keeps_cookies) {
            let old = visitor.ticket.replace(ticket);
            exchanged = old.filter(|_| before == Phase::Waiting && visitor.replays);
        }
        visitor.pages_left = visitor.pages_left.saturating_sub(1);
        let (pages_left, node) = (visitor.pages_left, visitor.node);
        if let Some(ticket) = exchanged {
            self.plan_replay(key, ticket, node, CopyUse::Replay);
        }
        if is_first {
            self.open_tab(key);
        }
        self.load_parts(request);
        if pages_left == 0 {
            self.leave(key);
        } else if let Some(visitor) = self.crowd.visitors.get_mut(key) {
            let think_time = self.crowd.behaviour.think_time;
            let at = now + visitor.lot.exponential_span(think_time);
            self.plan(at, Event::Asks { visitor: key });
        }
    }

    /// What a page loads, at the same moment and with the same cookie.
    fn load_parts(&mut self, page: &Request) {
        for _ in 0..self.crowd.behaviour.parallel_requests {
            let Some(visitor) = self.crowd.visitors.get_mut(page.owner) else {
                return;
            };
            let Some(ticket) = visitor.ticket.filter(|_| visitor.keeps_cookies) else {
                return;
            };
            let mut node = page.node;
            if visitor.lot.chance(self.crowd.behaviour.changes_node) {
                let home = self.deployment.nodes[node as usize].data_center;
                let plan = &self.deployment.data_centers[home as usize];
                let other = plan.first_node + visitor.lot.below(plan.plan.nodes);
                let met = &self.deployment.nodes[other as usize];
                if met.is_open() && met.paused_until <= self.now {
                    node = other;
                }
            }
            let sent = Sent {
                role: Role::Part,
                owner: page.owner,
                ticket: Some(ticket),
                fresh: visitor.fresh_id(),
            };
            let met = &self.deployment.nodes[node as usize];
            let part = Request::new(sent, (node, met), self.now);
            self.events += 1;
            self.decide(part);
        }
    }

    /// A visitor has seen what it wanted to see.
    fn leave(&mut self, key: Key) {
        let Some(visitor) = self.crowd.visitors.get_mut(key) else {
            return;
        };
        let (node, logs_out, replays) = (visitor.node, visitor.logs_out, visitor.replays);
        let ticket = visitor.ticket.filter(|ticket| ticket.accepted_at.is_some());
        if let Some(ticket) = ticket {
            let met = &self.deployment.nodes[node as usize];
            let is_there = met.is_open() && met.paused_until <= self.now;
            if logs_out && is_there {
                self.log_out(key, ticket, node);
            }
            if replays {
                let use_as = if logs_out {
                    CopyUse::LogOut
                } else {
                    CopyUse::Replay
                };
                self.plan_replay(key, ticket, node, use_as);
                self.plan_replay(key, ticket, node, CopyUse::Replay);
            }
        }
        self.part(key);
    }

    /// Some time within a session or so an old ticket is sent again.
    fn plan_replay(&mut self, owner: Key, ticket: Ticket, node: u32, use_as: CopyUse) {
        let Some(visitor) = self.crowd.visitors.get_mut(owner) else {
            return;
        };
        let half = DurationMs(self.rules.session_duration.0 / 2);
        let at = self.now + visitor.lot.exponential_span(half);
        let home = self.deployment.nodes[node as usize].data_center;
        let plan = &self.deployment.data_centers[home as usize];
        let node = plan.first_node + visitor.lot.below(plan.plan.nodes);
        let copy = TicketCopy {
            ticket,
            owner,
            node,
            use_as,
        };
        self.plan_copy(copy, at);
    }

    /// A second tab asks twice, with the ticket that the visitor has now.
    fn open_tab(&mut self, key: Key) {
        let think_time = self.crowd.behaviour.think_time;
        let Some(visitor) = self.crowd.visitors.get_mut(key) else {
            return;
        };
        let Some(ticket) = visitor.ticket.filter(|_| visitor.opens_tab) else {
            return;
        };
        let first = self.now + visitor.lot.between(TAB_FROM, TAB_TO);
        let second = first + visitor.lot.exponential_span(think_time);
        for at in [first, second] {
            let copy = TicketCopy {
                ticket,
                owner: key,
                node: self.crowd.visitors.get_mut(key).map_or(0, |v| v.node),
                use_as: CopyUse::Tab,
            };
            self.plan_copy(copy, at);
        }
    }

    fn trace_answer(&mut self, request: &Request, said: &NodeReply, met_as: VisitorState) {
        if self.trace.is_none() {
            return;
        }
        let inside = self.judge.seats.inside(self.now);
        let limit = self.judge.seats.limit();
        let starts_at = self.scenario.starts_at;
        let (node, visitor, role) = (request.node, request.owner.index, request.role);
        let until = |ticket: &Ticket| {
            let end = ticket.seats.ends_at().unwrap_or_default();
            end.since(starts_at)
        };
        let what = match said {
            NodeReply::Admit(t) => format!("admits visitor {visitor} until {}", until(t)),
            NodeReply::Renewed(t) => format!("prolongs visitor {visitor} until {}", until(t)),
            NodeReply::Queue(_, place) => {
                let since = place.arrived_at.since(starts_at);
                let after = place.ask_after.unwrap_or_default();
                let reason = place.reason.name();
                format!(
                    "queues visitor {visitor} ({reason}), there since {since}, to ask in {after}"
                )
            }
            _ => format!("passes visitor {visitor}"),
        };
        self.note(|deployment| {
            let name = deployment.name_of(node);
            format!("{name} {what}; {role:?}, met as {met_as:?} ({inside} of {limit} inside)")
        });
    }
}

pub(super) fn ticket_of(said: &NodeReply) -> Option<&Ticket> {
    match said {
        NodeReply::Admit(ticket)
        | NodeReply::Renewed(ticket)
        | NodeReply::Queue(Some(ticket), _) => Some(ticket),
        _ => None,
    }
}
