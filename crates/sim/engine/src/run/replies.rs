//! Handles replies of nodes: the checkers see them, and the visitor goes on.

use anteroom_room::queue_position::QueuePosition;
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};

use super::Simulation;
use super::event::Event;
use super::slab::Key;
use super::visiting::code_of;
use crate::deployment::node::{NodeReply, Request, Role, Sent, VisitorState};
use crate::measure::{Announcement, Entry};
use crate::rng::Draw;
use crate::visitors::{CopyUse, Phase, THROTTLED_TO, TicketCopy};

/// Delay of a poll after its interval: the network and a busy phone.
const LATE_FROM: DurationMs = DurationMs(20);
const LATE_TO: DurationMs = DurationMs(120);
/// Time between the first response and a second tab.
const TAB_FROM: DurationMs = DurationMs(200);
const TAB_TO: DurationMs = DurationMs(3_000);
/// Time within which no-shows leave where a response names no wait.
const NO_SHOW_WITHIN: DurationMs = DurationMs::from_secs(60);

impl Simulation {
    pub(super) fn handle_reply(
        &mut self,
        request: &Request,
        reply: NodeReply,
        met_as: VisitorState,
        node_now: Timestamp,
    ) {
        self.digest.add(self.now.0);
        let end = ticket_of(&reply).and_then(|ticket| ticket.seats.ends_at());
        self.digest
            .add(code_of(&reply, met_as) ^ (u64::from(request.node) << 8));
        self.digest.add(end.map_or(0, |end| end.0));
        self.trace_reply(request, &reply, met_as);
        self.check_response(request, &reply, met_as, node_now);
        match request.role {
            Role::Page => self.follow_page(request, reply),
            Role::Poll | Role::Extension => self.follow_poll(request, reply),
            Role::Subresource => self.take_ticket(request.owner, &reply),
            Role::Tab => {
                self.take_ticket(request.owner, &reply);
                self.drop_copy(request.owner);
            }
            Role::Replay => self.drop_copy(request.owner),
        }
    }

    /// Hands a browser a response other than its main page.
    fn take_ticket(&mut self, owner: Key, reply: &NodeReply) {
        let now = self.now;
        let visitor = self.population.visitors.get_mut(owner);
        if let (Some(ticket), Some(visitor)) = (ticket_of(reply), visitor) {
            visitor.adopt(*ticket, now);
        }
    }

    fn follow_page(&mut self, request: &Request, reply: NodeReply) {
        let Some(visitor) = self.population.visitors.get_mut(request.owner) else {
            return;
        };
        if visitor.phase == Phase::Arriving {
            self.measure
                .handle_first_response(self.now.since(request.arrived_at));
            if matches!(reply, NodeReply::Queue(..)) {
                self.measure.handle_queued_newcomer(
                    &mut self.checkers,
                    self.rules.pacing,
                    self.now,
                );
            }
        }
        match reply {
            NodeReply::Queue(Some(ticket), position) => self.wait(request.owner, ticket, &position),
            NodeReply::Queue(None, _) => self.depart(request.owner),
            NodeReply::Admit(ticket) | NodeReply::Renewed(ticket) => {
                self.show_page(request, Some(ticket))
            }
            NodeReply::Pass
            | NodeReply::MayCome
            | NodeReply::AskParent
            | NodeReply::WaitForTurn
            | NodeReply::TakeNumber(_) => self.show_page(request, None),
        }
    }

    fn follow_poll(&mut self, request: &Request, reply: NodeReply) {
        let ticket = match reply {
            NodeReply::Queue(..) => return self.follow_page(request, reply),
            NodeReply::Admit(ticket) | NodeReply::Renewed(ticket) => Some(ticket),
            NodeReply::MayCome => {
                let late = DurationMs(100);
                if let Some(visitor) = self.population.visitors.get_mut(request.owner) {
                    visitor.is_away = false;
                }
                let visitor = request.owner;
                return self.plan(self.now + late, Event::SendsRequest { visitor });
            }
            NodeReply::Pass
            | NodeReply::AskParent
            | NodeReply::WaitForTurn
            | NodeReply::TakeNumber(_) => None,
        };
        self.hold_turn(request.owner, ticket);
    }

    /// Plans what a visitor with a turn does. The first time it may come too late, or ask for more
    /// time.
    fn hold_turn(&mut self, key: Key, ticket: Option<Ticket>) {
        let now = self.now;
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        if visitor.phase == Phase::Waiting {
            visitor.phase = Phase::Holding;
            let (data_center, arrived_at) = (visitor.data_center, visitor.arrived_at);
            self.measure
                .handle_dequeued(data_center, arrived_at, visitor.keeps_cookies);
            let announced = std::mem::take(&mut visitor.announced);
            self.measure.handle_waited(&announced, now);
        }
        let is_extended = ticket
            .and_then(|ticket| ticket.held_turn())
            .is_some_and(|turn| !turn.can_extend);
        if let Some(ticket) = ticket.filter(|_| visitor.keeps_cookies) {
            visitor.ticket = Some(ticket);
        }
        let turn = self.rules.turn_held_for.min(self.rules.session_duration);
        let most = match visitor.ticket {
            Some(ticket) if ticket.has_missed_turn || is_extended => DurationMs(turn.0 / 2),
            _ => turn.times(2),
        };
        visitor.wants_extension = visitor.is_away && !is_extended && visitor.rng.chance(0.3);
        let within = match (visitor.is_away, visitor.wants_extension) {
            (true, true) => turn,
            (true, false) => most,
            // Its page was in the background, and it comes when it hears of its turn.
            (false, _) => DurationMs::from_secs(2),
        };
        let at = now + visitor.rng.between(DurationMs::ZERO, within);
        self.plan(at, Event::SendsRequest { visitor: key });
    }

    /// Queues a visitor.
    fn wait(&mut self, key: Key, ticket: Ticket, position: &QueuePosition) {
        let now = self.now;
        let Some(visitor) = self.population.visitors.get_mut(key) else {
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
                .handle_queued(data_center, visitor.arrived_at, is_followed);
            if visitor.is_no_show {
                let expected_wait = position.wait.map_or(NO_SHOW_WITHIN, |wait| wait.middle);
                visitor.stops_at = now + visitor.rng.between(DurationMs::ZERO, expected_wait);
            }
        }
        let is_first = visitor.ticket.is_none();
        if visitor.keeps_cookies {
            visitor.ticket = Some(ticket);
            visitor.announced.extend(Announcement::of(position, now));
            self.measure.handle_position(position);
        }
        let late = visitor.rng.between(LATE_FROM, LATE_TO);
        let mut interval = position.refresh_after.unwrap_or(NO_SHOW_WITHIN);
        let asks_at_once = interval == DurationMs::ZERO && !visitor.keeps_interval;
        if visitor.is_throttled && !asks_at_once {
            interval = interval.max(THROTTLED_TO);
        }
        let next_at = now + interval + late;
        let next = next_at.min(visitor.leaves_at);
        self.plan(next, Event::SendsRequest { visitor: key });
        if is_first {
            self.open_tab(key);
        }
    }

    /// Shows a page to a visitor.
    fn show_page(&mut self, request: &Request, ticket: Option<Ticket>) {
        let (key, now) = (request.owner, self.now);
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        let before = visitor.phase;
        if before != Phase::Inside {
            let entry = Entry {
                data_center: visitor.data_center,
                arrived_at: visitor.arrived_at,
                has_waited: matches!(before, Phase::Waiting | Phase::Holding),
                keeps_cookies: visitor.keeps_cookies,
            };
            if before == Phase::Waiting {
                self.measure.handle_dequeued(
                    entry.data_center,
                    entry.arrived_at,
                    entry.keeps_cookies,
                );
            }
            self.measure.handle_entry(entry, now);
            let announced = std::mem::take(&mut visitor.announced);
            self.measure.handle_waited(&announced, now);
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
        self.load_subresources(request);
        if pages_left == 0 {
            self.leave(key);
        } else if let Some(visitor) = self.population.visitors.get_mut(key) {
            let think_time = self.population.behaviour.think_time;
            let at = now + visitor.rng.exponential_span(think_time);
            self.plan(at, Event::SendsRequest { visitor: key });
        }
    }

    /// Requests the subresources of a page, at the same moment and with the same cookie.
    fn load_subresources(&mut self, page: &Request) {
        for _ in 0..self.population.behaviour.parallel_requests {
            let Some(visitor) = self.population.visitors.get_mut(page.owner) else {
                return;
            };
            let Some(ticket) = visitor.ticket.filter(|_| visitor.keeps_cookies) else {
                return;
            };
            let mut node = page.node;
            if visitor.rng.chance(self.population.behaviour.changes_node) {
                let home = self.deployment.nodes[node as usize].data_center;
                let plan = &self.deployment.data_centers[home as usize];
                let other = plan.first_node + visitor.rng.below(plan.plan.nodes);
                let target = &self.deployment.nodes[other as usize];
                if target.is_open() && target.paused_until <= self.now {
                    node = other;
                }
            }
            let sent = Sent {
                role: Role::Subresource,
                owner: page.owner,
                ticket: Some(ticket),
                fresh: visitor.fresh_id(),
                waits: false,
            };
            let target = &self.deployment.nodes[node as usize];
            let request = Request::new(sent, (node, target), self.now);
            self.events += 1;
            self.decide(request);
        }
    }

    /// Ends a visit after its last page.
    fn leave(&mut self, key: Key) {
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        let (node, logs_out, replays) = (visitor.node, visitor.logs_out, visitor.replays);
        let ticket = visitor.ticket.filter(|ticket| ticket.accepted_at.is_some());
        if let Some(ticket) = ticket {
            let target = &self.deployment.nodes[node as usize];
            let is_reachable = target.is_open() && target.paused_until <= self.now;
            if logs_out && is_reachable {
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
        self.depart(key);
    }

    /// Plans to send an old ticket again, within about a session.
    fn plan_replay(&mut self, owner: Key, ticket: Ticket, node: u32, use_as: CopyUse) {
        let Some(visitor) = self.population.visitors.get_mut(owner) else {
            return;
        };
        let half = DurationMs(self.rules.session_duration.0 / 2);
        let at = self.now + visitor.rng.exponential_span(half);
        let home = self.deployment.nodes[node as usize].data_center;
        let plan = &self.deployment.data_centers[home as usize];
        let node = plan.first_node + visitor.rng.below(plan.plan.nodes);
        let copy = TicketCopy {
            ticket,
            owner,
            node,
            use_as,
        };
        self.plan_copy(copy, at);
    }

    /// Opens a second tab, which sends two requests with the visitor's present ticket.
    fn open_tab(&mut self, key: Key) {
        let think_time = self.population.behaviour.think_time;
        let Some(visitor) = self.population.visitors.get_mut(key) else {
            return;
        };
        let Some(ticket) = visitor.ticket.filter(|_| visitor.opens_tab) else {
            return;
        };
        let first = self.now + visitor.rng.between(TAB_FROM, TAB_TO);
        let second = first + visitor.rng.exponential_span(think_time);
        for at in [first, second] {
            let copy = TicketCopy {
                ticket,
                owner: key,
                node: self.population.visitors.get_mut(key).map_or(0, |v| v.node),
                use_as: CopyUse::Tab,
            };
            self.plan_copy(copy, at);
        }
    }

    fn trace_reply(&mut self, request: &Request, reply: &NodeReply, met_as: VisitorState) {
        if self.trace.is_none() {
            return;
        }
        let inside = self.checkers.seats.inside(self.now);
        let limit = self.checkers.seats.limit();
        let starts_at = self.scenario.starts_at;
        let (node, visitor, role) = (request.node, request.owner.index, request.role);
        let until = |ticket: &Ticket| {
            let end = ticket.seats.ends_at().unwrap_or_default();
            end.since(starts_at)
        };
        let what = match reply {
            NodeReply::Admit(t) => format!("admits visitor {visitor} until {}", until(t)),
            NodeReply::Renewed(t) => format!("extends visitor {visitor} until {}", until(t)),
            NodeReply::Queue(_, position) => {
                let since = position.arrived_at.since(starts_at);
                let after = position.refresh_after.unwrap_or_default();
                let reason = position.reason.name();
                format!("queues visitor {visitor} ({reason}), arrived at {since}, polls in {after}")
            }
            _ => format!("passes visitor {visitor}"),
        };
        self.note(|deployment| {
            let name = deployment.name_of(node);
            format!("{name} {what}; {role:?}, state {met_as:?} ({inside} of {limit} active)")
        });
    }
}

pub(super) fn ticket_of(reply: &NodeReply) -> Option<&Ticket> {
    match reply {
        NodeReply::Admit(ticket)
        | NodeReply::Renewed(ticket)
        | NodeReply::Queue(Some(ticket), _) => Some(ticket),
        _ => None,
    }
}
