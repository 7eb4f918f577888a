//! A room as the rest of the program holds it: decisions for requests, facts in, figures out.
//!
//! The core's state machine stands behind a lock that is held for one decision at a time; a
//! visitor who is inside and whose check-in is not due needs only its ticket and a [`View`], and
//! takes no lock.

mod asking;
mod holding;
mod listening;
mod movement;
mod overrides;
mod stats;
mod syncing;
mod tickets;
mod wall_time;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::held_file::HeldFile;
use crate::processes::ProcessFile;
use anteroom_config::RoomConfig;
use anteroom_config::overrides::RoomOverrides;
use anteroom_room::decision::{QueuePosition, QueueReason};
use anteroom_room::id::{DataCenterId, DeploymentId};
use anteroom_room::origin::OriginOutcome;
use anteroom_room::room::passage::{ArrivalKind, RequestFlow, Step};
use anteroom_room::room::view::View;
use anteroom_room::room::{Capacity, Room, RoomIdentity};
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::{CounterName, SyncError};
use anteroom_ticket::{Binding, KeyRing};
use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::clock::NodeClock;
use crate::outcome::{Arrival, Outcome, Pass};
use crate::random::Random;
use crate::stores::{Ledgers, Stores};
use asking::{Joined, Rounds};
pub use holding::CommandOutcome;
pub use overrides::RoomCommandError;
pub use stats::RoomStats;
use wall_time::{in_room_time, in_wall_time};

/// When whoever was turned away by a process that is not joined yet tries again.
const RETRY_UNJOINED: DurationMs = DurationMs::from_secs(2);

/// What all rooms of a node share.
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn NodeClock>,
    pub(crate) stores: Stores,
    pub(crate) ring: ArcSwap<KeyRing>,
    pub(crate) birth: DeploymentId,
    pub(crate) random: Random,
    pub(crate) data_center: String,
    /// This process in its data folder; `None` where no other process meets visitors.
    pub(crate) process: Option<ProcessFile>,
    /// The data folder, if there is one.
    pub(crate) folder: Option<PathBuf>,
}

/// One room of a running node.
pub struct RoomHandle {
    shared: Arc<Shared>,
    name: String,
    here: DataCenterId,
    opened_at: Timestamp,
    ledgers: Ledgers,
    history: stats::History,
    settings: ArcSwap<Settings>,
    /// Held while settings are replaced: the file and operators both change them.
    changing: Mutex<()>,
    bulletin: overrides::OverrideState,
    /// Stops that hold here and are not written down.
    holding: Arc<holding::Holding>,
    room: Mutex<Room>,
    view: ArcSwap<View>,
    movement: Mutex<movement::Movement>,
    rounds: Rounds,
    counts: Counts,
    good_answers: AtomicU32,
    is_origin_suspect: AtomicBool,
}

/// What follows from a room's configuration.
struct Settings {
    /// What holds: the file's, and what operators said.
    config: Arc<RoomConfig>,
    file: Arc<RoomConfig>,
    /// What is written down.
    said: Arc<RoomOverrides>,
    /// The same, under the stops that this node holds by itself.
    overrides: Arc<RoomOverrides>,
    binding: Binding,
}

/// What this crate counts; every figure only rises.
#[derive(Debug, Default)]
struct Counts {
    passed: AtomicU64,
    waited_passes: AtomicU64,
    strange_tickets: AtomicU64,
    syncs: AtomicU64,
    failed_syncs: AtomicU64,
    global_syncs: AtomicU64,
    failed_global_syncs: AtomicU64,
}

impl std::fmt::Debug for RoomHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RoomHandle({})", self.name)
    }
}

impl RoomHandle {
    pub(crate) fn new(shared: Arc<Shared>, identity: RoomIdentity, config: RoomConfig) -> Self {
        let name = config.name.to_string();
        let here = identity.data_center;
        let opened_at = shared.clock.now();
        let ledgers = shared.stores.ledgers(&name, shared.birth, here);
        let about = format!("room {name}");
        let hearing = shared.stores.hearing(&name, shared.birth, &about);
        let bulletin = overrides::OverrideState::new(hearing);
        let rules = in_room_time(config.rules, &*shared.clock);
        let before = shared.process.as_ref();
        let before = before
            .map(|file| file.predecessors(&name))
            .unwrap_or_default();
        let room = Room::new(identity, before, rules, Capacity::default(), opened_at);
        let room_is_joined = room.is_joined();
        let file = shared.folder.as_ref();
        let holding = holding::Holding::of(file.map(|folder| HeldFile::of(folder, &name)));
        let file = Arc::new(config);
        let handle = Self {
            view: ArcSwap::from_pointee(View::of(&room)),
            room: Mutex::new(room),
            movement: Mutex::default(),
            settings: ArcSwap::from_pointee(Settings::of_file(Arc::clone(&file))),
            changing: Mutex::default(),
            bulletin,
            holding: Arc::new(holding),
            rounds: Rounds::new(room_is_joined),
            counts: Counts::default(),
            good_answers: AtomicU32::new(0),
            is_origin_suspect: AtomicBool::new(false),
            shared,
            name,
            here,
            opened_at,
            ledgers,
            history: stats::History::default(),
        };
        if !handle.holding.held().is_empty() {
            tracing::warn!(room = %handle.name, "stops of a process before this one hold");
            handle.apply_settings(file, Arc::default());
        }
        handle
    }

    /// The room's configuration.
    #[must_use]
    pub fn config(&self) -> Arc<RoomConfig> {
        Arc::clone(&self.settings.load().config)
    }

    /// Room time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// The wall clock, by which people read times.
    #[must_use]
    pub fn wall_now(&self) -> Timestamp {
        self.shared.clock.wall()
    }

    /// Decides about one request. A visitor who is inside waits for nothing, unless it has its seat
    /// in another data center or no ledger has ever heard of this process. Then, like anybody else,
    /// it waits for the store no longer than 250 ms.
    pub async fn decide(&self, arrival: Arrival<'_>) -> Outcome {
        let now = self.shared.clock.now();
        let ticket = self.open(arrival.tickets, now);
        if ticket.is_some() && !self.rounds.is_joined(self.patience()).await {
            return self.not_joined(now);
        }
        if let Some(ticket) = ticket {
            let view = self.view.load();
            if let Some(seat_ends_at) = view.pass_at_once(&ticket, arrival.is_navigation, now) {
                return self.pass(ticket, seat_ends_at, false);
            }
        }
        let passage = RequestFlow::new(ArrivalKind {
            ticket,
            fresh: Random::visitor(),
            is_navigation: arrival.is_navigation,
            gets_page: arrival.is_navigation,
            intent: arrival.intent,
        });
        self.go_through(passage).await
    }

    /// Takes a request through its steps.
    async fn go_through(&self, mut passage: RequestFlow) -> Outcome {
        let mut patience = self.patience();
        let mut step = self.locked(|room, now| passage.decide(room, now));
        loop {
            let number = match step {
                Step::Pass {
                    ticket,
                    seat_ends_at,
                    is_new_ticket,
                    wants_sync,
                } => {
                    if wants_sync {
                        self.rounds.hurry();
                    }
                    if patience.has_waited() {
                        self.counts.waited_passes.fetch_add(1, Ordering::Relaxed);
                    }
                    return self.pass(ticket, seat_ends_at, is_new_ticket);
                }
                Step::Admit(ticket) => return self.admitted(ticket),
                Step::Queue(ticket, place) => {
                    let place = in_wall_time(place, &*self.shared.clock);
                    let ticket = ticket.map(|ticket| self.seal(&ticket));
                    return Outcome::Queue { ticket, place };
                }
                Step::MayCome => return Outcome::MayCome,
                Step::NotInside => {
                    patience = self.patience();
                    let is_look = passage.is_look();
                    if is_look {
                        self.hear_overrides().await;
                    } else if !self.are_overrides_fresh() {
                        let may_ask_parent = self.hear_and_ask(&mut patience).await;
                        passage.set_may_ask_parent(may_ask_parent);
                    }
                    None
                }
                Step::AskParent => {
                    let may_ask_again = self.ask_parent(&mut patience).await;
                    passage.set_may_ask_parent(may_ask_again);
                    None
                }
                Step::TakeNumber(key) => {
                    let number = self.take_number(key).await;
                    Some((key, number))
                }
            };
            step = self.locked(|room, now| match number {
                Some(number) => passage.handle_number(number, room, now),
                None => passage.decide(room, now),
            });
        }
    }

    fn pass(&self, ticket: Ticket, seat_ends_at: Timestamp, is_new_ticket: bool) -> Outcome {
        self.counts.passed.fetch_add(1, Ordering::Relaxed);
        Outcome::Pass(Pass {
            ticket,
            seat_ends_at,
            new_ticket: is_new_ticket.then(|| self.seal(&ticket)),
            is_admission: false,
        })
    }

    /// No ledger counts on this process, so that it cannot know whose session was ended: its
    /// tickets are left as they are, and nobody passes.
    fn not_joined(&self, now: Timestamp) -> Outcome {
        let place = QueuePosition {
            reason: QueueReason::StoreAway,
            people_ahead: None,
            people_waiting: 0,
            wait: None,
            ask_after: Some(RETRY_UNJOINED),
            arrived_at: now,
        };
        Outcome::Queue {
            ticket: None,
            place: in_wall_time(place, &*self.shared.clock),
        }
    }

    /// Ends the session of a ticket, as the origin commands. The parent knows of it when this
    /// returns, unless it cannot be reached.
    pub async fn revoke(&self, ticket: Ticket) -> bool {
        let now = self.shared.clock.now();
        let is_new = {
            let mut room = self.room.lock();
            let is_new = room.handle_revoke(ticket, now);
            // Under the lock: views follow each other as the room's states do.
            self.view.store(Arc::new(View::of(&room)));
            is_new
        };
        if is_new {
            self.ask_parent(&mut self.patience()).await;
        }
        is_new
    }

    /// Ends the wait of a ledger that has lost its memory, on the operator's word that nobody is
    /// inside.
    ///
    /// # Errors
    ///
    /// [`SyncError`] if the ledger cannot be reached.
    pub async fn assume_empty(&self) -> Result<(), SyncError> {
        let place = self.ledgers.root().unwrap_or(&self.ledgers.parent);
        place.assume_empty().await?;
        self.rounds.hurry();
        Ok(())
    }

    /// Takes note of how a request to the origin went. While all goes well this is a count; the
    /// room hears of it with the next failure.
    pub fn handle_origin_outcome(&self, outcome: OriginOutcome) {
        if outcome == OriginOutcome::Good && !self.is_origin_suspect.load(Ordering::Relaxed) {
            self.good_answers.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.report_good_answers();
        self.is_origin_suspect
            .store(outcome != OriginOutcome::Good, Ordering::Relaxed);
        self.locked(|room, now| room.handle_origin_outcome(outcome, now));
    }

    fn report_good_answers(&self) {
        let good = self.good_answers.swap(0, Ordering::Relaxed);
        if good > 0 {
            self.locked(|room, now| room.handle_good_answers(good, now));
        }
    }

    fn admitted(&self, ticket: Ticket) -> Outcome {
        Outcome::Pass(Pass {
            ticket,
            seat_ends_at: ticket.seats.ends_at().unwrap_or_default(),
            new_ticket: Some(self.seal(&ticket)),
            is_admission: true,
        })
    }

    /// Returns when tickets are worth something here; see [`crate::Node::joined`].
    pub(crate) async fn joined(&self) {
        self.rounds.joined(Joined::ByPredecessor).await;
    }

    /// Returns when the parent has answered this process.
    pub(crate) async fn heard(&self) {
        self.rounds.joined(Joined::Itself).await;
    }

    async fn take_number(&self, key: anteroom_room::allocation::CounterKey) -> Option<u64> {
        let name = CounterName {
            room: self.name.clone(),
            key,
        };
        let store = self.shared.stores.counters(key.scope);
        let number = store.take_number(&name);
        match tokio::time::timeout(asking::patience_of_a_visitor(), number).await {
            Ok(Ok(number)) => Some(number),
            Ok(Err(error)) => {
                // The room's loop says so once; here it would be said for every visitor.
                tracing::debug!(room = %self.name, %error, "no number from the counter");
                None
            }
            Err(_) => None,
        }
    }

    /// One decision, with one `now` that is read after the lock is held: decisions follow each
    /// other in time.
    fn locked<T>(&self, decide: impl FnOnce(&mut Room, Timestamp) -> T) -> T {
        let mut room = self.room.lock();
        decide(&mut room, self.shared.clock.now())
    }
}

impl Settings {
    fn new(
        config: RoomConfig,
        file: Arc<RoomConfig>,
        said: Arc<RoomOverrides>,
        overrides: Arc<RoomOverrides>,
    ) -> Self {
        let cookie_name = config.cookie_name();
        Self {
            binding: Binding::new(&cookie_name, config.name.as_str()),
            config: Arc::new(config),
            file,
            said,
            overrides,
        }
    }
}
