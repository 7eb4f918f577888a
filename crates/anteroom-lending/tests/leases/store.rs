//! A store in memory whose nodes are far away, lose messages, and find it wiped or set back.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anteroom_counts::lent::step::{Step, Stepped};
use anteroom_counts::lent::{Kept, LentRecords, LentTo, Loaded, Shelf, Swapped, Token, Write};
use anteroom_counts::shared::{BoxFuture, CountsError, TestTime};
use anteroom_limits::lending::epoch::{Epoch, StoreIdentity};
use anteroom_limits::lending::message::Request;
use anteroom_limits::lending::widened::Lending;
use anteroom_limits::time::{MicroSpan, Micros};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

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

    /// Writes something over the epoch's record.
    pub(crate) fn spoil_epoch(&self, value: &[u8]) {
        let mut state = self.0.state.lock();
        let epoch = state.records.get_mut(&(0, None));
        epoch.expect("there is one").kept.value = value.to_vec();
    }

    /// In how long a client is forgotten.
    pub(crate) fn forgets_after(&self, limit: &str, key: u128) -> Option<MicroSpan> {
        let state = self.0.state.lock();
        let name = (0, Some((limit.to_owned(), key)));
        let forget_at = state.records.get(&name)?.forget_at?;
        Some(MicroSpan(forget_at - self.real()))
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

    fn load(&self, shelf: Shelf, client: Option<&(String, u128)>) -> Loaded {
        let real = self.real();
        let mut state = self.0.state.lock();
        state.forget(real);
        state.reads += 1;
        state.load(real, shelf, client)
    }

    fn swap(&self, shelf: Shelf, client: Option<(String, u128)>, write: &Writing) -> Swapped {
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

    fn step(&self, shelf: Shelf, client: (String, u128), asked: &Stepping) -> Stepped {
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
        Stepped::Lent(lent)
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
            now: Micros(real - self.behind),
            identity: StoreIdentity(self.identity),
        }
    }
}

struct Writing {
    expected: anteroom_counts::lent::Expected,
    kept: Kept,
    keep_for: MicroSpan,
}

/// A step, while it is on its way.
struct Stepping {
    epoch: Epoch,
    epoch_token: Token,
    token: Token,
    lending: Lending,
    request: Request,
}

impl Stepping {
    fn of(step: &Step<'_>) -> Self {
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

/// How the way to the store is at present.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Network {
    /// One way, at most and at least.
    pub(crate) delay: (Duration, Duration),
    /// Of a thousand messages. Half of them arrive, and their answer does not.
    pub(crate) lost: u64,
    /// Of a thousand messages, those that arrive two seconds late.
    pub(crate) late: u64,
    /// Nothing arrives.
    pub(crate) is_cut: bool,
    /// It says at once that it cannot.
    pub(crate) is_down: bool,
}

/// One node's way to the store.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    memory: Memory,
    network: Arc<Mutex<Network>>,
    draw: Arc<Draw>,
}

impl Way {
    pub(crate) fn new(memory: &Memory, network: Network, seed: u64) -> Self {
        Self {
            memory: memory.clone(),
            network: Arc::new(Mutex::new(network)),
            draw: Arc::new(Draw::new(seed)),
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Network)) {
        change(&mut self.network.lock());
    }

    /// What is sent arrives, or not, whether anybody still waits or not.
    async fn travel<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Memory) -> T + Send + 'static,
    ) -> Result<T, CountsError> {
        let network = *self.network.lock();
        if network.is_down {
            return Err(CountsError::Unreachable {
                place: self.place().to_owned(),
                source: "it is down".into(),
            });
        }
        if network.is_cut {
            return pending().await;
        }
        let is_lost = self.draw.below(1_000) < network.lost;
        let arrives = !is_lost || self.draw.below(2) == 0;
        let (mut there, back) = (self.delay(network), self.delay(network));
        if self.draw.below(1_000) < network.late {
            there += Duration::from_secs(2);
        }
        let memory = self.memory.clone();
        let (tell, told) = oneshot::channel();
        if arrives {
            tokio::spawn(async move {
                pass(there).await;
                let done = act(&memory);
                pass(back).await;
                if !is_lost {
                    // Nobody may be waiting any more.
                    let _ = tell.send(done);
                }
            });
        }
        match told.await {
            Ok(done) => Ok(done),
            Err(_) => pending().await,
        }
    }

    fn delay(&self, network: Network) -> Duration {
        let (most, least) = network.delay;
        let micros = u64::try_from((most - least).as_micros()).expect("it is short");
        least + Duration::from_micros(self.draw.below(micros + 1))
    }
}

/// Virtual time passes.
async fn pass(span: Duration) {
    if !span.is_zero() {
        sleep(span).await; // tidy: paused time
    }
}

fn named(client: LentTo<'_>) -> (String, u128) {
    (client.limit.to_owned(), client.key.0)
}

fn writing(write: Write<'_>, keep_for: MicroSpan) -> Writing {
    let (token, value) = (write.token, write.value.to_vec());
    Writing {
        expected: write.expected,
        kept: Kept { token, value },
        keep_for,
    }
}

impl LentRecords for Way {
    fn place(&self) -> &str {
        "the store in memory"
    }

    fn shelves(&self) -> u32 {
        1
    }

    fn load<'a>(
        &'a self,
        shelf: Shelf,
        client: Option<LentTo<'a>>,
    ) -> BoxFuture<'a, Result<Loaded, CountsError>> {
        let client = client.map(named);
        Box::pin(self.travel(move |memory| memory.load(shelf, client.as_ref())))
    }

    fn swap<'a>(
        &'a self,
        shelf: Shelf,
        client: LentTo<'a>,
        write: Write<'a>,
        keep_for: MicroSpan,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        let (client, write) = (named(client), writing(write, keep_for));
        Box::pin(self.travel(move |memory| memory.swap(shelf, Some(client), &write)))
    }

    fn swap_epoch<'a>(
        &'a self,
        shelf: Shelf,
        write: Write<'a>,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        let write = writing(write, MicroSpan::ZERO);
        Box::pin(self.travel(move |memory| memory.swap(shelf, None, &write)))
    }

    fn step<'a>(
        &'a self,
        shelf: Shelf,
        client: LentTo<'a>,
        step: Step<'a>,
    ) -> Option<BoxFuture<'a, Result<Stepped, CountsError>>> {
        if !self.memory.0.takes_steps.load(Ordering::SeqCst) {
            return None;
        }
        let (client, step) = (named(client), Stepping::of(&step));
        Some(Box::pin(
            self.travel(move |memory| memory.step(shelf, client, &step)),
        ))
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
