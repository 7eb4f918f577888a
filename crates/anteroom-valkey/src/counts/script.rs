//! Calls the script that charges, and reads what it answers.

use anteroom_counts::shared::{SharedCharge, TestTime};
use anteroom_limits::cost::Cost;
use anteroom_limits::policy::{Policy, State};
use anteroom_limits::time::Micros;
use anteroom_limits::token_bucket::NEWCOMER_AFTER;
use redis::{Cmd, Value};

use super::value;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::link::Answered;
use crate::route::Route;
use crate::script::{Text, number};

/// What every text begins and ends with.
const EXACT: &str = include_str!("exact.lua");
const CHARGE: &str = include_str!("charge.lua");
/// The parts of which a text has those that a call needs: all that is in a text costs in every call of it. A set of
/// them is a number with a bit for each.
const PARTS: [&str; 4] = [
    include_str!("counters.lua"),
    include_str!("pace.lua"),
    include_str!("token_bucket.lua"),
    include_str!("sliding_log.lua"),
];

/// In which of [`PARTS`] an algorithm is.
fn part_of(policy: &Policy) -> usize {
    match policy {
        Policy::Gcra(_) | Policy::LeakyBucket(_) => 1,
        Policy::TokenBucket(_) => 2,
        Policy::SlidingLog(_) => 3,
        _ => 0,
    }
}

fn text_of(set: usize) -> Text {
    let is_in = |at: &usize| set & 1 << *at != 0;
    let parts = (0..PARTS.len()).filter(is_in).map(|at| PARTS[at]);
    Text::new(EXACT.to_owned() + &parts.collect::<String>() + CHARGE)
}

/// For how many ms more than needed a value is kept: the server rounds, and its clock may be set a little. It
/// costs a second's memory.
const SLACK_MS: u64 = 1_000;
/// The same where a test brings the time along: longer than any test takes.
const SLACK_IN_TESTS_MS: u64 = 3_600_000;

/// The script that charges: one text for each set of algorithms, so that several limits are charged in one piece.
pub(super) struct ChargeScript {
    texts: [Text; 1 << PARTS.len()],
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
type Settings = (&'static str, [u64; 5]);

fn settings(policy: &Policy) -> Settings {
    let rate = policy.rate();
    let (calls, window) = (u64::from(rate.calls()), rate.window().0);
    if let Some(counters) = policy.counters() {
        let (letter, is_falling) = match policy {
            Policy::FixedWindow(_) => ("f", false),
            Policy::SlidingWindow(_) => ("s", true),
            Policy::SubWindows(_) => ("w", true),
            _ => ("w", false),
        };
        let count = counters.count() as u64;
        let width = counters.width().0;
        return (letter, [calls, width, count, u64::from(is_falling), 0]);
    }
    let usual = |letter, other: u32| (letter, [calls, window, u64::from(other), 0, 0]);
    match policy {
        Policy::Gcra(gcra) => usual("g", gcra.burst()),
        Policy::LeakyBucket(bucket) => usual("l", bucket.queue()),
        Policy::TokenBucket(bucket) => {
            let (capacity, initial) = (bucket.capacity(), bucket.initial_burst());
            let newcomer = NEWCOMER_AFTER.0.max(window);
            let (capacity, initial) = (u64::from(capacity), u64::from(initial));
            ("t", [calls, window, capacity, initial, newcomer])
        }
        _ => usual("e", 0),
    }
}

fn add_charge(command: &mut Cmd, charge: &SharedCharge<'_>) {
    let (letter, numbers) = settings(charge.policy);
    command.arg(letter);
    match charge.cost {
        Cost::Take(taken) => command.arg(taken.get()),
        Cost::Peek => command.arg(0),
        Cost::Refund(back) => command.arg(-i64::from(back.get())),
    };
    command.arg(&numbers);
}

impl ChargeScript {
    /// At the server's time, or at one that a test brings along.
    pub(super) fn new(time: Option<TestTime>) -> Self {
        let texts = std::array::from_fn(text_of);
        Self { texts, time }
    }

    /// All keys must live at one server, and none may stand there twice.
    pub(super) async fn call(
        &self,
        route: &Route,
        keys: &[String],
        charges: &[SharedCharge<'_>],
        charging: Charging,
    ) -> Result<Vec<Judged>, Failure> {
        let charging = match charging {
            Charging::IfAdmitted => 1,
            Charging::Never => 0,
        };
        let now = self.time.as_ref().map(TestTime::now);
        let say = |command: &mut Cmd| {
            command.arg(keys.len()).arg(keys);
            match now {
                None => command.arg("").arg(SLACK_MS),
                Some(Micros(now)) => command.arg(now).arg(SLACK_IN_TESTS_MS),
            };
            command.arg(charging);
            for charge in charges {
                add_charge(command, charge);
            }
        };
        let set = charges
            .iter()
            .fold(0, |set, charge| set | 1 << part_of(charge.policy));
        let key = keys.first().map_or("", String::as_str);
        let called = self.texts[set].call_with(route, key, say, None).await;
        let Answered { value, connection } = called?;
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
