//! Does the script lend what the algorithm lends, and leave behind what it would?
//!
//! Small limits and the largest, moments close to the edges at which algorithms change their mind, a clock that goes
//! back, limits and epochs that change.

use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_counts::CallKey;
use anteroom_counts::lent::step::{Step, Stepped};
use anteroom_counts::lent::{
    Kept, LentRecords, LentTo, Loaded, Shelf, Swapped, Token, Write, record,
};
use anteroom_counts::shared::TestTime;
use anteroom_limits::fixed_window::FixedWindow;
use anteroom_limits::gcra::Gcra;
use anteroom_limits::lending::epoch::{Before, Epoch, EpochId};
use anteroom_limits::lending::message::{Request, RequestId};
use anteroom_limits::lending::parent::lend;
use anteroom_limits::lending::widened::Lending;
use anteroom_limits::policy::Policy;
use anteroom_limits::rate::Rate;
use anteroom_limits::sliding_log::SlidingLog;
use anteroom_limits::sliding_window::SlidingWindow;
use anteroom_limits::sub_windows::SubWindows;
use anteroom_limits::sub_windows_strict::SubWindowsStrict;
use anteroom_limits::time::{MicroSpan, Micros};
use anteroom_limits::token_bucket::TokenBucket;
use anteroom_testkit::redis_server::{RedisServer, Reply};
use anteroom_valkey::ValkeyLent;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::single;

const SHELF: Shelf = Shelf(0);
const START: u64 = 1_767_225_600_000_000;
/// Windows, each with numbers of parts that divide it. One is no multiple of anything.
const WINDOWS: [(u64, [u32; 4]); 4] = [
    (1_000_000, [1, 2, 5, 100]),
    (1_000_001, [1, 101, 1, 101]),
    (60_000_000, [1, 2, 4, 15]),
    (366 * 86_400_000_000, [1, 3, 4, 120]),
];
/// Sequences for each algorithm. Each is some hundreds of round trips.
const CASES: u32 = 64;
/// For how many ms more values are kept where a test brings the time along, and how long it may take until it looks.
const SLACK_MS: u64 = 3_600_000;
const LOOK_MS: u64 = 5_000;
/// What is to be kept for longer is kept for ever.
const LONGEST_MS: u64 = 4_503_599_627_370;

/// A server for many clients, one after the other.
struct Arena {
    server: RedisServer,
    store: ValkeyLent,
    time: TestTime,
    clients: AtomicU64,
}

/// One client.
struct Client<'a> {
    arena: &'a Arena,
    key: CallKey,
    epoch: Epoch,
    lending: Lending,
    now: Micros,
    requests: u64,
    /// How often the script has lent.
    lent: u64,
}

impl Arena {
    async fn start() -> Self {
        let server = RedisServer::start().await;
        let time = TestTime::default();
        let address = single(server.port());
        let store = ValkeyLent::with_time(&address, "anteroom", time.clone()).unwrap();
        let read = store.load(SHELF, None).await.unwrap();
        let write = Write {
            expected: read.expected(),
            token: Token(7),
            value: b"epoch",
        };
        store.swap_epoch(SHELF, write).await.unwrap();
        Self {
            server,
            store,
            time,
            clients: AtomicU64::new(0),
        }
    }

    async fn client(&self, lending: Lending, before: Before) -> Client<'_> {
        let client = self.clients.fetch_add(1, Ordering::SeqCst);
        let read = self.store.load(SHELF, None).await.unwrap();
        Client {
            arena: self,
            key: CallKey(u128::from(client)),
            epoch: Epoch {
                id: EpochId {
                    number: 1,
                    random: u64::MAX,
                },
                identity: read.identity,
                began_at: Micros(START),
                before,
            },
            lending,
            now: Micros(START),
            requests: 0,
            lent: 0,
        }
    }
}

impl Client<'_> {
    fn name(&self) -> LentTo<'_> {
        LentTo {
            limit: "api",
            key: self.key,
        }
    }

    async fn load(&self) -> Loaded {
        let store = &self.arena.store;
        store.load(SHELF, Some(self.name())).await.unwrap()
    }

    /// Asks as a node does, and compares with what the algorithm says.
    async fn ask(&mut self, least: u32, wants: u32, most: u32) {
        self.requests += 1;
        self.arena.time.set(self.now);
        let request = Request {
            id: RequestId { life: 1, number: 1 },
            least,
            wants,
            most,
        };
        let step = Step {
            epoch: &self.epoch,
            epoch_token: Token(7),
            token: Token(u128::from(self.requests) + 100),
            lending: &self.lending,
            request: &request,
        };
        let found = self.load().await;
        let expected = step.take(&found);
        let stepped = self.arena.store.step(SHELF, self.name(), step);
        let stepped = stepped.unwrap().await.unwrap();
        let there = self.load().await;
        let told = format!(
            "{request:?} at {:?} by {:?} from {found:?}",
            self.now, self.lending
        );
        let Some(expected) = expected else {
            assert_eq!(stepped, Stepped::Not(found.clone()), "{told}");
            assert_eq!(there, found, "{told}");
            self.go_the_usual_way(&request, &found).await;
            return;
        };
        assert_eq!(stepped, Stepped::Lent(expected.lent), "{told}");
        let (token, value) = (step.token, expected.value);
        assert_eq!(there.client, Some(Kept { token, value }), "{told}");
        self.check_kept(expected.keep_for, &told).await;
        self.lent += 1;
    }

    /// Whether what was just written is kept as long as the algorithm says, and hardly longer.
    async fn check_kept(&self, keep_for: MicroSpan, told: &str) {
        let name = format!("anteroom:{{lent~0}}:api:{:032x}", self.key.0);
        let Reply::Int(ms) = self.arena.server.tell(&["PTTL", &name]).await else {
            panic!("no number of ms: {told}");
        };
        let expected = keep_for.0.div_ceil(1_000);
        match u64::try_from(ms) {
            Ok(ms) => {
                let kept = (ms + LOOK_MS).checked_sub(SLACK_MS);
                let kept = kept.unwrap_or_else(|| panic!("{ms} ms: {told}"));
                assert!(
                    (expected..=expected + LOOK_MS).contains(&kept),
                    "{ms} ms: {told}"
                );
            }
            Err(_) => assert!(expected >= LONGEST_MS, "for ever: {told}"),
        }
    }

    /// What a node does then.
    async fn go_the_usual_way(&self, request: &Request, found: &Loaded) {
        let kept = found.client.as_ref();
        let record = kept.map(|kept| record::decode(&kept.value).unwrap());
        let lent = lend(
            &self.lending,
            &self.epoch,
            record.as_ref(),
            request,
            found.now,
        );
        let Some(lent) = lent.write else {
            return;
        };
        let write = Write {
            expected: found.expected(),
            token: Token(u128::from(self.requests) + 100),
            value: &record::encode(&lent.record),
        };
        // Longer than any test takes.
        let kept = MicroSpan::from_secs(3_600);
        let swapped = self.arena.store.swap(SHELF, self.name(), write, kept).await;
        assert_eq!(swapped.unwrap(), Swapped::Written);
    }

    async fn make(&mut self, made: Move) {
        let widened = self.lending.widened();
        let window = widened.rate().window();
        let width = widened
            .counters()
            .map_or(window, |counters| counters.width());
        match made {
            Move::Later(parts) => self.now = self.now + MicroSpan(window.0 / 1_000 * parts),
            Move::Little(micros) => self.now = self.now + MicroSpan(micros),
            Move::Edge(past) => {
                self.now = Micros((self.now.0 / width.0 + 1) * width.0 + past - 1);
            }
            Move::Window(past) => self.now = self.now + MicroSpan(window.0 + past - 1),
            Move::Back(parts) => self.now = self.now - MicroSpan(window.0 / 1_000 * parts),
            Move::Ask(least, wants, most) => self.ask(least, wants, most).await,
            Move::Flood => {
                for _ in 0..12 {
                    self.ask(1, 1, 9).await;
                }
            }
            Move::Change(lending) => self.lending = lending,
            Move::Loss => {
                self.epoch.id.number += 1;
                self.epoch.began_at = self.now;
                self.epoch.before = Before::Lost;
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Move {
    /// So many thousandths of a window.
    Later(u64),
    /// A few microseconds.
    Little(u64),
    /// To the next edge of a counter, this many microseconds past the one before it.
    Edge(u64),
    /// A window, this many microseconds past the one before it.
    Window(u64),
    /// A clock that is set back, by so many thousandths of a window.
    Back(u64),
    /// At least, as many as somebody waits for, and at most.
    Ask(u32, u32, u32),
    /// Requests of one call and some more, until there is nothing.
    Flood,
    Change(Lending),
    /// Another epoch, before which all may have been spent.
    Loss,
}

/// Settings of the algorithm of this number; the same leases as if nobody had said how long.
fn lendings(kind: usize) -> impl Strategy<Value = Lending> {
    let calls = prop_oneof![1 => Just(0u32), 20 => 1u32..40, 2 => 99_990u32..100_000];
    let large = prop_oneof![6 => Just(false), 1 => Just(true)];
    let extra = (0usize..4, 1u32..60, 0u32..8, 0usize..4, large);
    let policy = move |(calls, (window, burst, initial, parts, is_large)): (u32, _)| {
        let (window, divisors): (u64, [u32; 4]) = WINDOWS[window];
        let few = Rate::new(calls, MicroSpan(window)).ok()?;
        let many = if is_large { u32::MAX - burst } else { calls };
        let rate = Rate::new(many, MicroSpan(window)).ok()?;
        let capacity = if is_large { u32::MAX - 20 } else { burst };
        Some(match kind {
            0 => Policy::SlidingLog(SlidingLog::new(few).ok()?),
            1 => Policy::FixedWindow(FixedWindow::new(rate)),
            2 => Policy::SlidingWindow(SlidingWindow::new(rate)),
            3 => Policy::SubWindows(SubWindows::new(rate, divisors[parts]).ok()?),
            4 => Policy::SubWindowsStrict(SubWindowsStrict::new(rate, divisors[parts]).ok()?),
            5 => Policy::TokenBucket(TokenBucket::new(rate, capacity, capacity + initial).ok()?),
            _ => Policy::Gcra(Gcra::new(rate, capacity).ok()?),
        })
    };
    let lending = move |both| Lending::new(policy(both)?).ok();
    (calls, extra).prop_filter_map("it cannot be lent", lending)
}

fn moves(kind: usize) -> impl Strategy<Value = Move> {
    let time = prop_oneof![
        4 => (1u64..400).prop_map(Move::Later),
        1 => (400u64..3_000).prop_map(Move::Later),
        2 => (0u64..4).prop_map(Move::Little),
        4 => (0u64..3).prop_map(Move::Edge),
        2 => (0u64..3).prop_map(Move::Window),
        1 => (0u64..1_500).prop_map(Move::Back),
    ];
    let calls = || prop_oneof![8 => 0u32..8, 2 => 8u32..60, 1 => (0u32..3).prop_map(|less| u32::MAX - less)];
    prop_oneof![
        9 => time,
        12 => (calls(), calls(), calls()).prop_map(|(least, wants, more)| {
            // As a node asks: no more is wanted than at most, and the least is part of what somebody waits for.
            let wants = wants.max(least);
            Move::Ask(least, wants, wants.saturating_add(more))
        }),
        2 => Just(Move::Flood),
        2 => lendings(kind).prop_map(Move::Change),
        1 => (0usize..7).prop_flat_map(lendings).prop_map(Move::Change),
        1 => Just(Move::Loss),
    ]
}

/// Lets the script and the algorithm do the same, many times over.
fn compare(kind: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let arena = runtime.block_on(Arena::start());
    let cases = std::env::var("PROPTEST_CASES").map_or(CASES, |cases| cases.parse().unwrap());
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let before = prop::sample::select(vec![Before::Nothing, Before::Unknown, Before::Lost]);
    let moves = prop::collection::vec(moves(kind), 1..40);
    let sequences = (lendings(kind), before, moves);
    let lent = AtomicU64::new(0);
    let compared = TestRunner::new(config).run(&sequences, |(lending, before, moves)| {
        runtime.block_on(async {
            let mut client = arena.client(lending, before).await;
            for made in moves {
                client.make(made).await;
            }
            lent.fetch_add(client.lent, Ordering::SeqCst);
        });
        Ok(())
    });
    if let Err(failure) = compared {
        panic!("{failure}\n{}", arena.server.log());
    }
    let lent = lent.into_inner();
    assert!(lent > u64::from(cases), "the script lent {lent} times only");
}

#[test]
fn sliding_log() {
    compare(0);
}

#[test]
fn fixed_window() {
    compare(1);
}

#[test]
fn sliding_window() {
    compare(2);
}

#[test]
fn sub_windows() {
    compare(3);
}

#[test]
fn sub_windows_strict() {
    compare(4);
}

#[test]
fn token_bucket() {
    compare(5);
}

#[test]
fn gcra() {
    compare(6);
}

#[tokio::test]
async fn a_burst_that_scripts_cannot_count_is_lent_the_usual_way() {
    let arena = Arena::start().await;
    let year = MicroSpan::from_secs(366 * 86_400);
    let gcra = |burst| Policy::Gcra(Gcra::new(Rate::new(1, year).unwrap(), burst).unwrap());
    for (burst, can) in [(140, true), (150, false)] {
        let lending = Lending::new(gcra(burst)).unwrap();
        let client = arena.client(lending, Before::Nothing).await;
        let request = Request {
            id: RequestId { life: 1, number: 1 },
            least: 1,
            wants: 1,
            most: 1,
        };
        let step = Step {
            epoch: &client.epoch,
            epoch_token: Token(7),
            token: Token(8),
            lending: &client.lending,
            request: &request,
        };
        let stepped = arena.store.step(SHELF, client.name(), step);
        assert_eq!(stepped.is_some(), can, "{burst}");
    }
}

/// A log of many entries is left to the node, and one that is short again is not.
#[tokio::test]
async fn a_long_log_is_lent_from_the_usual_way() {
    let arena = Arena::start().await;
    let rate = Rate::new(10_000, MicroSpan::from_secs(60)).unwrap();
    let log = Policy::SlidingLog(SlidingLog::new(rate).unwrap());
    let lending = Lending::new(log).unwrap();
    let mut client = arena.client(lending, Before::Nothing).await;
    let mut longest = 0;
    for _ in 0..900 {
        client.now = client.now + MicroSpan(10_000);
        client.arena.time.set(client.now);
        let found = client.load().await;
        longest = found.client.as_ref().map_or(0, |kept| kept.value.len());
        if longest > 4_500 {
            break;
        }
        let request = Request {
            id: RequestId { life: 1, number: 1 },
            least: 1,
            wants: 1,
            most: 1,
        };
        client.requests += 1;
        client.go_the_usual_way(&request, &found).await;
    }
    assert!(longest > 4_500, "{longest}");
    let request = Request {
        id: RequestId { life: 1, number: 1 },
        least: 1,
        wants: 1,
        most: 1,
    };
    let step = Step {
        epoch: &client.epoch,
        epoch_token: Token(7),
        token: Token(8),
        lending: &client.lending,
        request: &request,
    };
    let stepped = arena.store.step(SHELF, client.name(), step).unwrap();
    assert!(matches!(stepped.await.unwrap(), Stepped::Not(_)));
}
