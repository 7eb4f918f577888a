//! Simulated node: the production room, its sync loop and its view, a clock that may be wrong, and
//! a data folder.
//!
//! The core decides what it requests, in which order and when; this module drives it.

mod schedule;

use anteroom_config::schedule::Clocks;
use anteroom_room::allocation::CounterKey;
use anteroom_room::id::{NodeId, VisitorId};
use anteroom_room::queue_position::QueuePosition;
pub(crate) use anteroom_room::room::request_flow::VisitorState;
use anteroom_room::room::request_flow::{Intent, RequestFlow, Step, VisitorArrival};
use anteroom_room::room::revoked_visitors::RevokedVisitors;
use anteroom_room::room::syncing::SYNC_PERIOD;
use anteroom_room::room::view::View;
use anteroom_room::room::{Capacity, Predecessors, Room, RoomIdentity};
use anteroom_room::rules::Rules;
use anteroom_room::sync::Revocation;
use anteroom_room::sync_loop::{SyncLoop, WaitDeadline};
use anteroom_room::ticket::Ticket;
use anteroom_room::time::Timestamp;

use crate::checkers::idle::Uses;
use crate::deployment::network::Cuts;
use crate::run::slab::Key;
pub(crate) use schedule::{NodeSchedule, RecordSource};

/// Process that serves visitors.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) room: Room,
    /// View that lets active visitors pass without the room.
    pub(crate) view: View,
    pub(crate) sync_loop: SyncLoop,
    pub(crate) rules: Rules,
    pub(crate) data_center: u32,
    /// Number of the present process; a restart raises it. Messages to an earlier process are
    /// dropped.
    pub(crate) incarnation: u32,
    pub(crate) state: NodeState,
    /// End of a pause, during which the process does nothing.
    pub(crate) paused_until: Timestamp,
    /// Cuts of the link to its store.
    pub(crate) cuts: Cuts,
    pub(crate) clock: Clock,
    /// Steps of the wall clock, which room time does not follow.
    pub(crate) wall_error_ms: i64,
    /// Time of the newest such step.
    pub(crate) wall_stepped_at: Timestamp,
    /// Settings of a room with events; the rules follow from them.
    pub(crate) schedule: Option<Box<NodeSchedule>>,
    /// Requests that wait for the end of a sync, with its number.
    pub(crate) waiting: Vec<(Key, u64)>,
    /// Whether its newest message to the root's record met other writers.
    pub(crate) is_root_contended: bool,
    /// Planned time of the next poll of its sync loop.
    pub(crate) looked_at: Option<Timestamp>,
    folder: Folder,
    is_paced: bool,
    process: NodeId,
    /// Slots used lately; checkers read them.
    pub(crate) uses: Uses,
}

/// State of the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NodeState {
    /// Serves requests.
    Running,
    /// Stops after the requests that it has begun.
    Draining,
    /// Does not run.
    Stopped,
}

/// Data folder: names of earlier processes on it, until their ledger knows that they ended.
#[derive(Debug, Default)]
struct Folder {
    dead: Vec<NodeId>,
    /// Time until which one of them had a lease that the ledger still counts.
    in_touch_until: Option<Timestamp>,
    /// Tickets that they revoked.
    revoked: Vec<Revocation>,
    /// Time until which the present process has a lease.
    own_in_touch_until: Option<Timestamp>,
    /// Tickets that the present process revoked.
    own_revoked: RevokedVisitors,
}

/// Clock that may be wrong, and never goes back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    error_ms: i64,
    /// Drift against true time in parts per million.
    drifts_ppm: i64,
    drifts_since: Timestamp,
    newest: Timestamp,
}

impl Clock {
    pub(crate) fn read(&mut self, now: Timestamp) -> Timestamp {
        self.newest = self.newest.max(self.shown(now));
        self.newest
    }

    /// Returns what it shows, even if that is earlier than before.
    fn shown(&self, now: Timestamp) -> Timestamp {
        let drifting_for = i64::try_from(now.since(self.drifts_since).0).unwrap_or(i64::MAX);
        let drifted = drifting_for.saturating_mul(self.drifts_ppm) / 1_000_000;
        Timestamp(now.0.saturating_add_signed(self.error_ms + drifted))
    }

    pub(crate) fn set_error(&mut self, by_ms: i64, drifts_ppm: i32, now: Timestamp) {
        self.error_ms = by_ms;
        self.drifts_ppm = i64::from(drifts_ppm);
        self.drifts_since = now;
    }

    /// Reads the clock anew for a new process, even if it shows an earlier time.
    pub(crate) fn restart(&mut self) {
        self.newest = Timestamp::ZERO;
    }
}

/// Request of a browser.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) role: Role,
    /// Key of the visitor that sent it.
    pub(crate) owner: Key,
    pub(crate) node: u32,
    /// Number of the process that received it.
    pub(crate) incarnation: u32,
    pub(crate) arrived_at: Timestamp,
    pub(crate) ticket: Option<Ticket>,
    /// State of the decision.
    pub(crate) flow: RequestFlow,
    /// Deadline of its waits for the node's parent.
    pub(crate) wait_deadline: WaitDeadline,
    pub(crate) parent_waits: u8,
    /// Whether it waits for its visitor's turn, and not for a sync of its own.
    pub(crate) waits_for_turn: bool,
    /// Counter that it waits for, with the number once it has one.
    pub(crate) number: Option<(CounterKey, Option<u64>)>,
}

/// Content of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) role: Role,
    pub(crate) owner: Key,
    pub(crate) ticket: Option<Ticket>,
    /// Id for the case that the node takes the sender for a new visitor.
    pub(crate) fresh: VisitorId,
    /// Whether a poll waits for the turn.
    pub(crate) waits: bool,
}

impl Request {
    /// Creates a request that reaches a node now.
    pub(crate) fn new(sent: Sent, (node, node_record): (u32, &Node), now: Timestamp) -> Self {
        let flow = RequestFlow::new(VisitorArrival {
            ticket: sent.ticket,
            fresh: sent.fresh,
            is_navigation: sent.role.is_navigation(),
            // A waiting page polls by script, also that of a visitor who missed its turn.
            gets_page: sent
                .ticket
                .is_none_or(|ticket| ticket.accepted_at.is_some() && ticket.held_turn().is_none()),
            intent: match sent.role {
                Role::Poll if sent.waits => Intent::LongPoll,
                Role::Poll => Intent::Poll,
                Role::Extension => Intent::ExtendTurn,
                _ => Intent::Enter,
            },
        });
        Self {
            role: sent.role,
            owner: sent.owner,
            node,
            incarnation: node_record.incarnation,
            arrived_at: now,
            ticket: sent.ticket,
            flow,
            wait_deadline: WaitDeadline::of_active(now),
            parent_waits: 0,
            waits_for_turn: false,
            number: None,
        }
    }
}

/// Purpose of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// Page, also of a waiting visitor.
    Page,
    /// Poll of a waiting visitor whose page is in the background.
    Poll,
    /// Request for more time for a turn.
    Extension,
    /// Further resource of a page.
    Subresource,
    /// Page in a second tab.
    Tab,
    /// Old ticket that is sent again.
    Replay,
}

impl Role {
    fn is_navigation(self) -> bool {
        !matches!(self, Self::Subresource | Self::Poll | Self::Extension)
    }

    /// Whether it is the visitor's own request with its present ticket, and not a copy.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Self::Page | Self::Poll | Self::Extension)
    }
}

/// Decision of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeReply {
    Pass,
    /// Reply to a poll of a visitor without a ticket: a page request would be admitted.
    MayCome,
    Renewed(Ticket),
    Admit(Ticket),
    Queue(Option<Ticket>, QueuePosition),
    AskParent,
    WaitForTurn,
    TakeNumber(CounterKey),
}

impl Node {
    pub(crate) fn new(
        identity: RoomIdentity,
        data_center: u32,
        (rules, schedule): (Rules, Option<NodeSchedule>),
        is_paced: bool,
        now: Timestamp,
    ) -> Self {
        let before = Predecessors::default();
        let rules = schedule.as_ref().map_or(rules, NodeSchedule::first_rules);
        let room = Room::new(identity, before, rules, Capacity::default(), now);
        Self {
            view: View::of(&room),
            room,
            sync_loop: SyncLoop::new(is_paced, now),
            rules,
            data_center,
            incarnation: 0,
            state: NodeState::Running,
            paused_until: Timestamp::ZERO,
            cuts: Cuts::default(),
            clock: Clock::default(),
            wall_error_ms: 0,
            wall_stepped_at: Timestamp::ZERO,
            schedule: schedule.map(Box::new),
            waiting: Vec::new(),
            is_root_contended: false,
            looked_at: None,
            folder: Folder::default(),
            is_paced,
            process: identity.process,
            uses: Uses::new(SYNC_PERIOD),
        }
    }

    /// Starts a new process, which knows only the names of its predecessors.
    pub(crate) fn start(&mut self, identity: RoomIdentity, now: Timestamp) {
        self.clock.restart();
        let before = Predecessors {
            ended: self.folder.dead.clone(),
            in_touch_until: self.folder.in_touch_until,
            revoked: self.folder.revoked.clone(),
        };
        let node_now = self.clock.read(now);
        let clocks = self.clocks(now);
        if let Some(schedule) = &mut self.schedule {
            self.rules = schedule.start(clocks, now);
        }
        self.room = Room::new(identity, before, self.rules, Capacity::default(), node_now);
        self.view = View::of(&self.room);
        self.sync_loop = SyncLoop::new(self.is_paced, now);
        self.process = identity.process;
        self.folder.own_in_touch_until = None;
        self.state = NodeState::Running;
    }

    /// Reads both clocks.
    pub(crate) fn clocks(&mut self, now: Timestamp) -> Clocks {
        let shown = self.clock.shown(now).0;
        Clocks {
            wall: Timestamp(shown.saturating_add_signed(self.wall_error_ms)),
            room: self.clock.read(now),
        }
    }

    /// Steps the wall clock.
    pub(crate) fn step_wall(&mut self, by_ms: i64, now: Timestamp) {
        self.wall_error_ms = self.wall_error_ms.saturating_add(by_ms);
        self.wall_stepped_at = now;
    }

    /// Whether it may admit nobody yet, because it does not know the phases of events.
    pub(crate) fn awaits_record(&self) -> bool {
        let schedule = self.schedule.as_ref();
        self.state == NodeState::Running && schedule.is_some_and(|schedule| !schedule.is_known())
    }

    /// Evaluates the settings and applies the rules that follow. Returns whether they are others.
    pub(crate) fn evaluate(&mut self, now: Timestamp) -> bool {
        let clocks = self.clocks(now);
        let Some(schedule) = &mut self.schedule else {
            return false;
        };
        let rules = schedule.evaluate(&self.room, clocks);
        if *self.room.rules() == rules {
            return false;
        }
        self.rules = rules;
        self.room.handle_rules(rules, clocks.room);
        self.renew_view();
        true
    }

    /// Ends the process. Requests that wait get no response.
    pub(crate) fn stop(&mut self) {
        self.state = NodeState::Stopped;
        self.incarnation += 1;
        self.looked_at = None;
        self.waiting.clear();
        self.folder.dead.push(self.process);
        if let Some(until) = self.folder.own_in_touch_until {
            self.folder.in_touch_until = self.folder.in_touch_until.max(Some(until));
            let own = std::mem::take(&mut self.folder.own_revoked);
            self.folder.revoked.extend(own.iter());
        }
    }

    /// Whether it runs; a draining node does.
    pub(crate) fn is_alive(&self) -> bool {
        match self.state {
            NodeState::Running | NodeState::Draining => true,
            NodeState::Stopped => false,
        }
    }

    /// Whether it may receive visitors: it runs, and its ledger knows it.
    pub(crate) fn is_open(&self) -> bool {
        self.is_alive() && self.room.is_joined()
    }

    /// Rebuilds the view after a change of the room.
    pub(crate) fn renew_view(&mut self) {
        self.view = View::of(&self.room);
    }

    /// Clears the data folder after a reply of the parent, which knows this process and the end of
    /// those before it.
    pub(crate) fn note_joined(&mut self) {
        if self.room.has_parent_reply() {
            self.folder = Folder {
                own_in_touch_until: Some(self.room.in_touch_until()),
                own_revoked: self.room.revoked(),
                ..Folder::default()
            };
        }
    }

    /// Prepares for the last sync, after which this process vouches for no successor.
    pub(crate) fn leave_folder(&mut self) {
        self.folder.own_in_touch_until = None;
    }

    /// Decides a request at `now` by this node's clock, as far as possible at once. `started_at` is
    /// that moment by the clock of the sync loop.
    pub(crate) fn decide(
        &mut self,
        request: &mut Request,
        now: Timestamp,
        started_at: Timestamp,
    ) -> (NodeReply, VisitorState) {
        let accepted = request.ticket.filter(|ticket| ticket.accepted_at.is_some());
        let is_navigation = request.role.is_navigation();
        if let Some(ticket) = accepted.filter(|_| request.parent_waits == 0)
            && self
                .view
                .pass_without_room(&ticket, is_navigation, now)
                .is_some()
        {
            return (NodeReply::Pass, VisitorState::Active);
        }
        let mut met_as = request.flow.visitor_state();
        let mut step = match request.number.take() {
            Some(number) => request.flow.handle_number(number, &mut self.room, now),
            None => request.flow.decide(&mut self.room, now),
        };
        if step == Step::NotActive {
            request.wait_deadline = WaitDeadline::of_others(started_at);
            step = request.flow.decide(&mut self.room, now);
        }
        if met_as != VisitorState::Active
            || !matches!(step, Step::Pass { .. } | Step::SyncWithParent)
        {
            met_as = request.flow.visitor_state();
        }
        let reply = match step {
            Step::Pass {
                ticket,
                is_new_ticket,
                wants_sync,
                ..
            } => {
                if wants_sync {
                    self.sync_loop.request_sync();
                }
                if is_new_ticket {
                    NodeReply::Renewed(ticket)
                } else {
                    NodeReply::Pass
                }
            }
            Step::Admit(ticket) => NodeReply::Admit(ticket),
            Step::Queue(ticket, place) => NodeReply::Queue(ticket, place),
            Step::SyncWithParent => NodeReply::AskParent,
            Step::WaitForTurn => NodeReply::WaitForTurn,
            Step::TakeNumber(key) => NodeReply::TakeNumber(key),
            Step::WouldAdmit => NodeReply::MayCome,
            Step::NotActive => unreachable!("it was decided again"),
        };
        (reply, met_as)
    }
}
