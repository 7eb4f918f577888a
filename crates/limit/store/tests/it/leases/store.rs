//! A store in memory that is wiped, rolled back, or set back, and that lends in one step if it is
//! to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anteroom_limit::lending::epoch::{Epoch, StoreIdentity};
use anteroom_limit::lending::message::Request;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::lent::step::{Step, Stepped};
use anteroom_limit_store::lent::{Expected, Kept, Loaded, Shelf, Swapped, Token};
use anteroom_limit_store::shared::TestTime;
use parking_lot::Mutex;
use tokio::time::Instant;

/// When every run begins, by the store's clock.
pub(crate) const BEGIN: u64 = 1_767_225_600_000_000;

/// How far it is set back at most.
pub(crate) const BACK_MAX: u64 = 3_000_000;

/// The store. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    time: Time,
    state: Mutex<State>,
    /// Whether it lends in one step.
    takes_steps: AtomicBool,
    /// By how much a step says that it lent more.
    lies: AtomicU64,
}

#[derive(Debug)]
enum Time {
    Virtual(Instant),
    Test(TestTime),
}

#[derive(Debug, Default)]
struct State {
    identity: u64,
    /// How far its clock is behind.
    behind: u64,
    records: Records,
    /// What there was after each write.
    past: Vec<(u64, Records)>,
    reads: u64,
}

type Records = BTreeMap<Name, Record>;
/// The shelf, and the client if it is not the epoch.
type Name = (u32, Option<(String, u128)>);

#[derive(Clone, Debug)]
struct Record {
    kept: Kept,
    /// `None`: never.
    forget_at: Option<u64>,
}

impl Memory {
    pub(crate) fn in_virtual_time() -> Self {
        Self::by(Time::Virtual(Instant::now()))
    }

    pub(crate) fn at(time: TestTime) -> Self {
        Self::by(Time::Test(time))
    }

    fn by(time: Time) -> Self {
        Self(Arc::new(Shared {
            time,
            state: Mutex::default(),
            takes_steps: AtomicBool::new(true),
            lies: AtomicU64::new(0),
        }))
    }

    /// It lends in two round trips, as a store must that has no steps.
    pub(crate) fn refuse_steps(&self) {
        self.0.takes_steps.store(false, Ordering::SeqCst);
    }

    pub(crate) fn takes_steps(&self) -> bool {
        self.0.takes_steps.load(Ordering::SeqCst)
    }

    /// Whatever a step lends, it says that it were so many more.
    pub(crate) fn lie(&self, more: u64) {
        self.0.lies.store(more, Ordering::SeqCst);
    }

    /// What time it really is, whatever its clock says.
    pub(crate) fn real(&self) -> u64 {
        match &self.0.time {
            Time::Virtual(began) => {
                BEGIN + u64::try_from(began.elapsed().as_micros()).expect("it is short")
            }
            Time::Test(time) => time.now().0,
        }
    }

    /// All is gone, and it is another one.
    pub(crate) fn wipe(&self) {
        let mut state = self.0.state.lock();
        state.identity += 1;
        state.records.clear();
    }

    /// All is gone, and it is still the same.
    pub(crate) fn flush(&self) {
        self.0.state.lock().records.clear();
    }

    /// What was written since `span` is gone, and it is another one.
    pub(crate) fn roll_back(&self, span: u64) {
        let since = self.real() - span;
        let mut state = self.0.state.lock();
        state.identity += 1;
        state.past.retain(|(at, _)| *at <= since);
        let last = state.past.last().map(|(_, records)| records.clone());
        state.records = last.unwrap_or_default();
    }

    /// Sets its clock back.
    pub(crate) fn step_back(&self, span: u64) {
        self.0.state.lock().behind += span;
    }

    /// Writes something over the record of every client.
    pub(crate) fn spoil_clients(&self, value: &[u8]) {
        let mut state = self.0.state.lock();
        let clients = state.records.iter_mut();
        for (_, record) in clients.filter(|((_, client), _)| client.is_some()) {
            record.kept.value = value.to_vec();
        }
    }

    /// The bytes that are kept of a client.
    pub(crate) fn client(&self, limit: &str, key: u128) -> Vec<u8> {
        let state = self.0.state.lock();
        let name = (0, Some((limit.to_owned(), key)));
        state.records[&name].kept.value.clone()
    }

    /// Writes something over the epoch's record.
    pub(crate) fn spoil_epoch(&self, value: &[u8]) {
        let mut state = self.0.state.lock();
        let epoch = state.records.get_mut(&(0, None));
        epoch.expect("there is one").kept.value = value.to_vec();
    }

    /// In how long a client is forgotten.
    pub(crate) fn forgets_after(&self, limit: &str, key: u128) -> Option<DurationUs> {
        let state = self.0.state.lock();
        let name = (0, Some((limit.to_owned(), key)));
        let forget_at = state.records.get(&name)?.forget_at?;
        Some(DurationUs(forget_at - self.real()))
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        let mut state = self.0.state.lock();
        state.forget(self.real());
        state.records.len()
    }

    /// How often it was read.
    pub(crate) fn reads(&self) -> u64 {
        self.0.state.lock().reads
    }

    pub(crate) fn load(&self, shelf: Shelf, client: Option<&(String, u128)>) -> Loaded {
        let real = self.real();
        let mut state = self.0.state.lock();
        state.forget(real);
        state.reads += 1;
        state.load(real, shelf, client)
    }

    pub(crate) fn swap(
        &self,
        shelf: Shelf,
        client: Option<(String, u128)>,
        write: &Writing,
    ) -> Swapped {
        let real = self.real();
        let mut state = self.0.state.lock();
        state.forget(real);
        let found = state.load(real, shelf, client.as_ref());
        if found.identity != write.expected.identity {
            return Swapped::OtherStore;
        }
        let mut expected = write.expected;
        if client.is_none() {
            expected.client = Token(0);
        }
        if found.expected() != expected {
            return Swapped::Conflict(found);
        }
        let forget_at = client.is_some().then_some(real + write.keep_for.0);
        let kept = write.kept.clone();
        state
            .records
            .insert((shelf.0, client), Record { kept, forget_at });
        state.remember(real);
        Swapped::Written
    }

    pub(crate) fn step(&self, shelf: Shelf, client: (String, u128), asked: &Stepping) -> Stepped {
        let real = self.real();
        let mut state = self.0.state.lock();
        state.forget(real);
        state.reads += 1;
        let found = state.load(real, shelf, Some(&client));
        let step = asked.step();
        if found.identity != step.meant_for() {
            return Stepped::OtherStore;
        }
        let Some(taken) = step.take(&found) else {
            return Stepped::Not(found);
        };
        let (token, value) = (step.token, taken.value);
        let record = Record {
            kept: Kept { token, value },
            forget_at: Some(real + taken.keep_for.0),
        };
        state.records.insert((shelf.0, Some(client)), record);
        state.remember(real);
        let mut lent = taken.lent;
        let lies = u32::try_from(self.0.lies.load(Ordering::SeqCst));
        lent.held += lies.expect("it is a small lie");
        Stepped::GrantOutcome(lent)
    }
}

impl State {
    fn forget(&mut self, real: u64) {
        let is_kept = |record: &Record| record.forget_at.is_none_or(|at| real < at);
        self.records.retain(|_, record| is_kept(record));
    }

    /// For whoever goes back.
    fn remember(&mut self, real: u64) {
        let now = self.records.clone();
        self.past.push((real, now));
        // One that is older than anybody goes back is kept, and what came after it.
        let oldest = real.saturating_sub(BACK_MAX);
        while self.past.get(1).is_some_and(|(at, _)| *at <= oldest) {
            self.past.remove(0);
        }
    }

    fn load(&self, real: u64, Shelf(shelf): Shelf, client: Option<&(String, u128)>) -> Loaded {
        let find = |client: Option<(String, u128)>| {
            let record = self.records.get(&(shelf, client));
            record.map(|record| record.kept.clone())
        };
        Loaded {
            client: client.and_then(|client| find(Some(client.clone()))),
            epoch: find(None),
            now: TimestampUs(real - self.behind),
            identity: StoreIdentity(self.identity),
        }
    }
}

/// A write, while it is on its way.
pub(crate) struct Writing {
    pub(crate) expected: Expected,
    pub(crate) kept: Kept,
    pub(crate) keep_for: DurationUs,
}

/// A step, while it is on its way.
pub(crate) struct Stepping {
    epoch: Epoch,
    epoch_token: Token,
    token: Token,
    lending: LeasedLimit,
    request: Request,
}

impl Stepping {
    pub(crate) fn of(step: &Step<'_>) -> Self {
        Self {
            epoch: *step.epoch,
            epoch_token: step.epoch_token,
            token: step.token,
            lending: *step.lending,
            request: *step.request,
        }
    }

    fn step(&self) -> Step<'_> {
        Step {
            epoch: &self.epoch,
            epoch_token: self.epoch_token,
            token: self.token,
            lending: &self.lending,
            request: &self.request,
        }
    }
}

/// Numbers by chance, the same for the same seed. Clones of what holds it share it.
#[derive(Debug)]
pub(crate) struct Draw(AtomicU64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
    pub(crate) fn number(&self) -> u64 {
        let step = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    pub(crate) fn within(&self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }
}
