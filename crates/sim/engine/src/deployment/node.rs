//! A node: the production room, its loop and its view, a clock that may be wrong, and a data
//! folder.
//!
//! What is asked, in which order and when, is the core's; here it is only driven.

use anteroom_room::allocation::CounterKey;
use anteroom_room::decision::QueuePosition;
use anteroom_room::id::{NodeId, VisitorId};
pub(crate) use anteroom_room::room::passage::VisitorState;
use anteroom_room::room::passage::{ArrivalKind, Intent, RequestFlow, Step};
use anteroom_room::room::revoked_visitors::RevokedVisitors;
use anteroom_room::room::syncing::SYNC_PERIOD;
use anteroom_room::room::view::View;
use anteroom_room::room::{Capacity, Predecessors, Room, RoomIdentity};
use anteroom_room::rules::Rules;
use anteroom_room::sync::Revocation;
use anteroom_room::sync_loop::{SyncLoop, WaitDeadline};
use anteroom_room::ticket::Ticket;
use anteroom_room::time::Timestamp;

use crate::deployment::network::Cuts;
use crate::judge::idle::Uses;
use crate::run::slab::Key;

/// A process that meets visitors.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) room: Room,
    /// What lets visitors pass without asking the room.
    pub(crate) view: View,
    pub(crate) sync_loop: SyncLoop,
    pub(crate) rules: Rules,
    pub(crate) data_center: u32,
    /// Rises with every start; what was meant for a former life is dropped.
    pub(crate) incarnation: u32,
    pub(crate) state: NodeState,
    /// It stands still until then.
    pub(crate) paused_until: Timestamp,
    /// The link between it and its store.
    pub(crate) cuts: Cuts,
    pub(crate) clock: Clock,
    /// Requests that wait for the end of a sync, by its number.
    pub(crate) waiting: Vec<(Key, u64)>,
    /// When its loop is to be looked at next, as far as that is planned.
    pub(crate) looked_at: Option<Timestamp>,
    folder: Folder,
    is_paced: bool,
    process: NodeId,
    /// For the judge.
    pub(crate) uses: Uses,
}

/// Whether a node runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NodeState {
    /// It does.
    Running,
    /// It was told to stop, and ends what it began.
    Draining,
    /// It does not.
    Stopped,
}

/// The data folder: names of processes that ran on it and are dead, until their ledger knows.
#[derive(Debug, Default)]
struct Folder {
    dead: Vec<NodeId>,
    /// Until when one of them was in touch that the ledger still counts.
    in_touch_until: Option<Timestamp>,
    /// Which tickets they refused.
    revoked: Vec<Revocation>,
    /// The same of the process that runs now.
    own_in_touch_until: Option<Timestamp>,
    /// Which tickets that one refuses.
    own_revoked: RevokedVisitors,
}

/// A clock that may be wrong, and never goes back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    error_ms: i64,
    /// How much faster than true time it runs, in parts per million, and since when.
    drifts_ppm: i64,
    drifts_since: Timestamp,
    newest: Timestamp,
}

impl Clock {
    pub(crate) fn read(&mut self, now: Timestamp) -> Timestamp {
        let drifting_for = i64::try_from(now.since(self.drifts_since).0).unwrap_or(i64::MAX);
        let drifted = drifting_for.saturating_mul(self.drifts_ppm) / 1_000_000;
        let shown = Timestamp(now.0.saturating_add_signed(self.error_ms + drifted));
        self.newest = self.newest.max(shown);
        self.newest
    }

    pub(crate) fn set_error(&mut self, by_ms: i64, drifts_ppm: i32, now: Timestamp) {
        self.error_ms = by_ms;
        self.drifts_ppm = i64::from(drifts_ppm);
        self.drifts_since = now;
    }

    /// A new life reads the clock as it is.
    pub(crate) fn restart(&mut self) {
        self.newest = Timestamp::ZERO;
    }
}

/// A request of a browser, as far as it matters here.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) role: Role,
    /// The record of its sender.
    pub(crate) owner: Key,
    pub(crate) node: u32,
    /// The life of the node that it reached.
    pub(crate) incarnation: u32,
    pub(crate) arrived_at: Timestamp,
    pub(crate) ticket: Option<Ticket>,
    /// How far it has come.
    pub(crate) passage: RequestFlow,
    /// How long it waits for its node's parent, and how often.
    pub(crate) patience: WaitDeadline,
    pub(crate) asked: u8,
    /// A number that it waits for or has taken.
    pub(crate) number: Option<(CounterKey, Option<u64>)>,
}

/// What a browser sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) role: Role,
    pub(crate) owner: Key,
    pub(crate) ticket: Option<Ticket>,
    /// Its id if it is taken for somebody new.
    pub(crate) fresh: VisitorId,
}

impl Request {
    /// A request that reaches a node now.
    pub(crate) fn new(sent: Sent, (node, met): (u32, &Node), now: Timestamp) -> Self {
        let passage = RequestFlow::new(ArrivalKind {
            ticket: sent.ticket,
            fresh: sent.fresh,
            is_navigation: sent.role != Role::Part,
            // Those who wait ask by script.
            gets_page: sent
                .ticket
                .is_none_or(|ticket| ticket.accepted_at.is_some()),
            intent: Intent::Enter,
        });
        Self {
            role: sent.role,
            owner: sent.owner,
            node,
            incarnation: met.incarnation,
            arrived_at: now,
            ticket: sent.ticket,
            passage,
            patience: met.patience(now),
            asked: 0,
            number: None,
        }
    }
}

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// A page, or the question of somebody who waits.
    Page,
    /// What a page loads beside itself.
    Part,
    /// A page in a second tab.
    Tab,
    /// An old ticket that is sent again.
    Replay,
}

/// What a node says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeReply {
    Pass,
    Renewed(Ticket),
    Admit(Ticket),
    Queue(Option<Ticket>, QueuePosition),
    AskParent,
    TakeNumber(CounterKey),
}

impl Node {
    pub(crate) fn new(
        identity: RoomIdentity,
        data_center: u32,
        rules: Rules,
        is_paced: bool,
        now: Timestamp,
    ) -> Self {
        let before = Predecessors::default();
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
            waiting: Vec::new(),
            looked_at: None,
            folder: Folder::default(),
            is_paced,
            process: identity.process,
            uses: Uses::new(SYNC_PERIOD),
        }
    }

    /// Starts a new life, which knows nothing of the last one but its name.
    pub(crate) fn start(&mut self, identity: RoomIdentity, now: Timestamp) {
        self.clock.restart();
        let before = Predecessors {
            dead: self.folder.dead.clone(),
            in_touch_until: self.folder.in_touch_until,
            revoked: self.folder.revoked.clone(),
        };
        let node_now = self.clock.read(now);
        self.room = Room::new(identity, before, self.rules, Capacity::default(), node_now);
        self.view = View::of(&self.room);
        self.sync_loop = SyncLoop::new(self.is_paced, now);
        self.process = identity.process;
        self.folder.own_in_touch_until = None;
        self.state = NodeState::Running;
    }

    /// Ends this life. Who waited for an answer gets none.
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

    /// Whether it runs, be it that it was told to stop.
    pub(crate) fn is_alive(&self) -> bool {
        match self.state {
            NodeState::Running | NodeState::Draining => true,
            NodeState::Stopped => false,
        }
    }

    /// Whether visitors may be sent here: it runs, and tickets are worth something to it.
    pub(crate) fn is_open(&self) -> bool {
        self.is_alive() && self.room.is_joined()
    }

    /// The room has changed in what lets visitors pass.
    pub(crate) fn renew_view(&mut self) {
        self.view = View::of(&self.room);
    }

    /// The parent has answered: it knows of this process, and that those before it are dead.
    pub(crate) fn note_joined(&mut self) {
        if self.room.has_heard_from_parent() {
            self.folder = Folder {
                own_in_touch_until: Some(self.room.in_touch_until()),
                own_revoked: self.room.revoked(),
                ..Folder::default()
            };
        }
    }

    /// It is about to say goodbye: its name vouches for no successor from now on.
    pub(crate) fn leave_folder(&mut self) {
        self.folder.own_in_touch_until = None;
    }

    /// Decides about a request at `now` by this node's clock, as far as it can be decided at once.
    /// `started_at` is that moment by the clock of the loop.
    pub(crate) fn ask(
        &mut self,
        request: &mut Request,
        now: Timestamp,
        started_at: Timestamp,
    ) -> (NodeReply, VisitorState) {
        let accepted = request.ticket.filter(|ticket| ticket.accepted_at.is_some());
        let is_navigation = request.role != Role::Part;
        if let Some(ticket) = accepted.filter(|_| request.asked == 0)
            && self
                .view
                .pass_at_once(&ticket, is_navigation, now)
                .is_some()
        {
            return (NodeReply::Pass, VisitorState::Inside);
        }
        let mut met_as = request.passage.met_as();
        let mut step = match request.number.take() {
            Some(number) => request.passage.handle_number(number, &mut self.room, now),
            None => request.passage.decide(&mut self.room, now),
        };
        if step == Step::NotInside {
            request.patience = self.patience(started_at);
            step = request.passage.decide(&mut self.room, now);
        }
        if met_as != VisitorState::Inside || !matches!(step, Step::Pass { .. } | Step::AskParent) {
            met_as = request.passage.met_as();
        }
        let said = match step {
            Step::Pass {
                ticket,
                is_new_ticket,
                wants_sync,
                ..
            } => {
                if wants_sync {
                    self.sync_loop.hurry();
                }
                if is_new_ticket {
                    NodeReply::Renewed(ticket)
                } else {
                    NodeReply::Pass
                }
            }
            Step::Admit(ticket) => NodeReply::Admit(ticket),
            Step::Queue(ticket, place) => NodeReply::Queue(ticket, place),
            Step::AskParent => NodeReply::AskParent,
            Step::TakeNumber(key) => NodeReply::TakeNumber(key),
            Step::MayCome | Step::NotInside => unreachable!("nobody looks, and everybody goes on"),
        };
        (said, met_as)
    }

    /// How long somebody waits who comes now.
    pub(crate) fn patience(&self, now: Timestamp) -> WaitDeadline {
        WaitDeadline::new(now)
    }
}
