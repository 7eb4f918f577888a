//! Store in memory that can be wiped, rolled back, or set back, and that can grant in one step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anteroom_limit::leases::epoch::{Epoch, StoreIdentity};
use anteroom_limit::leases::message::Request;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::lease_store::step::{Step, Stepped};
use anteroom_limit_store::lease_store::{
    Expected, Loaded, Partition, StoredRecord, Swapped, Token,
};
use anteroom_limit_store::leases::record::{decode_epoch, encode_epoch};
use anteroom_limit_store::shared::TestTime;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Start of every run by the store's clock.
pub(crate) const BEGIN: u64 = 1_767_225_600_000_000;

/// Largest step by which the clock is set back, in microseconds.
pub(crate) const BACK_MAX: u64 = 3_000_000;

/// Store in memory. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    time: Time,
    state: Mutex<State>,
    /// Whether it grants in one step.
    takes_steps: AtomicBool,
    /// Excess that a step claims over what it granted.
    excess: AtomicU64,
}

#[derive(Debug)]
enum Time {
    Virtual(Instant),
    Test(TestTime),
}

#[derive(Debug, Default)]
struct State {
    identity: u64,
    longest_loss: Option<DurationUs>,
    /// Microseconds by which its clock is behind.
    behind: u64,
    records: Records,
    /// Records after each write.
    past: Vec<(u64, Records)>,
    reads: u64,
}

type Records = BTreeMap<Name, Record>;
/// Key of a record: the partition, and the client unless it is the epoch's.
type Name = (u32, Option<(String, u128)>);

#[derive(Clone, Debug)]
struct Record {
    kept: StoredRecord,
    /// Expiry; `None` for records that are kept.
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
            excess: AtomicU64::new(0),
        }))
    }

    /// Makes it grant in two round trips, like a store without steps.
    pub(crate) fn disable_steps(&self) {
        self.0.takes_steps.store(false, Ordering::SeqCst);
    }

    pub(crate) fn takes_steps(&self) -> bool {
        self.0.takes_steps.load(Ordering::SeqCst)
    }

    /// Makes steps claim `more` than they granted.
    pub(crate) fn overstate(&self, more: u64) {
        self.0.excess.store(more, Ordering::SeqCst);
    }

    /// Returns the true time, whatever the store's clock shows.
    pub(crate) fn real(&self) -> u64 {
        match &self.0.time {
            Time::Virtual(began) => {
                BEGIN + u64::try_from(began.elapsed().as_micros()).expect("it is short")
            }
            Time::Test(time) => time.now().0,
        }
    }

    /// Makes it promise to lack no more than this when it comes back.
    pub(crate) fn promise(&self, longest_loss: DurationUs) {
        self.0.state.lock().longest_loss = Some(longest_loss);
    }

    /// Overwrites the promise in the epoch's record with that of the store.
    pub(crate) fn weaken_epoch(&self) {
        let mut state = self.0.state.lock();
        let longest_loss = state.longest_loss;
        let kept = state.records.get_mut(&(0, None)).expect("there is one");
        let mut epoch = decode_epoch(&kept.kept.value).unwrap();
        epoch.longest_loss = longest_loss;
        kept.kept.value = encode_epoch(&epoch);
    }

    /// Loses all records and the identity.
    pub(crate) fn wipe(&self) {
        let mut state = self.0.state.lock();
        state.identity += 1;
        state.records.clear();
    }

    /// Loses all records but keeps the identity.
    pub(crate) fn flush(&self) {
        self.0.state.lock().records.clear();
    }

    /// Loses what was written within `span`, and the identity.
    pub(crate) fn roll_back(&self, span: u64) {
        let since = self.real() - span;
        let mut state = self.0.state.lock();
        state.identity += 1;
        state.past.retain(|(at, _)| *at <= since);
        let last = state.past.last().map(|(_, records)| records.clone());
        state.records = last.unwrap_or_default();
    }

    /// Sets the clock back.
    pub(crate) fn step_back(&self, span: u64) {
        self.0.state.lock().behind += span;
    }

    /// Overwrites the records of all clients.
    pub(crate) fn overwrite_clients(&self, value: &[u8]) {
        let mut state = self.0.state.lock();
        let clients = state.records.iter_mut();
        for (_, record) in clients.filter(|((_, client), _)| client.is_some()) {
            record.kept.value = value.to_vec();
        }
    }

    /// Returns the record of a client.
    pub(crate) fn client(&self, limit: &str, key: u128) -> Vec<u8> {
        let state = self.0.state.lock();
        let name = (0, Some((limit.to_owned(), key)));
        state.records[&name].kept.value.clone()
    }

    /// Overwrites the record of the epoch.
    pub(crate) fn overwrite_epoch(&self, value: &[u8]) {
        let mut state = self.0.state.lock();
        let epoch = state.records.get_mut(&(0, None));
        epoch.expect("there is one").kept.value = value.to_vec();
    }

    /// Returns the time until a client's record expires.
    pub(crate) fn forgets_after(&self, limit: &str, key: u128) -> Option<DurationUs> {
        let state = self.0.state.lock();
        let name = (0, Some((limit.to_owned(), key)));
        let forget_at = state.records.get(&name)?.forget_at?;
        Some(DurationUs(forget_at - self.real()))
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        let mut state = self.0.state.lock();
        state.forget(self.real());
        state.records.len()
    }

    /// Returns the number of reads.
    pub(crate) fn reads(&self) -> u64 {
        self.0.state.lock().reads
    }

    pub(crate) fn load(&self, partition: Partition, client: Option<&(String, u128)>) -> Loaded {
        let real = self.real();
        let mut state = self.0.state.lock();
        state.forget(real);
        state.reads += 1;
        state.load(real, partition, client)
    }

    pub(crate) fn swap(
        &self,
        partition: Partition,
        client: Option<(String, u128)>,
        write: &OwnedWrite,
    ) -> Swapped {
        let real = self.real();
        let mut state = self.0.state.lock();
        state.forget(real);
        let found = state.load(real, partition, client.as_ref());
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
            .insert((partition.0, client), Record { kept, forget_at });
        state.remember(real);
        Swapped::Written
    }

    pub(crate) fn step(
        &self,
        partition: Partition,
        client: (String, u128),
        step: &OwnedStep,
    ) -> Stepped {
        let real = self.real();
        let mut state = self.0.state.lock();
        state.forget(real);
        state.reads += 1;
        let found = state.load(real, partition, Some(&client));
        let step = step.as_step();
        if found.identity != step.store() {
            return Stepped::OtherStore;
        }
        let Some(taken) = step.take(&found) else {
            return Stepped::NotTaken(found);
        };
        let (token, value) = (step.token, taken.value);
        let record = Record {
            kept: StoredRecord { token, value },
            forget_at: Some(real + taken.keep_for.0),
        };
        state.records.insert((partition.0, Some(client)), record);
        state.remember(real);
        let mut grant = taken.grant;
        let excess = u32::try_from(self.0.excess.load(Ordering::SeqCst));
        grant.granted += excess.expect("the excess is small");
        Stepped::Granted(grant)
    }
}

impl State {
    fn forget(&mut self, real: u64) {
        let is_kept = |record: &Record| record.forget_at.is_none_or(|at| real < at);
        self.records.retain(|_, record| is_kept(record));
    }

    /// Saves the records for [`Memory::roll_back`].
    fn remember(&mut self, real: u64) {
        let now = self.records.clone();
        self.past.push((real, now));
        // Keeps the newest state that is older than any rollback, and all later ones.
        let oldest = real.saturating_sub(BACK_MAX);
        while self.past.get(1).is_some_and(|(at, _)| *at <= oldest) {
            self.past.remove(0);
        }
    }

    fn load(
        &self,
        real: u64,
        Partition(partition): Partition,
        client: Option<&(String, u128)>,
    ) -> Loaded {
        let find = |client: Option<(String, u128)>| {
            let record = self.records.get(&(partition, client));
            record.map(|record| record.kept.clone())
        };
        Loaded {
            client: client.and_then(|client| find(Some(client.clone()))),
            epoch: find(None),
            now: TimestampUs(real - self.behind),
            identity: StoreIdentity(self.identity),
            longest_loss: self.longest_loss,
        }
    }
}

/// Write in flight.
pub(crate) struct OwnedWrite {
    pub(crate) expected: Expected,
    pub(crate) kept: StoredRecord,
    pub(crate) keep_for: DurationUs,
}

/// Step in flight.
pub(crate) struct OwnedStep {
    epoch: Epoch,
    epoch_token: Token,
    token: Token,
    leased_limit: LeasedLimit,
    request: Request,
}

impl OwnedStep {
    pub(crate) fn of(step: &Step<'_>) -> Self {
        Self {
            epoch: *step.epoch,
            epoch_token: step.epoch_token,
            token: step.token,
            leased_limit: *step.leased_limit,
            request: *step.request,
        }
    }

    fn as_step(&self) -> Step<'_> {
        Step {
            epoch: &self.epoch,
            epoch_token: self.epoch_token,
            token: self.token,
            leased_limit: &self.leased_limit,
            request: &self.request,
        }
    }
}

/// Random numbers that follow from a seed.
#[derive(Debug)]
pub(crate) struct Rng(AtomicU64);

impl Rng {
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
