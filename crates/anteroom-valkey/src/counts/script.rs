//! Calls the script that charges, and reads what it answers.

use anteroom_counts::shared::{SharedCharge, TestTime};
use anteroom_limits::cost::Cost;
use anteroom_limits::policy::{Policy, State};
use anteroom_limits::time::Micros;
use anteroom_limits::token_bucket::NEWCOMER_AFTER;
use redis::Value;

use super::value;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::link::Answered;
use crate::route::Route;
use crate::script::{Text, number};

/// One text for all algorithms, so that several limits are charged in one piece.
const TEXT: &str = concat!(
    include_str!("exact.lua"),
    include_str!("counters.lua"),
    include_str!("pace.lua"),
    include_str!("token_bucket.lua"),
    include_str!("sliding_log.lua"),
    include_str!("charge.lua"),
);

/// For how many ms more than needed a value is kept: the server rounds, and its clock may be set a little. It
/// costs a second's memory.
const SLACK_MS: u64 = 1_000;
/// The same where a test brings the time along: longer than any test takes.
const SLACK_IN_TESTS_MS: u64 = 3_600_000;

/// The script that charges.
pub(super) struct ChargeScript {
    text: Text,
    time: Option<TestTime>,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Charging {
    /// All, if all admit.
    IfAdmitted,
    Never,
}

/// What became of one charge, or would.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// The store's time.
    pub(super) now: Micros,
    pub(super) admits: bool,
    /// What was remembered before; of a log only what matters for this charge.
    pub(super) prior: State,
}

/// Settings as the script takes them: the letter of the algorithm and its numbers.
pub(crate) type Settings = (char, [u64; 5]);

pub(crate) fn settings(policy: &Policy) -> Settings {
    let rate = policy.rate();
    let (calls, window) = (u64::from(rate.calls()), rate.window().0);
    if let Some(counters) = policy.counters() {
        let (letter, is_falling) = match policy {
            Policy::FixedWindow(_) => ('f', false),
            Policy::SlidingWindow(_) => ('s', true),
            Policy::SubWindows(_) => ('w', true),
            _ => ('w', false),
        };
        let count = counters.count() as u64;
        let width = counters.width().0;
        return (letter, [calls, width, count, u64::from(is_falling), 0]);
    }
    let usual = |letter, other: u32| (letter, [calls, window, u64::from(other), 0, 0]);
    match policy {
        Policy::Gcra(gcra) => usual('g', gcra.burst()),
        Policy::LeakyBucket(bucket) => usual('l', bucket.queue()),
        Policy::TokenBucket(bucket) => {
            let (capacity, initial) = (bucket.capacity(), bucket.initial_burst());
            let newcomer = NEWCOMER_AFTER.0.max(window);
            let (capacity, initial) = (u64::from(capacity), u64::from(initial));
            ('t', [calls, window, capacity, initial, newcomer])
        }
        _ => usual('e', 0),
    }
}

fn push_charge(args: &mut Vec<String>, charge: &SharedCharge<'_>) {
    let (letter, numbers) = settings(charge.policy);
    args.push(letter.to_string());
    args.push(match charge.cost {
        Cost::Take(taken) => taken.to_string(),
        Cost::Peek => "0".to_owned(),
        Cost::Refund(back) => format!("-{back}"),
    });
    args.extend(numbers.map(|number| number.to_string()));
}

impl ChargeScript {
    /// At the server's time, or at one that a test brings along.
    pub(super) fn new(time: Option<TestTime>) -> Self {
        let text = Text::new(TEXT);
        Self { text, time }
    }

    /// All keys must live at one server, and none may stand there twice.
    pub(super) async fn call(
        &self,
        route: &Route,
        keys: &[String],
        charges: &[SharedCharge<'_>],
        charging: Charging,
    ) -> Result<Vec<Judged>, Failure> {
        let (now, slack_ms) = match &self.time {
            None => (String::new(), SLACK_MS),
            Some(time) => (time.now().0.to_string(), SLACK_IN_TESTS_MS),
        };
        let charging = match charging {
            Charging::IfAdmitted => "1",
            Charging::Never => "0",
        };
        let mut args = vec![now, slack_ms.to_string(), charging.to_owned()];
        for charge in charges {
            push_charge(&mut args, charge);
        }
        let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let Answered { value, connection } = self.text.call(route, &keys, &args, None).await?;
        judged(&connection, &value, charges.len())
    }
}

fn judged(connection: &Connection, answer: &Value, count: usize) -> Result<Vec<Judged>, Failure> {
    let judged = read(answer).filter(|judged| judged.len() == count);
    judged.ok_or_else(|| connection.strange("no verdicts"))
}

/// The time, and two parts for each charge. `None` if it is something else.
fn read(answer: &Value) -> Option<Vec<Judged>> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let [now, parts @ ..] = parts.as_slice() else {
        return None;
    };
    let now = Micros(number(now)?);
    let each = parts.chunks(2).map(|parts| match parts {
        [Value::Int(admits), Value::BulkString(prior)] => Some(Judged {
            now,
            admits: *admits == 1,
            prior: value::read(std::str::from_utf8(prior).ok()?)?,
        }),
        _ => None,
    });
    each.collect()
}
