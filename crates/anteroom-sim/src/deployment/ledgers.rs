//! Stores and the ledgers in them: who lends to whom.
//!
//! A store here does what every store does: it loads a record, runs the production ledger on it,
//! and writes it back, at one moment of its own clock. When, and what travels in between, is
//! decided in `run`.

mod history;

use std::collections::BTreeMap;

use anteroom_core::allocation::CounterKey;
use anteroom_core::id::{DataCenterId, Life};
use anteroom_core::ledger::{LEASE_TTL, Ledger, LendingTerms, UPSTREAM_PERIOD};
use anteroom_core::sync::{Reply, SyncRequest};
use anteroom_core::time::{Millis, Span};

use super::node::Talk;
use crate::dice::{Draw, Lot};
use crate::judge::idle::Uses;
use crate::recording::{Deed, Found, Recorder, Recording, Role};
use anteroom_scenario::model::{Scenario, StorePlace};
use history::History;

/// How long a free slot may go unnoticed: the quarter of a second that a visitor may wait, and the
/// half during which a node believes that its parent is dry.
const UNNOTICED: Span = Span(750);
/// The same where a data center believes for two periods of its own that the world is dry.
const UNNOTICED_BELOW_WORLD: Span = Span(2_750);

/// All stores: one in each data center, and the world's behind them.
#[derive(Debug)]
pub(crate) struct Stores {
    /// Empty where the only data center's store is the world's.
    locals: Vec<Store>,
    root: Store,
}

/// One store with its record of the room.
#[derive(Debug)]
pub(crate) struct Store {
    ledger: Ledger,
    role: Role,
    /// Where lives of its record come from.
    lives: Lot,
    counters: BTreeMap<CounterKey, u64>,
    clock_error_ms: i64,
    down_until: Millis,
    damage: Damage,
    /// Since when, by true time, it has had a free seat and a free admission after every answer.
    free_since: Option<Millis>,
    history: Option<History>,
    /// For the judge: what it has handed on, and what it was asked for in vain.
    uses: Uses,
    /// Boxed: hardly ever there.
    recorder: Option<Box<Recorder>>,
}

/// What the next caller will find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Damage {
    None,
    /// It is another server than before.
    Strange,
    /// The record is gone.
    Wiped,
}

/// The conversation of a data center's ledger with the world's, carried by one of its nodes.
#[derive(Debug, Default)]
pub(crate) struct Uplink {
    pub(crate) talk: Talk,
    /// Which node carries the round, counted in its data center; after a failure it is the next.
    pub(crate) carrier: u32,
    /// When the next round begins at the latest.
    pub(crate) due_at: Millis,
}

impl Stores {
    pub(crate) fn new(scenario: &Scenario, mut lot: Lot) -> Self {
        let is_one = match scenario.data_centers.as_slice() {
            [only] => only.to_world.to == Span::ZERO,
            _ => false,
        };
        let lending = if is_one {
            LendingTerms::default()
        } else {
            LendingTerms {
                ttl: scenario.world_lease,
            }
        };
        let count = if is_one {
            0
        } else {
            scenario.data_centers.len()
        };
        let mut store = |role, place| {
            let history = History::of(scenario, place, is_one);
            Store::new(role, Lot::new(lot.word()), history)
        };
        let locals = (0..count).zip(1..).map(|(index, number)| {
            let role = Role::Below(DataCenterId(number));
            store(role, StorePlace::Local(index))
        });
        let locals = locals.collect();
        let mut root = store(Role::Root(lending), StorePlace::World);
        if scenario.is_one_node() {
            root.ledger = Ledger::new();
        }
        Self { locals, root }
    }

    /// Whether data centers have ledgers of their own below the world's.
    pub(crate) fn has_two_levels(&self) -> bool {
        !self.locals.is_empty()
    }

    /// The store that nodes of this data center talk to.
    pub(crate) fn local(&mut self, data_center: u32) -> &mut Store {
        match self.locals.get_mut(data_center as usize) {
            Some(local) => local,
            None => &mut self.root,
        }
    }

    /// The store whose ledger lends what the limits allow.
    pub(crate) fn world(&mut self) -> &mut Store {
        &mut self.root
    }

    /// The ledger that lends what the limits allow.
    pub(crate) fn root(&self) -> &Ledger {
        &self.root.ledger
    }

    pub(crate) fn at(&mut self, place: StorePlace) -> &mut Store {
        match place {
            StorePlace::Local(index) => self.local(u32::try_from(index).unwrap_or(u32::MAX)),
            StorePlace::World => self.world(),
        }
    }

    /// Keeps from now on what is asked and answered; for before the first call.
    pub(crate) fn record(&mut self) {
        for (index, local) in self.locals.iter_mut().enumerate() {
            local.record(StorePlace::Local(index));
        }
        self.root.record(StorePlace::World);
    }

    /// What was kept: of each store, the world's last.
    pub(crate) fn into_recordings(self) -> Vec<Recording> {
        let stores = self.locals.into_iter().chain([self.root]);
        let recorders = stores.filter_map(|store| store.recorder);
        recorders.map(|recorder| recorder.finish()).collect()
    }

    /// The longest time for which anything is lent.
    pub(crate) fn longest_lease(&self) -> Span {
        match self.root.role {
            Role::Root(lending) => lending.ttl,
            Role::Below(_) => LEASE_TTL,
        }
    }

    /// How long a free slot may go unnoticed.
    pub(crate) fn unnoticed(&self) -> Span {
        if self.has_two_levels() {
            UNNOTICED_BELOW_WORLD
        } else {
            UNNOTICED
        }
    }

    /// Whether one of the ledgers above a node has had a slot to lend since `since`, without a
    /// pause.
    pub(crate) fn has_been_free_since(&self, data_center: u32, since: Millis, now: Millis) -> bool {
        let local = self.locals.get(data_center as usize);
        self.root.has_been_free_since(since, now)
            || local.is_some_and(|local| local.has_been_free_since(since, now))
    }
}

impl Store {
    fn new(role: Role, mut lives: Lot, history: Option<History>) -> Self {
        let mut store = Self {
            ledger: Ledger::new(),
            role,
            lives,
            counters: BTreeMap::new(),
            clock_error_ms: 0,
            down_until: Millis::ZERO,
            damage: Damage::None,
            free_since: None,
            history,
            uses: Uses::new(UPSTREAM_PERIOD),
            recorder: None,
        };
        store.ledger = match role {
            // A first start, of which everybody knows that it is the first.
            Role::Root(_) => Ledger::first_start(Life(lives.word())),
            Role::Below(id) => Ledger::below_world(Life(lives.word()), id),
        };
        store.lives = lives;
        store
    }

    fn is_down(&self, now: Millis) -> bool {
        now < self.down_until
    }

    fn clock(&self, now: Millis) -> Millis {
        Millis(now.0.saturating_add_signed(self.clock_error_ms))
    }

    fn record(&mut self, place: StorePlace) {
        let recorder = Recorder::new(place, self.role, self.ledger.life);
        self.recorder = Some(Box::new(recorder));
    }

    /// Answers a child. `None`: the store is down.
    pub(crate) fn sync(&mut self, request: SyncRequest, now: Millis) -> Option<Reply> {
        let at = self.load(now)?;
        let lending = match self.role {
            Role::Root(lending) => lending,
            Role::Below(_) => LendingTerms::default(),
        };
        let (sent_at, wanted) = (request.sent_at, request.wants.slots);
        let held = request.held.seats;
        let asked = self.recorder.is_some().then(|| Box::new(request.clone()));
        let reply = self.ledger.handle_sync(request, lending, at);
        if let Some(request) = asked {
            let reply = Box::new(reply.clone());
            self.note_deed(at, || Deed::Sync { request, reply });
        }
        if let Reply::Lent(answer) = &reply {
            let asked = wanted.saturating_sub(held);
            // Where somebody asks, it may fetch half as many more, and two.
            let ahead = asked / 2 + 2 * u32::from(asked > 0);
            self.uses.note(answer.granted.seats.max(asked) + ahead);
        }
        self.note_write(now);
        if !self.is_free(sent_at) {
            self.free_since = None;
        } else if self.free_since.is_none() {
            self.free_since = Some(now);
        }
        Some(reply)
    }

    /// Draws a request to the world. `None`: the store is down, or there is nobody above.
    pub(crate) fn poll_upstream(&mut self, now: Millis) -> Option<SyncRequest> {
        let at = self.load(now)?;
        let request = self.ledger.poll_upstream(at);
        self.note_deed(at, || Deed::PollUpstream {
            request: request.clone().map(Box::new),
        });
        self.note_write(now);
        request
    }

    /// What it keeps in hand although slots are scarce, and how much of that was in use lately.
    pub(crate) fn kept(&mut self, now: Millis) -> Option<(u32, u32)> {
        let upstream = self.ledger.upstream.as_deref()?;
        let world = &upstream.outlook;
        let is_scarce = world.waiting > 0 || world.seats_free.min(world.admissions_free) == 0;
        let used = self.uses.tell(now);
        let wants = self.ledger.unmet();
        let kept = upstream.lease.held().seats;
        let kept = kept.saturating_sub(wants.first.saturating_add(wants.later));
        is_scarce.then_some((kept, used))
    }

    /// Applies a reply of the world. `false`: the store is down.
    pub(crate) fn handle_upstream(&mut self, reply: Reply, now: Millis) -> bool {
        let Some(at) = self.load(now) else {
            return false;
        };
        let heard = self.recorder.is_some().then(|| Box::new(reply.clone()));
        self.ledger.handle_upstream(reply, at);
        if let Some(reply) = heard {
            self.note_deed(at, || Deed::HandleUpstream { reply });
        }
        self.note_write(now);
        true
    }

    /// How long after its last request to the world the next one is due.
    pub(crate) fn upstream_period(&self) -> Span {
        self.ledger.upstream_period()
    }

    /// Loads the record, as a caller does who knows this store: returns the time by the store's
    /// clock.
    fn load(&mut self, now: Millis) -> Option<Millis> {
        if self.is_down(now) {
            return None;
        }
        let at = self.clock(now);
        let damage = std::mem::replace(&mut self.damage, Damage::None);
        if damage == Damage::None {
            return Some(at);
        }
        let life = Life(self.lives.word());
        if let Some(recorder) = &mut self.recorder {
            let record = Box::new(self.ledger.clone());
            recorder.note_damage(match damage {
                Damage::Wiped => Found::Nothing { life },
                Damage::None | Damage::Strange => Found::Older { record, life },
            });
        }
        match (self.role, damage) {
            (Role::Below(id), _) => self.ledger = Ledger::below_world(life, id),
            (Role::Root(lending), Damage::Wiped) => {
                self.ledger = Ledger::found_empty(life, lending, at);
            }
            (Role::Root(lending), _) => self.ledger.begin_epoch(life, lending, at),
        }
        Some(at)
    }

    fn note_deed(&mut self, at: Millis, deed: impl FnOnce() -> Deed) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note(at, deed(), &self.ledger);
        }
    }

    fn note_write(&mut self, now: Millis) {
        if let Some(history) = &mut self.history {
            history.note(&self.ledger, now);
        }
    }

    /// The next number of a counter; `None`: the store is down.
    pub(crate) fn take_number(&mut self, key: CounterKey, now: Millis) -> Option<u64> {
        if self.is_down(now) {
            return None;
        }
        let next = self.counters.entry(key).or_insert(0);
        let number = *next;
        *next += 1;
        Some(number)
    }

    pub(crate) fn take_down(&mut self, until: Millis) {
        self.down_until = self.down_until.max(until);
    }

    /// The store comes back empty, as another server.
    pub(crate) fn wipe(&mut self) {
        self.ledger = Ledger::new();
        self.counters.clear();
        self.damage = Damage::Wiped;
        self.free_since = None;
    }

    /// A replica takes over that has not got the last writes.
    pub(crate) fn lose_writes(&mut self, last: Span, now: Millis) {
        let old = self.history.as_mut().and_then(|h| h.before(now - last));
        if let Some(record) = old {
            self.ledger = record;
        }
        if self.damage == Damage::None {
            self.damage = Damage::Strange;
        }
        self.free_since = None;
    }

    /// The store's clock jumps.
    pub(crate) fn step_clock(&mut self, by_ms: i64) {
        self.clock_error_ms = self.clock_error_ms.saturating_add(by_ms);
    }

    fn has_been_free_since(&self, since: Millis, now: Millis) -> bool {
        let has_been = self.free_since.is_some_and(|at| at <= since);
        has_been && !self.is_down(now) && self.is_free(now)
    }

    /// Whether it has a seat and an admission to lend, at a time by the clocks that write tickets.
    fn is_free(&self, at: Millis) -> bool {
        let upstream = self.ledger.upstream.as_ref();
        upstream.is_none_or(|upstream| upstream.lease.is_live(at))
            && self.ledger.seats_to_admit() > 0
            && self.ledger.admissions_free(at, at.minute()) > 0
    }
}
