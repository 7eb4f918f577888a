//! Drives one client at a server and by the algorithms alone, and compares step by step.

use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fine::FineTimestamp;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::sliding_log::{self, Entry};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_limit::{fixed_window, gcra, leaky_bucket, sliding_window, sub_windows, token_bucket};
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts as _, TestTime};
use anteroom_testkit::redis_server::RedisServer;
use anteroom_valkey::ValkeyCounts;
use redis::aio::MultiplexedConnection;

use super::key_of;
use crate::support::single;

/// Script that returns the value of a key of any type.
const DUMP: &str = "local kind = redis.call('TYPE', KEYS[1]).ok
    if kind == 'string' then return {redis.call('GET', KEYS[1])} end
    if kind == 'list' then return redis.call('LRANGE', KEYS[1], 0, -1) end
    return {}";

/// Extra time in microseconds for which values are kept with the clock of a test.
const TEST_SLACK_US: u64 = 3_600_000_000;
/// Longest time in microseconds until a test checks a value.
const CHECK_DELAY_US: u64 = 5_000_000;

/// Server for many clients, one after the other.
pub(super) struct Arena {
    server: RedisServer,
    counts: ValkeyCounts,
    time: TestTime,
    connection: MultiplexedConnection,
    clients: AtomicU64,
}

/// Client under test.
pub(super) struct Client<'a> {
    arena: &'a Arena,
    key: ClientKey,
    pub(super) policy: Policy,
    pub(super) state: State,
    pub(super) now: TimestampUs,
    pub(super) retry_after: DurationUs,
}

impl Arena {
    pub(super) async fn start() -> Self {
        let server = RedisServer::start().await;
        let (address, time) = (single(server.port()), TestTime::default());
        let url = format!("redis://127.0.0.1:{}", server.port());
        let client = redis::Client::open(url).unwrap();
        let connection = client.get_multiplexed_async_connection().await;
        Self {
            counts: ValkeyCounts::with_time(&address, "anteroom", time.clone()).unwrap(),
            connection: connection.unwrap(),
            clients: AtomicU64::new(0),
            server,
            time,
        }
    }

    pub(super) fn client(&self, policy: Policy, now: TimestampUs) -> Client<'_> {
        let client = self.clients.fetch_add(1, Ordering::SeqCst);
        Client {
            arena: self,
            key: ClientKey(u128::from(client)),
            policy,
            state: State::default(),
            now,
            retry_after: DurationUs::ZERO,
        }
    }

    pub(super) fn server(&self) -> &RedisServer {
        &self.server
    }
}

impl Client<'_> {
    pub(super) fn name(&self) -> String {
        key_of("api", self.key)
    }

    /// Steps the algorithm and the server, compares both, and returns the verdict.
    pub(super) async fn step(&mut self, cost: Cost) -> Verdict {
        let before = self.state.clone();
        let expected = self.policy.step(&mut self.state, self.now, cost);
        let verdict = self.acquire(cost).await;
        let lines = self.dump().await;
        let left = read(&lines);
        let Self { policy, now, .. } = self;
        let context = format!("{cost:?} at {now:?} by {policy:?} from {before:?}");
        assert_eq!(verdict, expected, "{context}");
        assert_eq!(left, normal(&self.state), "left by {context}");
        if before != self.state && !lines.is_empty() {
            self.check_expiry(&context).await;
        }
        if let Outcome::Reject { retry_after } = verdict.outcome {
            self.retry_after = retry_after.unwrap_or_default();
        }
        verdict
    }

    /// Checks that the new value is kept until it has no effect any more, and hardly longer.
    async fn check_expiry(&self, context: &str) {
        let mut command = redis::cmd("PTTL");
        command.arg(self.name());
        let mut connection = self.arena.connection.clone();
        let ms: i64 = command.query_async(&mut connection).await.unwrap();
        let is_idle = |after: u64| {
            let at = self.now + DurationUs(after);
            self.policy.is_idle(&self.state, at)
        };
        match u64::try_from(ms) {
            Ok(ms) => {
                let after = (ms * 1_000 + CHECK_DELAY_US).checked_sub(TEST_SLACK_US);
                let after = after.unwrap_or_else(|| panic!("{ms} ms, {context}"));
                assert!(is_idle(after), "{ms} ms, {context}");
                // With a changed width, the newest counter may end up to a width earlier.
                let width = self
                    .policy
                    .counters()
                    .map_or(0, |counters| counters.width().0);
                let earlier = after.checked_sub(3 * CHECK_DELAY_US + width);
                assert!(!earlier.is_some_and(is_idle), "{ms} ms, {context}");
            }
            Err(_) => {
                assert_eq!(ms, -1, "{context}");
                assert!(!is_idle(1 << 51), "{context}");
            }
        }
    }

    /// Acquires at the server only.
    pub(super) async fn acquire(&self, cost: Cost) -> Verdict {
        self.arena.time.set(self.now);
        let acquire = SharedAcquire {
            limit: "api",
            policy: &self.policy,
            key: self.key,
            cost,
        };
        self.arena.counts.acquire(&[acquire]).await.unwrap()[0]
    }

    /// Returns the value at the server.
    pub(super) async fn dump(&self) -> Vec<String> {
        let mut command = redis::cmd("EVAL");
        command.arg(DUMP).arg(1).arg(self.name());
        let mut connection = self.arena.connection.clone();
        command.query_async(&mut connection).await.unwrap()
    }
}

/// Normalizes equivalent states.
fn normal(state: &State) -> State {
    match state {
        State::SlidingLog(log) if log.entries().len() == 0 => State::New,
        State::SubWindows(state) if state.counts().is_empty() => State::New,
        state => state.clone(),
    }
}

/// Decodes the value at the server, by other code than that under test.
fn read(lines: &[String]) -> State {
    let Some(first) = lines.first() else {
        return State::New;
    };
    if first.starts_with(|char: char| char.is_ascii_digit()) {
        return read_log(lines);
    }
    let (letter, numbers) = first.split_once(' ').unwrap();
    let numbers: Vec<u64> = numbers
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let small = |at: usize| numbers.get(at).map_or(0, |n| u32::try_from(*n).unwrap());
    let point = || FineTimestamp {
        micros: TimestampUs(numbers[0]),
        fraction: small(1),
    };
    match letter {
        "f" => State::FixedWindow(fixed_window::State {
            starts_at: TimestampUs(numbers[1]),
            counts: [small(2)],
        }),
        "s" => State::SlidingWindow(sliding_window::State {
            starts_at: TimestampUs(numbers[1]),
            counts: [small(2), small(3)],
        }),
        "w" => {
            let count = usize::try_from(numbers[0]).unwrap();
            let counts = (0..count).map(|at| small(at + 2)).collect();
            let starts_at = TimestampUs(numbers[1]);
            State::SubWindows(sub_windows::State::from_counts(starts_at, counts))
        }
        "g" => State::Gcra(gcra::State { free_at: point() }),
        "l" => State::LeakyBucket(leaky_bucket::State { free_at: point() }),
        "t" => State::TokenBucket(token_bucket::State {
            counted_at: TimestampUs(numbers[0]),
            part: numbers[1],
            tokens: small(2),
            is_known: true,
        }),
        _ => panic!("{first}"),
    }
}

/// Decodes a log and checks its sums.
fn read_log(lines: &[String]) -> State {
    let mut last_total = None;
    let mut entries = Vec::new();
    for line in lines {
        let numbers: Vec<u64> = line
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        let [at, requests, total] = numbers.try_into().unwrap();
        let sum = last_total.map_or(total, |last: u64| last + requests);
        assert_eq!(total, sum, "{lines:?}");
        last_total = Some(total);
        entries.push(Entry {
            at: TimestampUs(at),
            requests: u32::try_from(requests).unwrap(),
        });
    }
    State::SlidingLog(Box::new(sliding_log::State::from_entries(entries)))
}
