//! Stores and the ledgers in them, at two levels: local ledgers lease from the root's.
//!
//! A simulated store does what every store does: it loads a record, runs the production ledger on
//! it, and writes it back, at one moment of its own clock. `run` decides when, and what travels in
//! between.

mod history;
mod overrides;

use std::collections::BTreeMap;
use std::sync::Arc;

use anteroom_config::overrides::RoomOverrides;
use anteroom_room::allocation::CounterKey;
use anteroom_room::id::{DataCenterId, Incarnation, NodeId};
use anteroom_room::ledger::{LeaseTerms, Ledger, UPSTREAM_PERIOD};
use anteroom_room::ledger_exchange::{
    Exchange, Expected, FirstStart, InitialLedger, LEFT_FOR, LEFT_MAX, Leaving, LedgerOperation,
    LedgerRole, RecordLocation, RecordState, RecordVersion, apply_left, left_order,
};
use anteroom_room::store::{Durability, Identity, StoreFacts};
use anteroom_room::sync::{Reply, SyncRequest};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::checkers::idle::Uses;
use crate::recording::{Found, Recorder, Recording};
use crate::scenario::model::{Scenario, StoreRef};
use history::History;
pub(crate) use overrides::FoundOverrides;
use overrides::OverrideRecord;

/// Longest time until a node learns of a free slot: the quarter of a second that a visitor may
/// wait, and the half second during which a node treats its parent as empty.
const UNNOTICED: DurationMs = DurationMs(750);
/// Value of [`UNNOTICED`] where a data center treats the root as empty for two of its own periods.
const UNNOTICED_BELOW_GLOBAL: DurationMs = DurationMs(2_750);
/// Age of a ledger's clock while its nodes sync, at most.
const CLOCK_LATE_MAX: DurationMs = DurationMs(5_000);

/// Stores of all data centers, and the root's store.
#[derive(Debug)]
pub(crate) struct Stores {
    /// Empty where the only data center's store is the root's.
    locals: Vec<Store>,
    root: Store,
}

/// Store with its record of the room.
#[derive(Debug)]
pub(crate) struct Store {
    role: LedgerRole,
    record: Option<Ledger>,
    version: u64,
    /// Requests that writers left beside the record.
    left: BTreeMap<(NodeId, u64), Arc<SyncRequest>>,
    /// Time of the newest of them.
    left_at: Timestamp,
    identity: Identity,
    durability: Durability,
    /// Server that keeps the deployment's own record, and since when.
    kept: Option<RecordLocation>,
    /// Stand-in for the ledger until a node opens it.
    empty: Ledger,
    counters: BTreeMap<CounterKey, u64>,
    /// Record of overrides, with the phases of events.
    overrides: OverrideRecord,
    /// Time at which all was lost; `None` if it never was, or if a request has since named an
    /// earlier record.
    unwitnessed_since: Option<Timestamp>,
    /// Error of the clock that it shows. Nothing may depend on it.
    clock_error_ms: i64,
    down_until: Timestamp,
    /// True time since which every reply left a free seat and a free admission.
    free_since: Option<Timestamp>,
    history: Option<History>,
    /// Slots that it granted and slots that it could not grant; checkers read them.
    uses: Uses,
    /// Slots kept when the newest request to the root was drawn, and how many of them were in use.
    kept_at_request: Option<(u32, u32)>,
    /// Boxed, because few runs record.
    recorder: Option<Box<Recorder>>,
}

/// Result of a load, from which a node decides.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) seen: RecordState,
    /// Whether an absent ledger has never existed.
    pub(crate) is_first_start: bool,
    /// Requests of other writers that are left beside the record.
    pub(crate) left: Vec<Arc<SyncRequest>>,
    /// Whether the own request is.
    pub(crate) is_own_left: bool,
    /// Result of the own request, if another writer has applied it. A node works it out from the
    /// record, which does not travel here.
    pub(crate) applied: Option<Box<Exchange>>,
}

/// State of a message that loads a record, or writes one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit<'a> {
    pub(crate) operation: &'a LedgerOperation,
    pub(crate) leaving: Leaving,
    pub(crate) has_lost: bool,
}

/// Write on its way to a store, computed when it arrives. If the record has changed by then, the
/// store writes nothing.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) expected: Expected,
    pub(crate) opening: InitialLedger,
    /// Requests of other writers that it applies: those left when the record was read.
    pub(crate) left: Vec<Arc<SyncRequest>>,
}

/// Result of a write.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Written(Box<Option<Exchange>>),
    Conflict(Box<Loaded>),
    OtherStore,
}

impl Stores {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let is_one = match scenario.data_centers.as_slice() {
            [only] => only.to_global.to == DurationMs::ZERO,
            _ => false,
        };
        let lease_terms = if is_one {
            LeaseTerms::default()
        } else {
            LeaseTerms {
                ttl: scenario.global_lease,
            }
        };
        let count = if is_one {
            0
        } else {
            scenario.data_centers.len()
        };
        let store = |role, place| {
            let history = History::of(scenario, place, is_one);
            Store::new(role, scenario.durability, history)
        };
        let locals = (0..count).zip(1..).map(|(index, number)| {
            let role = LedgerRole::DataCenter(DataCenterId(number));
            store(role, StoreRef::Local(index))
        });
        let locals = locals.collect();
        let role = if scenario.is_one_node() {
            LedgerRole::Alone
        } else {
            LedgerRole::Root(lease_terms)
        };
        let root = store(role, StoreRef::Global);
        Self { locals, root }
    }

    /// Whether the root's record has a lease of a data center's record that exists no more.
    pub(crate) fn root_names_lost_record(&self) -> bool {
        let is_present = |child: u64| {
            let mut locals = self.locals.iter();
            locals.any(|local| local.ledger().incarnation().0 == child)
        };
        !self
            .root()
            .children()
            .keys()
            .all(|child| is_present(child.0))
    }

    /// Whether data centers have ledgers of their own below the root's.
    pub(crate) fn has_two_levels(&self) -> bool {
        !self.locals.is_empty()
    }

    /// Whether there is one node with a journal of its own.
    pub(crate) fn is_alone(&self) -> bool {
        self.root.role == LedgerRole::Alone
    }

    /// Returns the store that nodes of this data center use.
    pub(crate) fn local(&mut self, data_center: u32) -> &mut Store {
        match self.locals.get_mut(data_center as usize) {
            Some(local) => local,
            None => &mut self.root,
        }
    }

    /// Returns the store of the root ledger.
    pub(crate) fn global(&mut self) -> &mut Store {
        &mut self.root
    }

    /// Returns the root ledger.
    pub(crate) fn root(&self) -> &Ledger {
        self.root.ledger()
    }

    /// Returns the record of overrides in the root's store, and the time since which it has it.
    pub(crate) fn root_overrides(&self) -> Option<&(Timestamp, Arc<RoomOverrides>)> {
        self.root.present_overrides()
    }

    /// Whether a ledger is on probation. The ledger of a data center then reports nothing.
    pub(crate) fn are_on_probation(&self) -> bool {
        let locals = self.locals.iter().map(|local| local.ledger());
        let mut all = locals.chain(std::iter::once(self.root()));
        all.any(|ledger| ledger.probation().is_some())
    }

    /// Returns the sum of the incarnations of all ledgers: another one after a record was lost.
    pub(crate) fn incarnations(&self) -> u64 {
        let locals = self.locals.iter().map(|local| local.ledger());
        let all = locals.chain(std::iter::once(self.root()));
        all.fold(0, |sum, ledger| sum.wrapping_add(ledger.incarnation().0))
    }

    /// Returns the root ledger, unless the store is another server than the one it was written to.
    /// Such a record, and one on probation, may lack grants.
    pub(crate) fn believed_root(&self) -> Option<&Ledger> {
        let record = self.root.record.as_ref();
        record.filter(|ledger| {
            ledger.store().identity == self.root.identity && ledger.probation().is_none()
        })
    }

    /// Whether the root's record was lost, and for longer than a lease no request has named it.
    /// That case cannot be known: the root takes the loss for a first start.
    pub(crate) fn is_loss_unknown(&self, now: Timestamp) -> bool {
        let ttl = self.root.role.lease_terms().ttl;
        let since = self.root.unwitnessed_since;
        since.is_some_and(|since| now >= since + ttl)
    }

    /// Returns the seats that data centers reserve for active visitors who have no seat in their
    /// present data center.
    pub(crate) fn kept_for_movers(&self) -> u32 {
        let kept = self.locals.iter().filter_map(|local| {
            let ledger = local.ledger();
            let leased = ledger.upstream()?.lease.balance().seats;
            let wants = ledger.unmet();
            Some(leased.min(wants.movers_now.saturating_add(wants.movers_expected)))
        });
        kept.fold(0, u32::saturating_add)
    }

    /// Returns the seats that the root counts for a data center and that have ended there by `now`,
    /// or were never given.
    pub(crate) fn unused_seats_of(&self, data_center: u32, now: Timestamp) -> u32 {
        let Some(local) = self.locals.get(data_center as usize) else {
            return 0;
        };
        let is_here = |id: DataCenterId| id.0 == data_center + 1;
        let root = self.root();
        let children = root.children().values();
        let children = children.filter(|child| is_here(child.data_center));
        let held = children.map(|child| (&child.row, child.balance.seats));
        let departed = root.departed().iter();
        let departed = departed.filter(|gone| is_here(gone.data_center));
        let possible = departed.map(|gone| (&gone.row, gone.phantoms));
        let counted = held
            .chain(possible)
            .map(|(row, unreported)| row.total_after(Timestamp::ZERO) + i64::from(unreported));
        // A data center frees its ended seats only with the root's consent.
        let children = local.ledger().children().values().map(|child| &child.row);
        let departed = local.ledger().departed().iter().map(|gone| &gone.row);
        let running = children.chain(departed).map(|row| row.total_after(now));
        let unused = counted.sum::<i64>() - running.sum::<i64>();
        u32::try_from(unused.max(0)).unwrap_or(u32::MAX)
    }

    pub(crate) fn at(&mut self, place: StoreRef) -> &mut Store {
        match place {
            StoreRef::Local(index) => self.local(u32::try_from(index).unwrap_or(u32::MAX)),
            StoreRef::Global => self.global(),
        }
    }

    /// Records the operations of all ledgers from now on; called before the first one.
    pub(crate) fn record(&mut self) {
        for (index, local) in self.locals.iter_mut().enumerate() {
            local.record(StoreRef::Local(index));
        }
        self.root.record(StoreRef::Global);
    }

    /// Returns the recordings by store, the root's last.
    pub(crate) fn into_recordings(self) -> Vec<Recording> {
        let stores = self.locals.into_iter().chain([self.root]);
        let recorders = stores.filter_map(|store| store.recorder);
        recorders.map(|recorder| recorder.finish()).collect()
    }

    /// Whether the clock of a data center's ledger stands, because it trusts no child's.
    pub(crate) fn has_standing_clock(&self, data_center: u32, now: Timestamp) -> bool {
        let local = self.locals.get(data_center as usize);
        local.is_some_and(|local| local.ledger().clock_at() + CLOCK_LATE_MAX < now)
    }

    /// Returns the longest time for which the root leases.
    pub(crate) fn longest_lease(&self) -> DurationMs {
        self.root.role.lease_terms().ttl
    }

    /// Returns the longest time until a node learns of a free slot.
    pub(crate) fn unnoticed(&self) -> DurationMs {
        if self.has_two_levels() {
            UNNOTICED_BELOW_GLOBAL
        } else {
            UNNOTICED
        }
    }

    /// Whether the root has had a free slot since `since`, without a pause.
    pub(crate) fn has_been_free_at_root_since(&self, since: Timestamp, now: Timestamp) -> bool {
        self.root.has_been_free_since(since, now)
    }

    /// Whether a data center below the root has had a free slot since `since`, without a pause.
    pub(crate) fn has_been_free_nearby_since(
        &self,
        data_center: u32,
        since: Timestamp,
        now: Timestamp,
    ) -> bool {
        let local = self.locals.get(data_center as usize);
        local.is_some_and(|local| local.has_been_free_since(since, now))
    }
}

impl Store {
    fn new(role: LedgerRole, durability: Durability, history: Option<History>) -> Self {
        let identity = Identity(1);
        Self {
            role,
            record: None,
            version: 0,
            left: BTreeMap::new(),
            left_at: Timestamp::ZERO,
            identity,
            durability,
            // All nodes know that this is the first start.
            kept: Some(RecordLocation {
                store: identity,
                since: Timestamp::ZERO,
                is_first: true,
            }),
            empty: Ledger::new(),
            counters: BTreeMap::new(),
            overrides: OverrideRecord::default(),
            unwitnessed_since: None,
            clock_error_ms: 0,
            down_until: Timestamp::ZERO,
            free_since: None,
            kept_at_request: None,
            history,
            uses: Uses::new(UPSTREAM_PERIOD),
            recorder: None,
        }
    }

    /// Returns the role of its ledger.
    pub(crate) fn role(&self) -> LedgerRole {
        self.role
    }

    /// Returns the ledger in its present state.
    pub(crate) fn ledger(&self) -> &Ledger {
        self.record.as_ref().unwrap_or(&self.empty)
    }

    /// Whether its ledger is of this server, and grants slots.
    pub(crate) fn is_open(&self) -> bool {
        self.record.as_ref().is_some_and(|ledger| {
            ledger.store().identity == self.identity
                && ledger.probation().is_none()
                && ledger.reserve().is_none()
        })
    }

    fn is_down(&self, now: Timestamp) -> bool {
        now < self.down_until
    }

    fn clock(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_add_signed(self.clock_error_ms))
    }

    fn record(&mut self, place: StoreRef) {
        let recorder = Recorder::new(place, self.role, Incarnation::ALONE);
        self.recorder = Some(Box::new(recorder));
    }

    /// Reads what a node needs to decide about an operation, and leaves its request if that is due.
    /// Returns `None` if the store is down.
    pub(crate) fn load(&mut self, visit: Visit<'_>, now: Timestamp) -> Option<Loaded> {
        if self.is_down(now) {
            return None;
        }
        let sent_at = visit.operation.sent_at();
        if visit.leaving.is_due_at_load() {
            self.leave(visit.operation, now);
        }
        Some(self.loaded(visit, sent_at, now))
    }

    fn leave(&mut self, operation: &LedgerOperation, now: Timestamp) {
        let Some(request) = operation.request_to_leave(self.role) else {
            return;
        };
        self.expire_left(now);
        if self.left.len() < LEFT_MAX {
            let id = (request.child, request.number);
            self.left.insert(id, Arc::new(request.clone()));
            self.left_at = now;
        }
    }

    fn expire_left(&mut self, now: Timestamp) {
        if now.since(self.left_at) >= LEFT_FOR {
            self.left.clear();
        }
    }

    fn loaded(&mut self, visit: Visit<'_>, sent_at: Option<Timestamp>, now: Timestamp) -> Loaded {
        self.expire_left(now);
        let seen = self.seen();
        let is_first_start = InitialLedger::needs_first_start(self.role, seen) && {
            let ttl = self.role.lease_terms().ttl;
            let kept = *self.kept.get_or_insert(RecordLocation {
                store: self.identity,
                since: now,
                is_first: false,
            });
            match FirstStart::of(kept, self.identity, sent_at, ttl) {
                FirstStart::Yes => true,
                FirstStart::No => false,
                FirstStart::Moved(kept) => {
                    self.kept = Some(kept);
                    false
                }
            }
        };
        let own = visit.operation.request_to_leave(self.role);
        let own = own.map(|request| (request.child, request.number));
        let others = self.left.iter().filter(|(id, _)| Some(**id) != own);
        let mut left: Vec<_> = others.map(|(_, request)| Arc::clone(request)).collect();
        left.sort_by_key(|request| left_order(request));
        let is_own_left = own.is_some_and(|own| self.left.contains_key(&own));
        let present = self.record.as_ref().filter(|ledger| {
            own.is_some() && visit.has_lost && ledger.store().identity == self.identity
        });
        let applied = present.and_then(|ledger| {
            let was_taken = visit.leaving.is_taken(is_own_left);
            let terms = self.role.lease_terms();
            visit.operation.applied_by_another(ledger, terms, was_taken)
        });
        Loaded {
            seen,
            is_first_start,
            left,
            is_own_left,
            applied: applied.map(Box::new),
        }
    }

    fn seen(&self) -> RecordState {
        let version = self.record.as_ref().map_or(0, |_| self.version);
        RecordState {
            expected: Expected {
                version: RecordVersion(version),
                identity: self.identity,
            },
            store: StoreFacts {
                identity: self.identity,
                durability: self.durability,
            },
            written_to: self.record.as_ref().map(Ledger::store),
        }
    }

    /// Performs an operation and writes the result, if the record is unchanged since it was read.
    /// Returns `None` if the store is down.
    pub(crate) fn write(
        &mut self,
        draft: &Draft,
        visit: Visit<'_>,
        now: Timestamp,
    ) -> Option<Outcome> {
        let operation = visit.operation;
        if self.is_down(now) {
            return None;
        }
        let seen = self.seen();
        let expected = seen.expected;
        if expected.identity != draft.expected.identity {
            return Some(Outcome::OtherStore);
        }
        if expected.version != draft.expected.version {
            if visit.leaving.is_due_at_conflict() {
                self.leave(operation, now);
            }
            let visit = Visit {
                has_lost: true,
                ..visit
            };
            let loaded = self.loaded(visit, operation.sent_at(), now);
            return Some(Outcome::Conflict(Box::new(loaded)));
        }
        self.note_opening(draft.opening);
        let left = self.record.take();
        let mut ledger = draft.opening.open(left, seen.store);
        // A store does the same when it reads a record.
        ledger.rebuild_sums();
        let applied = self.apply_left(&draft.left, &mut ledger, now);
        let exchange = operation.perform(&mut ledger, self.role.lease_terms());
        self.record_operation(operation, exchange.as_ref(), &ledger, now);
        if let Some(history) = &mut self.history {
            history.note(&ledger, now);
        }
        self.version += 1;
        self.record = Some(ledger);
        for (request, exchange) in &applied {
            self.left.remove(&(request.child, request.number));
            self.note_sync(request, exchange, now);
        }
        if let Some(own) = operation.request_to_leave(self.role) {
            self.left.remove(&(own.child, own.number));
        }
        if let (LedgerOperation::Sync { request, .. }, Some(exchange)) = (operation, &exchange) {
            self.note_sync(request, exchange, now);
            if exchange.upstream_sync.is_some() {
                self.kept_at_request = self.kept_now(now);
            }
        }
        Some(Outcome::Written(Box::new(exchange)))
    }

    /// Applies the requests that other writers left.
    fn apply_left<'a>(
        &mut self,
        left: &'a [Arc<SyncRequest>],
        ledger: &mut Ledger,
        now: Timestamp,
    ) -> Vec<(&'a SyncRequest, Exchange)> {
        let mut applied = Vec::new();
        for request in left {
            let exchange = apply_left(request, ledger, self.role.lease_terms());
            if self.recorder.is_some() {
                let operation = LedgerOperation::Sync {
                    request: Box::new(SyncRequest::clone(request)),
                    root_reply: None,
                    is_wanted: false,
                };
                self.record_operation(&operation, Some(&exchange), ledger, now);
            }
            applied.push((&**request, exchange));
        }
        applied
    }

    fn record_operation(
        &mut self,
        operation: &LedgerOperation,
        exchange: Option<&Exchange>,
        ledger: &Ledger,
        now: Timestamp,
    ) {
        let shown_at = self.clock(now);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(shown_at, (operation, exchange), ledger);
        }
    }

    fn note_opening(&mut self, opening: InitialLedger) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let before = self.record.clone().map(Box::new);
        match (opening, before) {
            (InitialLedger::AsLeft | InitialLedger::Alone, _) => {}
            (InitialLedger::Probation(_), Some(record)) => {
                recorder.note_change(Found::Older {
                    record,
                    incarnation: Incarnation::ALONE,
                });
            }
            (InitialLedger::Probation(_), None) => {}
            (
                InitialLedger::DataCenter(incarnation, _) | InitialLedger::Epoch(incarnation, _),
                Some(record),
            ) => {
                recorder.note_change(Found::Older {
                    record,
                    incarnation,
                });
            }
            (
                InitialLedger::First(incarnation) | InitialLedger::DataCenter(incarnation, _),
                None,
            ) if self.version == 0 => {
                recorder.note_first_incarnation(incarnation);
            }
            (
                InitialLedger::First(incarnation)
                | InitialLedger::DataCenter(incarnation, _)
                | InitialLedger::FoundEmpty(incarnation, _)
                | InitialLedger::Epoch(incarnation, _),
                _,
            ) => {
                let is_first = matches!(opening, InitialLedger::First(_));
                recorder.note_change(Found::Empty {
                    incarnation,
                    is_first,
                });
            }
        }
    }

    fn note_sync(&mut self, request: &SyncRequest, exchange: &Exchange, now: Timestamp) {
        let epoch = self.ledger().incarnation().epoch();
        if request.witnessed_epoch.is_some_and(|other| other != epoch) {
            self.unwitnessed_since = None;
        }
        if let Reply::Granted(grant) = &exchange.reply {
            let demand = request.demand.slots.saturating_sub(request.balance.seats);
            // A data center with a demand may fetch half as many slots more, and two.
            let ahead = demand / 2 + 2 * u32::from(demand > 0);
            self.uses.note(grant.granted.seats.max(demand) + ahead);
        }
        if !self.is_free(request.sent_at) {
            self.free_since = None;
        } else if self.free_since.is_none() {
            self.free_since = Some(now);
        }
    }

    /// Returns the slots kept although slots were scarce, as of the newest request to the root, and
    /// how many of them were in use lately.
    pub(crate) fn take_kept(&mut self) -> Option<(u32, u32)> {
        self.kept_at_request.take()
    }

    fn kept_now(&mut self, now: Timestamp) -> Option<(u32, u32)> {
        let used = self.uses.take_recent(now);
        let ledger = self.ledger();
        let upstream = ledger.upstream()?;
        let global = &upstream.snapshot;
        let is_scarce = global.waiting > 0 || global.seats_free.min(global.admissions_free) == 0;
        let wants = ledger.unmet();
        let kept = upstream.lease.balance().seats;
        let kept = kept.saturating_sub(wants.movers_now.saturating_add(wants.movers_expected));
        // Far from the root, a data center keeps slots ready for visitors whose turn it is.
        let eligible = global.watermark.count(&ledger.waiting());
        let kept = kept.saturating_sub(eligible);
        is_scarce.then_some((kept, used))
    }

    /// Returns the next number of a counter; `None` if the store is down.
    pub(crate) fn take_number(&mut self, key: CounterKey, now: Timestamp) -> Option<u64> {
        if self.is_down(now) {
            return None;
        }
        let next = self.counters.entry(key).or_insert(0);
        let number = *next;
        *next += 1;
        Some(number)
    }

    pub(crate) fn take_down(&mut self, until: Timestamp) {
        self.down_until = self.down_until.max(until);
    }

    /// Brings the store back empty, as another server. The first node that reaches it puts the
    /// deployment's record back.
    pub(crate) fn wipe(&mut self, now: Timestamp) {
        self.become_another();
        self.unwitnessed_since = Some(now);
        self.record = None;
        self.left.clear();
        self.version += 1;
        self.counters.clear();
        self.overrides.wipe(now);
        self.kept = None;
    }

    /// Promotes a replica that lacks the last writes. It has what was left at the lost server: the
    /// requests are as late there as any message.
    pub(crate) fn lose_writes(&mut self, last: DurationMs, now: Timestamp) {
        let old = self.history.as_mut().and_then(|h| h.before(now - last));
        if let (Some(ledger), Some(record)) = (old, &mut self.record) {
            *record = ledger;
        }
        self.overrides.lose_writes(now - last, now);
        self.become_another();
    }

    fn become_another(&mut self) {
        self.identity = Identity(self.identity.0 + 1);
        self.free_since = None;
    }

    /// Steps the store's clock.
    pub(crate) fn step_clock(&mut self, by_ms: i64) {
        self.clock_error_ms = self.clock_error_ms.saturating_add(by_ms);
    }

    fn has_been_free_since(&self, since: Timestamp, now: Timestamp) -> bool {
        let has_been = self.free_since.is_some_and(|at| at <= since);
        has_been && !self.is_down(now) && self.is_free(now)
    }

    /// Whether it has a free seat and a free admission at a time by the clocks that write tickets.
    fn is_free(&self, at: Timestamp) -> bool {
        let ledger = self.ledger();
        let upstream = ledger.upstream();
        upstream.is_none_or(|upstream| upstream.lease.is_live(at))
            && ledger.seats_to_admit() > 0
            && ledger.admissions_free(at, at.minute()) > 0
            && (upstream.is_some() || !ledger.is_rationed(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a ledger that was lost would open as a new one.
    #[test]
    fn a_wiped_store_is_new_only_a_lease_after_a_node_has_reached_it() {
        let role = LedgerRole::Root(LeaseTerms::default());
        let mut store = Store::new(role, Durability::Unknown, None);
        let first = |store: &mut Store, at| {
            let visit = Visit {
                operation: &LedgerOperation::AssumeEmpty,
                leaving: Leaving::new(false, false),
                has_lost: false,
            };
            let is_down = store.is_down(Timestamp(at));
            let loaded =
                (!is_down).then(|| store.loaded(visit, Some(Timestamp(at)), Timestamp(at)));
            loaded.map(|loaded| loaded.is_first_start)
        };
        store.take_down(Timestamp(200_000));
        store.wipe(Timestamp(1));
        store.take_down(Timestamp(300_000));
        assert_eq!(first(&mut store, 250_000), None);
        assert_eq!(first(&mut store, 300_001), Some(false));
        assert_eq!(first(&mut store, 310_000), Some(false));
        assert_eq!(first(&mut store, 310_001), Some(true));
    }
}
