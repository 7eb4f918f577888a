//! Cost of requests on the longest log, of 100,000 entries.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::sliding_log::{self, Entry, LOG_LONGEST, SlidingLog};
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::drive::Arena;
use super::rate;

const START: TimestampUs = TimestampUs(1_767_225_600_000_000);

/// Returns the number of commands at the server, including those in scripts.
async fn commands(arena: &Arena) -> u64 {
    let stats = arena.server().info("commandstats").await;
    let calls = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let calls = rest.split(',').next()?;
        (!["info", "eval", "config|resetstat"].contains(&name))
            .then(|| calls.parse::<u64>().unwrap())
    });
    calls.sum()
}

#[tokio::test]
async fn no_request_reads_a_whole_log() {
    let arena = Arena::start().await;
    let policy = Policy::SlidingLog(SlidingLog::new(rate(LOG_LONGEST, 3_600)).unwrap());
    let mut client = arena.client(policy, START);
    // Fill the log as one request per millisecond would.
    let fill = "for n = 1, 100000 do
        local at = string.format('%.0f', tonumber(ARGV[1]) + n * 1000)
        redis.call('RPUSH', KEYS[1], at .. ' 1 ' .. n)
        end";
    let (name, start) = (client.name(), START.0.to_string());
    arena
        .server()
        .send_ok(&["EVAL", fill, "1", &name, &start])
        .await;
    let entries = (1..=100_000).map(|n| Entry {
        at: START + DurationUs(n * 1_000),
        requests: 1,
    });
    let log = sliding_log::State::from_entries(entries);
    client.state = State::SlidingLog(Box::new(log));
    let hour = DurationUs::from_secs(3_600);
    let (half, end) = (DurationUs(50_000_500), DurationUs(100_001_000));
    for (at, cost, most) in [
        // Full: the oldest entry must expire first, or the one in the middle.
        (START + end, Cost::ONE, 10),
        (START + end, Cost::take(50_000), 50),
        (START + end, Cost::Peek, 10),
        (START + end, Cost::take(LOG_LONGEST + 1), 10),
        // Half of it has expired and is still there after a peek.
        (START + hour + half, Cost::Peek, 50),
        (START + hour + half, Cost::take(50_001), 90),
        (START + hour + half, Cost::refund(20_000), 90),
        (START + hour + half, Cost::take(3), 10),
        // The usual case: one entry has expired, and one is added.
        (START + hour + half + DurationUs(1_000), Cost::ONE, 15),
    ] {
        client.now = at;
        let before = commands(&arena).await;
        client.acquire(cost).await;
        let took = commands(&arena).await - before;
        assert!(took <= most, "{cost:?}: {took}");
        // Check the result, too, which reads the whole log.
        policy.step(&mut client.state, at, cost);
        let expected = policy.step(&mut client.state.clone(), at, Cost::Peek);
        assert_eq!(client.acquire(Cost::Peek).await, expected, "{cost:?}");
    }
    client.step(Cost::ONE).await;
}

/// After the clock was set back, a value with a short expiry is kept for longer.
#[tokio::test]
async fn a_log_far_ahead_of_a_clock_does_not_expire_early() {
    let arena = Arena::start().await;
    let policy = Policy::SlidingLog(SlidingLog::new(rate(10, 1)).unwrap());
    let mut client = arena.client(policy, TimestampUs(1 << 52));
    client.step(Cost::ONE).await;
    client.now = TimestampUs(3);
    client.step(Cost::ONE).await;
}
