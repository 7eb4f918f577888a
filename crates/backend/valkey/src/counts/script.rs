//! Calls the script that charges, and reads what it answers.

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

/// What every text begins and ends with.
const EXACT: &str = include_str!("exact.lua");
const CHARGE: &str = include_str!("charge.lua");
const PRODUCTS: &str = include_str!("products.lua");
const WIDE: &str = include_str!("wide.lua");
/// Ways of counting, each with what it needs. A text has those that a call needs: all that is in a
/// text costs in every call of it. A set of them is a number with a bit for each.
const WAYS: [&[&str]; 4] = [
    &[PRODUCTS, include_str!("counters.lua")],
    &[PRODUCTS, WIDE, include_str!("pace.lua")],
    &[PRODUCTS, WIDE, include_str!("token_bucket.lua")],
    &[include_str!("sliding_log.lua")],
];

/// By which of [`WAYS`] an algorithm counts.
fn way_of(policy: &Policy) -> usize {
    match policy.row().remembers {
        Remembers::Counts => 0,
        Remembers::Time => 1,
        Remembers::Tokens => 2,
        Remembers::Calls => 3,
    }
}

/// Each part once, in the order in which ways need them.
fn text_of(set: usize) -> Text {
    let is_in = |way: &usize| set & 1 << *way != 0;
    let mut parts = vec![EXACT];
    for part in (0..WAYS.len()).filter(is_in).flat_map(|way| WAYS[way]) {
        if !parts.contains(part) {
            parts.push(part);
        }
    }
    parts.push(CHARGE);
    Text::new(parts.concat())
}

/// The script that charges: one text for each set of algorithms, so that several limits are charged
/// in one piece.
pub(super) struct ChargeScript {
    texts: [Text; 1 << WAYS.len()],
    time: Option<TestTime>,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum AcquireMode {
    /// All, if all admit.
    IfAdmitted,
    Never,
}

/// What became of one charge, or would.
#[derive(Clone, Debug)]
pub(super) struct ScriptVerdict {
    /// The store's time.
    pub(super) now: TimestampUs,
    pub(super) admits: bool,
    /// What was remembered before; of a log only what matters for this charge.
    pub(super) prior: State,
}

/// Adds a charge as the script takes it: the letter of the algorithm, the cost, and the settings.
fn add_charge(command: &mut Cmd, charge: &SharedAcquire<'_>) {
    let policy = charge.policy;
    command.arg(letter_of(policy));
    match charge.cost {
        Cost::Take(taken) => command.arg(taken.get()),
        Cost::Peek => command.arg(0),
        Cost::Refund(back) => command.arg(-i64::from(back.get())),
    };
    add_settings(command, policy);
}

/// Adds the settings of a limit, as many numbers as its algorithm has.
pub(crate) fn add_settings(command: &mut Cmd, policy: &Policy) {
    let rate = policy.rate();
    command.arg(rate.calls());
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
        Remembers::Calls | Remembers::Counts | Remembers::Time => {}
    }
}

/// The letter of an algorithm: that of its states. A log is a list here, and no text.
fn letter_of(policy: &Policy) -> &'static str {
    match policy.row().remembers {
        Remembers::Calls => value::LOG,
        Remembers::Counts | Remembers::Tokens | Remembers::Time => policy.row().state_letter,
    }
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
        charges: &[SharedAcquire<'_>],
        charging: AcquireMode,
    ) -> Result<Vec<ScriptVerdict>, Failure> {
        let charging = match charging {
            AcquireMode::IfAdmitted => 1,
            AcquireMode::Never => 0,
        };
        let now = self.time.as_ref().map(TestTime::now);
        let say = |command: &mut Cmd| {
            command.arg(keys.len()).arg(keys);
            match now {
                None => command.arg(""),
                Some(TimestampUs(now)) => command.arg(now),
            };
            command.arg(charging);
            for charge in charges {
                add_charge(command, charge);
            }
        };
        let set = charges
            .iter()
            .fold(0, |set, charge| set | 1 << way_of(charge.policy));
        let key = keys.first().map_or("", String::as_str);
        let called = self.texts[set].call_with(route, key, say, None).await;
        let ServerReply { value, connection } = called?;
        judged(&connection, &value, charges.len())
    }
}

fn judged(
    connection: &Connection,
    answer: &Value,
    count: usize,
) -> Result<Vec<ScriptVerdict>, Failure> {
    let judged = read(answer).filter(|judged| judged.len() == count);
    judged.ok_or_else(|| connection.strange("no verdicts"))
}

/// The time, and two parts for each charge. `None` if it is something else.
fn read(answer: &Value) -> Option<Vec<ScriptVerdict>> {
    let Value::Array(parts) = answer else {
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
