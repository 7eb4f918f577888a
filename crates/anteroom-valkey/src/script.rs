//! Calls the scripts, and reads what they answer.
//!
//! By their hash, which every server knows that has seen them once; the text goes along only to one
//! that has not, or that was told to forget it.

use std::time::Duration;

use anteroom_core::time::Millis;
use anteroom_store::{Expected, Identity, Loaded, Record, RecordVersion, Swap};
use redis::{Cmd, Script, Value};

use crate::connection::{Connection, Request};
use crate::failure::Failure;
use crate::link::Answered;
use crate::route::Route;

/// How long a counter lives. It is asked during its minute, by clocks that may be half a second
/// off; a few minutes more let an operator look at it.
const COUNTER_LIVES: Duration = Duration::from_mins(5);
/// Digits of a run id that make an identity.
const IDENTITY_DIGITS: usize = 16;

/// The scripts.
pub(crate) struct Scripts {
    load: Text,
    swap: Text,
    take: Text,
}

struct Text {
    text: &'static str,
    hash: String,
}

impl Text {
    fn new(text: &'static str) -> Self {
        let hash = Script::new(text).get_hash().to_owned();
        Self { text, hash }
    }

    async fn call(&self, route: &Route, key: &str, args: &[&[u8]]) -> Result<Answered, Failure> {
        let request = |name: &str, script: &str| {
            let mut command = Cmd::new();
            command.arg(name).arg(script).arg(1).arg(key);
            for arg in args {
                command.arg(*arg);
            }
            Request {
                command,
                is_asking: false,
            }
        };
        match route.call(key, &request("EVALSHA", &self.hash)).await {
            // Nothing was done, so this is no second try.
            Err(failure) if failure.is_unknown_script() => {
                route.call(key, &request("EVAL", self.text)).await
            }
            answer => answer,
        }
    }
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            load: Text::new(include_str!("script/load.lua")),
            swap: Text::new(include_str!("script/swap.lua")),
            take: Text::new(include_str!("script/take.lua")),
        }
    }

    pub(crate) async fn load(&self, route: &Route, key: &str) -> Result<Loaded, Failure> {
        let Answered { value, connection } = self.load.call(route, key, &[]).await?;
        let Value::Array(parts) = value else {
            return Err(connection.strange("no record"));
        };
        let Ok([version, value, secs, micros, run_id]) = <[Value; 5]>::try_from(parts) else {
            return Err(connection.strange("no record"));
        };
        let now = number(&secs)
            .zip(number(&micros))
            .map(|(secs, micros)| Millis(secs.saturating_mul(1_000).saturating_add(micros / 1_000)))
            .ok_or_else(|| connection.strange("no time"))?;
        let identity = identity(&run_id).ok_or_else(|| connection.strange("no run id"))?;
        Ok(Loaded {
            record: record(&connection, &version, value)?,
            now,
            identity,
        })
    }

    pub(crate) async fn swap(
        &self,
        route: &Route,
        key: &str,
        expected: Expected,
        value: &[u8],
    ) -> Result<Swap, Failure> {
        let RecordVersion(version) = expected.version;
        let identity = format!("{:016x}", expected.identity.0);
        let found = version.to_string();
        let next = version.saturating_add(1).to_string();
        let args = [
            identity.as_bytes(),
            found.as_bytes(),
            next.as_bytes(),
            value,
        ];
        let Answered { value, connection } = self.swap.call(route, key, &args).await?;
        match value {
            Value::Int(1) => Ok(Swap::Swapped),
            Value::Int(0) => Ok(Swap::Conflict),
            _ => Err(connection.strange("neither yes nor no")),
        }
    }

    pub(crate) async fn take(&self, route: &Route, key: &str) -> Result<u64, Failure> {
        let lives_ms = COUNTER_LIVES.as_millis().to_string();
        let Answered { value, connection } =
            self.take.call(route, key, &[lives_ms.as_bytes()]).await?;
        match value {
            Value::Int(number) => u64::try_from(number).ok(),
            _ => None,
        }
        .ok_or_else(|| connection.strange("no number"))
    }
}

fn record(
    connection: &Connection,
    version: &Value,
    value: Value,
) -> Result<Option<Record>, Failure> {
    match (version, value) {
        (Value::Nil, Value::Nil) => Ok(None),
        (version, Value::BulkString(value)) => match number(version) {
            None | Some(0) => Err(connection.strange("no version")),
            Some(version) => Ok(Some(Record {
                version: RecordVersion(version),
                value,
            })),
        },
        _ => Err(connection.strange("half a record")),
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The first half of a run id: a restart draws another one, by chance of 2^-64 the same.
fn identity(run_id: &Value) -> Option<Identity> {
    let Value::BulkString(bytes) = run_id else {
        return None;
    };
    let digits = std::str::from_utf8(bytes.get(..IDENTITY_DIGITS)?).ok()?;
    // `from_str_radix` would take a sign too.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u64::from_str_radix(digits, 16).ok();
    number.filter(|_| is_hex).map(Identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn an_identity_is_the_first_half_of_a_run_id() {
        let check = |run_id: &str, expected: Option<u64>| {
            assert_eq!(identity(&bytes(run_id)), expected.map(Identity), "{run_id}");
        };
        check("00000000000000ff11111111111111112222222", Some(255));
        check("ffffffffffffffff", Some(u64::MAX));
        check("fffffffffffffff", None);
        check("+fffffffffffffff", None);
        check("no run id is like this", None);
        check("äöüäöüäöüäöü", None);
        check("", None);
        assert_eq!(identity(&Value::Nil), None);
    }

    #[test]
    fn numbers_come_as_text_or_as_numbers() {
        let check = |value: Value, expected: Option<u64>| assert_eq!(number(&value), expected);
        check(bytes("18446744073709551615"), Some(u64::MAX));
        check(bytes("18446744073709551616"), None);
        check(bytes("-1"), None);
        check(Value::Int(7), Some(7));
        check(Value::Int(-7), None);
        check(Value::Nil, None);
    }
}
