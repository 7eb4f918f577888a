//! Calls the script that acquires, and decodes its replies.

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::Oldest;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::registry::Remembers;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::token_bucket::NEWCOMER_AFTER;
use anteroom_limit_store::shared::{SharedAcquire, TestTime};
use redis::{Cmd, Value};

use super::value;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::link::ServerReply;
use crate::route::Route;
use crate::script::{Text, number};

/// First and last part of every text.
const EXACT: &str = include_str!("exact.lua");
const ACQUIRE: &str = include_str!("acquire.lua");
const PRODUCTS: &str = include_str!("products.lua");
const WIDE: &str = include_str!("wide.lua");
/// Ways of counting, each with the parts it needs. A text has only those that a request needs, as
/// each part costs time in every call. A set of ways is a bit mask.
const WAYS: [&[&str]; 4] = [
    &[PRODUCTS, include_str!("counters.lua")],
    &[PRODUCTS, WIDE, include_str!("pace.lua")],
    &[PRODUCTS, WIDE, include_str!("token_bucket.lua")],
    &[include_str!("sliding_log.lua")],
];

/// Returns the index in [`WAYS`] of an algorithm.
fn way_of(policy: &Policy) -> usize {
    match policy.row().remembers {
        Remembers::Counts => 0,
        Remembers::Time => 1,
        Remembers::Tokens => 2,
        Remembers::Requests => 3,
    }
}

/// Returns the text for a set of ways: each part once, in the order of the ways.
fn text_of(set: usize) -> Text {
    let is_in = |way: &usize| set & 1 << *way != 0;
    let mut parts = vec![EXACT];
    for part in (0..WAYS.len()).filter(is_in).flat_map(|way| WAYS[way]) {
        if !parts.contains(part) {
            parts.push(part);
        }
    }
    parts.push(ACQUIRE);
    Text::new(parts.concat())
}

/// Script that acquires: one text for each set of algorithms, so that several limits are acquired
/// atomically.
pub(super) struct AcquireScript {
    texts: [Text; 1 << WAYS.len()],
    time: Option<TestTime>,
}

/// Whether the script writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum AcquireMode {
    /// Writes all, if all limits admit.
    IfAdmitted,
    Never,
}

/// Script's verdict on one acquire.
#[derive(Clone, Debug)]
pub(super) struct ScriptVerdict {
    /// Time of the server.
    pub(super) now: TimestampUs,
    pub(super) admits: bool,
    /// Prior state; of a log only the entries that matter for this acquire.
    pub(super) prior: State,
}

/// Adds the arguments of an acquire: the letter of the algorithm, the cost, and the settings.
fn add_acquire(command: &mut Cmd, acquire: &SharedAcquire<'_>) {
    let policy = acquire.policy;
    command.arg(letter_of(policy));
    match acquire.cost {
        Cost::Take(taken) => command.arg(taken.get()),
        Cost::Peek => command.arg(0),
        Cost::Refund(refunded) => command.arg(-i64::from(refunded.get())),
    };
    add_settings(command, policy);
}

/// Adds the settings of a limit, as many numbers as its algorithm has.
pub(crate) fn add_settings(command: &mut Cmd, policy: &Policy) {
    let rate = policy.rate();
    command.arg(rate.requests());
    if let Some(counters) = policy.counters() {
        let is_falling = match counters.oldest() {
            Oldest::Whole => 0,
            Oldest::Falling => 1,
        };
        let (width, count) = (counters.width().0, counters.count());
        command.arg(width).arg(count).arg(is_falling);
        return;
    }
    let window = rate.window().0;
    command.arg(window);
    for (_, value) in policy.each_setting() {
        command.arg(value);
    }
    match policy.row().remembers {
        Remembers::Tokens => {
            command.arg(NEWCOMER_AFTER.0.max(window));
        }
        Remembers::Requests | Remembers::Counts | Remembers::Time => {}
    }
}

/// Returns the letter of an algorithm's states. A log is a list here, not a text.
fn letter_of(policy: &Policy) -> &'static str {
    match policy.row().remembers {
        Remembers::Requests => value::LOG,
        Remembers::Counts | Remembers::Tokens | Remembers::Time => policy.row().state_letter,
    }
}

impl AcquireScript {
    /// Creates the script with the server's clock, or that of a test.
    pub(super) fn new(time: Option<TestTime>) -> Self {
        let texts = std::array::from_fn(text_of);
        Self { texts, time }
    }

    /// Calls the script. All keys must be at one server, and none may occur twice.
    pub(super) async fn call(
        &self,
        route: &Route,
        keys: &[String],
        acquires: &[SharedAcquire<'_>],
        mode: AcquireMode,
    ) -> Result<Vec<ScriptVerdict>, Failure> {
        let writes = match mode {
            AcquireMode::IfAdmitted => 1,
            AcquireMode::Never => 0,
        };
        let now = self.time.as_ref().map(TestTime::now);
        let add_args = |command: &mut Cmd| {
            command.arg(keys.len()).arg(keys);
            match now {
                None => command.arg(""),
                Some(TimestampUs(now)) => command.arg(now),
            };
            command.arg(writes);
            for acquire in acquires {
                add_acquire(command, acquire);
            }
        };
        let set = acquires
            .iter()
            .fold(0, |set, acquire| set | 1 << way_of(acquire.policy));
        let key = keys.first().map_or("", String::as_str);
        let called = self.texts[set].call_with(route, key, add_args, None).await;
        let ServerReply { value, connection } = called?;
        verdicts(&connection, &value, acquires.len())
    }
}

fn verdicts(
    connection: &Connection,
    reply: &Value,
    count: usize,
) -> Result<Vec<ScriptVerdict>, Failure> {
    let verdicts = read(reply).filter(|verdicts| verdicts.len() == count);
    verdicts.ok_or_else(|| connection.unexpected_reply("no verdicts"))
}

/// Decodes the time and two parts for each acquire; `None` if the reply is invalid.
fn read(reply: &Value) -> Option<Vec<ScriptVerdict>> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let [now, parts @ ..] = parts.as_slice() else {
        return None;
    };
    let now = TimestampUs(number(now)?);
    let each = parts.chunks(2).map(|parts| match parts {
        [Value::Int(admits), Value::BulkString(prior)] => Some(ScriptVerdict {
            now,
            admits: *admits == 1,
            prior: value::read(std::str::from_utf8(prior).ok()?)?,
        }),
        _ => None,
    });
    each.collect()
}
