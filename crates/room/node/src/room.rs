//! Room of a running node: verdicts about requests, overrides, syncs and stats.
//!
//! A lock guards the core's state machine, for one decision at a time. An active visitor whose
//! check-in is not due needs only its ticket and a [`View`], and takes no lock.

mod event_streams;
mod events;
mod find;
mod history;
mod leave;
mod overrides;
mod recent_admissions;
mod shared_sync;
mod stats;
mod stops;
mod syncing;
mod tickets;
mod wall_time;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::held_commands_file::HeldFile;
use crate::history::{Collector, HistoryBuffer};
use crate::processes::ProcessFile;
use anteroom_config::overrides::RoomOverrides;
use anteroom_config::schedule::{Evaluation, Phases};
use anteroom_config::{RoomConfig, RoomId, RoomName};
use anteroom_room::id::{DataCenterId, DeploymentId, VisitorId};
use anteroom_room::origin::OriginOutcome;
use anteroom_room::queue_position::{QueuePosition, QueueReason};
use anteroom_room::room::request_flow::{RequestFlow, Step, VisitorArrival};
use anteroom_room::room::view::View;
use anteroom_room::room::{Capacity, Room, RoomIdentity};
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::{Clock, CounterName, SyncError};
use anteroom_ticket::{Binding, KeyRing};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::clock::NodeClock;
use crate::clock_watch::{ClockWatch, watch_store};
use crate::outcome::{Arrival, BegunDecision, Look, OpenedTicket, Outcome, Pass};
use crate::random::Random;
use crate::stores::{Ledgers, Stores};
pub use leave::Leave;
pub use overrides::RoomCommandError;
use shared_sync::{Joined, Place, Rounds};
pub use stats::{DataCenterOfRoom, RoomStats};
pub use stops::CommandOutcome;
use wall_time::in_wall_time;

/// Retry interval of visitors at a process that has not joined yet.
const RETRY_UNJOINED: DurationMs = DurationMs::from_secs(2);

/// State that all rooms of a node share.
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn NodeClock>,
    pub(crate) stores: Stores,
    pub(crate) ring: ArcSwap<KeyRing>,
    pub(crate) deployment_id: DeploymentId,
    pub(crate) random: Random,
    pub(crate) data_center: String,
    /// Clocks that are compared with that of this node.
    pub(crate) clocks: Arc<ClockWatch>,
    /// File of this process in the data folder; `None` if no other process serves visitors.
    pub(crate) process: Option<ProcessFile>,
    /// Data folder, if there is one.
    pub(crate) folder: Option<PathBuf>,
    /// Rows of history that wait for the store.
    pub(crate) history: HistoryBuffer,
}

impl Shared {
    /// Starts to compare the clocks of shared stores with that of this node.
    pub(crate) fn watch_clocks(&self) -> impl Iterator<Item = JoinHandle<()>> + '_ {
        self.stores.shared().into_iter().map(|(owner, store)| {
            let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
            tokio::spawn(watch_store(Arc::clone(&self.clocks), owner, store, clock))
        })
    }
}

/// Room of a running node.
pub struct RoomHandle {
    shared: Arc<Shared>,
    id: RoomId,
    here: DataCenterId,
    opened_at: Timestamp,
    ledgers: Ledgers,
    root_facts: stats::RootFactsCache,
    collector: Mutex<Collector>,
    settings: ArcSwap<Settings>,
    /// Locked while settings are replaced: the file, operators and the schedule change them.
    changing: Mutex<()>,
    events: events::KnownPhases,
    override_state: overrides::OverrideState,
    /// Stops in effect here that are not in the store yet.
    held: Arc<stops::HeldState>,
    room: Mutex<Room>,
    view: ArcSwap<View>,
    recent_admissions: Mutex<recent_admissions::RecentAdmissions>,
    rounds: Rounds,
    counts: Counts,
    good_responses: AtomicU32,
    is_origin_suspect: AtomicBool,
    /// Whether the room was deleted, so that its ledgers end.
    is_deleted: AtomicBool,
}

/// Settings that follow from a room's configuration and overrides.
struct Settings {
    /// Configuration in effect: all layers, and the queue of those who still wait.
    config: Arc<RoomConfig>,
    /// All layers, where values come from, and the overrides in effect: those in the store with
    /// the held stops of this node.
    evaluation: Evaluation,
    file: Arc<RoomConfig>,
    /// Overrides in the store.
    stored: Arc<RoomOverrides>,
    binding: Binding,
}

/// Counters of this crate; none of them falls.
#[derive(Debug, Default)]
struct Counts {
    passed: AtomicU64,
    waited_passes: AtomicU64,
    invalid_tickets: AtomicU64,
    syncs: AtomicU64,
    failed_syncs: AtomicU64,
    global_syncs: AtomicU64,
    failed_global_syncs: AtomicU64,
}

/// Outcome of a decision, or the decision that waits.
type Decided = Result<Outcome, Box<BegunDecision>>;

impl std::fmt::Debug for RoomHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RoomHandle({})", self.name())
    }
}

impl RoomHandle {
    pub(crate) fn new(shared: Arc<Shared>, identity: RoomIdentity, config: RoomConfig) -> Self {
        let id = config.id.clone();
        let here = identity.data_center;
        let opened_at = shared.clock.now();
        let ledgers = shared
            .stores
            .ledgers(id.as_str(), shared.deployment_id, here);
        let about = format!("room {}", config.name);
        let feed = shared
            .stores
            .hearing(id.as_str(), shared.deployment_id, &about);
        let override_state = overrides::OverrideState::new(feed);
        let file = Arc::new(config);
        let mut phases = Phases::default();
        let clocks = events::clocks(&*shared.clock);
        let (evaluation, rules) = phases.begin(&file, clocks);
        let settings = Settings::of(Arc::clone(&file), Arc::default(), evaluation);
        let before = shared.process.as_ref();
        let before = before
            .map(|file| file.predecessors(id.as_str()))
            .unwrap_or_default();
        let room = Room::new(identity, before, rules, Capacity::default(), opened_at);
        let room_is_joined = room.is_joined();
        let folder = shared.folder.as_ref();
        let held = stops::HeldState::of(folder.map(|folder| HeldFile::of(folder, id.as_str())));
        let handle = Self {
            view: ArcSwap::from_pointee(View::of(&room)),
            room: Mutex::new(room),
            recent_admissions: Mutex::default(),
            settings: ArcSwap::from_pointee(settings),
            changing: Mutex::default(),
            events: events::KnownPhases::new(phases),
            override_state,
            held: Arc::new(held),
            rounds: Rounds::new(room_is_joined),
            counts: Counts::default(),
            good_responses: AtomicU32::new(0),
            is_origin_suspect: AtomicBool::new(false),
            is_deleted: AtomicBool::new(false),
            shared,
            id,
            here,
            opened_at,
            ledgers,
            root_facts: stats::RootFactsCache::default(),
            collector: Mutex::default(),
        };
        if !handle.held.stops().is_empty() {
            tracing::warn!(room = %handle.name(), "held stops of an earlier process in effect");
            handle.apply_settings(file, Arc::default());
        }
        handle
    }

    /// Lets the ledgers end one session after the last sync, when the room has been removed.
    pub(crate) fn end_ledgers_when_removed(&self) {
        self.is_deleted.store(true, Ordering::Relaxed);
    }

    /// Lets the ledgers of a deleted room end.
    pub(crate) async fn end_ledgers_if_deleted(&self) {
        if self.is_deleted.load(Ordering::Relaxed) {
            self.ledgers.end().await;
        }
    }

    /// Returns the configuration in effect.
    #[must_use]
    pub fn config(&self) -> Arc<RoomConfig> {
        Arc::clone(&self.settings.load().config)
    }

    /// Returns the present name.
    #[must_use]
    pub fn name(&self) -> RoomName {
        self.settings.load().file.name.clone()
    }

    /// Returns the id, which no change of the configuration changes.
    #[must_use]
    pub const fn id(&self) -> &RoomId {
        &self.id
    }

    /// Returns room time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Returns wall-clock time, in which people read times.
    #[must_use]
    pub fn wall_now(&self) -> Timestamp {
        self.shared.clock.wall()
    }

    /// Decides about one request. An active visitor passes at once, unless it has its seat in
    /// another data center or no ledger knows this process. Then it waits for the store for at most
    /// 250 ms. Other visitors wait for up to a second.
    pub async fn decide(&self, arrival: Arrival<'_>) -> Outcome {
        let now = self.shared.clock.now();
        let ticket = self.open(arrival.tickets, now);
        if ticket.is_some() && !self.rounds.is_joined(self.wait_of_active()).await {
            return self.not_joined(now);
        }
        match self.begin_with(ticket, &arrival, now) {
            Ok(outcome) => outcome,
            // In a box, so that a decision without a wait has no room for one.
            Err(decision) => Box::pin(self.go_on(decision)).await,
        }
    }

    /// Decides about the request with an opened ticket, as far as possible without a wait. The
    /// tickets of `arrival` are those that were opened.
    ///
    /// # Errors
    ///
    /// The begun decision, if it waits.
    pub fn begin(&self, opened: OpenedTicket, arrival: &Arrival<'_>) -> Decided {
        let OpenedTicket(ticket) = opened;
        if ticket.is_none() && !arrival.tickets.is_empty() {
            self.counts.invalid_tickets.fetch_add(1, Ordering::Relaxed);
        }
        self.begin_with(ticket, arrival, self.shared.clock.now())
    }

    /// Decides about a request, as far as possible without a wait. `None` if nothing has happened,
    /// because no ledger knows this process.
    pub fn open_and_begin(&self, arrival: &Arrival<'_>) -> Option<Decided> {
        if !self.rounds.has_joined() {
            return None;
        }
        let now = self.shared.clock.now();
        Some(self.begin_with(self.open(arrival.tickets, now), arrival, now))
    }

    fn begin_with(&self, ticket: Option<Ticket>, arrival: &Arrival<'_>, now: Timestamp) -> Decided {
        if let Some(pass) = self.pass_without_room(ticket, arrival.is_navigation, now) {
            return Ok(Outcome::Pass(pass));
        }
        let mut flow = RequestFlow::new(VisitorArrival {
            ticket,
            fresh: Random::visitor(),
            is_navigation: arrival.is_navigation,
            gets_page: arrival.gets_page,
            intent: arrival.intent,
        });
        let mut step = self.locked(|room, now| flow.decide(room, now));
        if step == Step::NotActive && self.are_overrides_fresh() {
            step = self.locked(|room, now| flow.decide(room, now));
        }
        let outcome = self.final_outcome(step, false);
        outcome.ok_or_else(|| Box::new(BegunDecision { flow, step }))
    }

    /// Goes on with a decision that waits.
    pub async fn go_on(&self, decision: Box<BegunDecision>) -> Outcome {
        let mut place = None;
        let outcome = self.run_steps(decision, &mut place).await;
        if let Some(place) = place {
            place.end();
        }
        outcome
    }

    /// Passes the request of an active visitor, if there is nothing else to decide or to do: no
    /// wait, no check-in, no new ticket.
    ///
    /// `is_navigation` is asked only if the answer matters: a navigation checks in earlier.
    pub fn pass_at_once(&self, tickets: &[&str], is_navigation: impl FnOnce() -> bool) -> Look {
        if !self.rounds.has_joined() {
            return Look::NotJoined;
        }
        if tickets.is_empty() {
            return Look::Other(OpenedTicket(None));
        }
        let now = self.shared.clock.now();
        let ticket = self.open_valid(tickets, now);
        let passed = self.pass_without_room(ticket, true, now).or_else(|| {
            let is_resource = ticket.is_some() && !is_navigation();
            self.pass_without_room(ticket.filter(|_| is_resource), false, now)
        });
        match passed {
            Some(pass) => Look::Pass(pass),
            None => Look::Other(OpenedTicket(ticket)),
        }
    }

    fn pass_without_room(
        &self,
        ticket: Option<Ticket>,
        is_navigation: bool,
        now: Timestamp,
    ) -> Option<Pass> {
        let ticket = ticket?;
        let view = self.view.load();
        let seat_ends_at = view.pass_without_room(&ticket, is_navigation, now)?;
        Some(self.passed(ticket, seat_ends_at, false))
    }

    /// Runs the steps of a request, which keeps a place while it waits for its visitor's turn.
    async fn run_steps<'a>(
        &'a self,
        decision: Box<BegunDecision>,
        place: &mut Option<Place<'a>>,
    ) -> Outcome {
        let BegunDecision { mut flow, mut step } = *decision;
        let mut deadline = match flow.visit() {
            Some(_) => self.wait_of_others(),
            None => self.wait_of_active(),
        };
        loop {
            if let Some(outcome) = self.final_outcome(step, deadline.has_waited()) {
                return outcome;
            }
            let number = match step {
                Step::NotActive => {
                    deadline = self.wait_of_others();
                    if flow.is_look() {
                        self.refresh_overrides().await;
                    } else if !self.are_overrides_fresh() {
                        let may_sync = self.refresh_and_sync(flow.visitor(), &mut deadline).await;
                        flow.set_may_sync(may_sync);
                    }
                    None
                }
                Step::SyncWithParent => {
                    let may_ask_again = self.sync_with_parent(&mut deadline).await;
                    flow.set_may_sync(may_ask_again);
                    None
                }
                Step::WaitForTurn => {
                    if place.is_none() {
                        *place = flow.visit().and_then(|visit| self.take_place(visit));
                    }
                    if place.is_none() {
                        flow.refuse_wait_for_turn();
                    } else if !self.wait_for_turn(&mut deadline).await
                        // In a suspended room nobody waits; the next request learns that.
                        || self.settings.load().config.suspended
                    {
                        flow.end_wait_for_turn();
                    }
                    None
                }
                Step::TakeNumber(key) => {
                    let number = self.take_number(key).await;
                    Some((key, number))
                }
                Step::Pass { .. } | Step::Admit(_) | Step::Queue(..) | Step::WouldAdmit => None,
            };
            step = self.locked(|room, now| match number {
                Some(number) => flow.handle_number(number, room, now),
                None => flow.decide(room, now),
            });
        }
    }

    /// Returns the outcome of a final step; `None` for the others.
    fn final_outcome(&self, step: Step, has_waited: bool) -> Option<Outcome> {
        Some(match step {
            Step::Pass {
                ticket,
                seat_ends_at,
                is_new_ticket,
                wants_sync,
            } => {
                if wants_sync {
                    self.rounds.request_sync();
                }
                if has_waited {
                    self.counts.waited_passes.fetch_add(1, Ordering::Relaxed);
                }
                Outcome::Pass(self.passed(ticket, seat_ends_at, is_new_ticket))
            }
            Step::Admit(ticket) => self.admitted(ticket),
            Step::Queue(ticket, position) => {
                let position = in_wall_time(position, &*self.shared.clock);
                Outcome::Queue {
                    visitor: ticket.map(|ticket| ticket.visitor),
                    ticket: ticket.map(|ticket| self.seal(&ticket)),
                    position,
                }
            }
            Step::WouldAdmit => Outcome::MayCome,
            Step::NotActive | Step::SyncWithParent | Step::WaitForTurn | Step::TakeNumber(_) => {
                return None;
            }
        })
    }

    fn passed(&self, ticket: Ticket, seat_ends_at: Timestamp, is_new_ticket: bool) -> Pass {
        self.counts.passed.fetch_add(1, Ordering::Relaxed);
        Pass {
            ticket,
            seat_ends_at,
            new_ticket: is_new_ticket.then(|| self.seal(&ticket)),
            is_admission: false,
        }
    }

    /// Returns the verdict of a process that no ledger knows. It cannot know which sessions were
    /// ended, so nobody passes, and tickets stay unchanged.
    fn not_joined(&self, now: Timestamp) -> Outcome {
        let position = QueuePosition {
            refresh_after: Some(RETRY_UNJOINED),
            ..QueuePosition::unknown(QueueReason::StoreUnavailable, now)
        };
        Outcome::Queue {
            ticket: None,
            visitor: None,
            position: in_wall_time(position, &*self.shared.clock),
        }
    }

    /// Ends the session of a ticket, as the origin commands. The parent knows when this returns,
    /// unless it is unavailable.
    pub async fn revoke(&self, ticket: Ticket) -> bool {
        self.revoke_with(|room, now| room.handle_revoke(ticket, now))
            .await
    }

    /// Ends the session of a visitor with a seat that this node gave or extended, as an operator
    /// commands. Returns whether that was new. The parent knows when this returns, unless it is
    /// unavailable.
    pub async fn revoke_visitor(&self, visitor: VisitorId) -> bool {
        self.revoke_with(|room, now| room.handle_revoke_of(visitor, now))
            .await
    }

    async fn revoke_with(&self, revoke: impl FnOnce(&mut Room, Timestamp) -> bool) -> bool {
        let now = self.shared.clock.now();
        let is_new = {
            let mut room = self.room.lock();
            let is_new = revoke(&mut room, now);
            // Under the lock, so that views have the same order as the room's states.
            self.view.store(Arc::new(View::of(&room)));
            is_new
        };
        if is_new {
            self.sync_with_parent(&mut self.wait_of_active()).await;
        }
        is_new
    }

    /// Ends the reserve after a loss: an operator has confirmed that there are no active visitors.
    ///
    /// # Errors
    ///
    /// [`SyncError`] if the ledger cannot be reached.
    pub async fn assume_empty(&self) -> Result<(), SyncError> {
        let ledger = self.ledgers.root().unwrap_or(&self.ledgers.parent);
        ledger.assume_empty().await?;
        self.rounds.request_sync();
        Ok(())
    }

    /// Records the outcome of a request to the origin. Good ones are only counted, and reported to
    /// the room with the next failure.
    pub fn handle_origin_outcome(&self, outcome: OriginOutcome) {
        if outcome == OriginOutcome::Good && !self.is_origin_suspect.load(Ordering::Relaxed) {
            self.good_responses.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.report_good_responses();
        self.is_origin_suspect
            .store(outcome != OriginOutcome::Good, Ordering::Relaxed);
        self.locked(|room, now| room.handle_origin_outcome(outcome, now));
    }

    fn report_good_responses(&self) {
        let good = self.good_responses.swap(0, Ordering::Relaxed);
        if good > 0 {
            self.locked(|room, now| room.handle_good_responses(good, now));
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

    /// Waits until tickets are trusted here; see [`crate::Node::joined`].
    pub(crate) async fn joined(&self) {
        self.rounds.wait_joined(Joined::ByPredecessor).await;
    }

    /// Waits until the parent has replied to this process.
    pub(crate) async fn acknowledged(&self) {
        self.rounds.wait_joined(Joined::Itself).await;
    }

    async fn take_number(&self, key: anteroom_room::allocation::CounterKey) -> Option<u64> {
        let name = CounterName {
            room: self.id.to_string(),
            key,
        };
        let store = self.shared.stores.counters(key.scope);
        let number = store.take_number(&name);
        match tokio::time::timeout(shared_sync::visitor_timeout(), number).await {
            Ok(Ok(number)) => Some(number),
            Ok(Err(error)) => {
                // The room's loop logs a failure once; here each visitor would get a line.
                let room = self.name();
                tracing::debug!(%room, %error, "cannot take a number from the counter");
                None
            }
            Err(_) => None,
        }
    }

    /// Runs one decision under the lock. `now` is read under it as well, so that decisions are in
    /// the order of their times.
    fn locked<T>(&self, decide: impl FnOnce(&mut Room, Timestamp) -> T) -> T {
        let mut room = self.room.lock();
        decide(&mut room, self.shared.clock.now())
    }
}

impl Settings {
    /// Returns the settings that an evaluation found.
    fn of(file: Arc<RoomConfig>, stored: Arc<RoomOverrides>, evaluation: Evaluation) -> Self {
        Self {
            binding: Binding::new(&file.cookie_name(), file.id.as_str()),
            config: Arc::new(evaluation.effective.config.clone()),
            evaluation,
            file,
            stored,
        }
    }
}
