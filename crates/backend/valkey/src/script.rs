//! Calls scripts, and decodes the replies to those of rooms.
//!
//! Scripts are called by their hash. The text is sent only to a server that does not know it yet,
//! or has flushed its scripts. The scripts of rate limits are in `counts/script.rs`, and those of
//! leases of requests in `lease_records.rs` and `lease_records/`.

use std::borrow::Cow;
use std::time::Duration;

use anteroom_room::time::Timestamp;
use anteroom_store::{Expected, Identity, Loaded, Record, RecordVersion, Swap};
use redis::{Cmd, Script, Value};

use crate::connection::{Connection, Request};
use crate::failure::Failure;
use crate::link::ServerReply;
use crate::route::Route;

/// Lifetime of a counter. It is used during its minute, by clocks that may be half a second off;
/// some minutes more let an operator look at it.
const COUNTER_TTL: Duration = Duration::from_mins(5);

/// Scripts of the store of rooms.
pub(crate) struct Scripts {
    load: Text,
    swap: Text,
    take: Text,
}

pub(crate) struct Text {
    text: Cow<'static, str>,
    hash: String,
}

impl Text {
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        let hash = Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }

    /// Calls the script at the server that has the first key; in a cluster it must have the others,
    /// too.
    pub(crate) async fn call(
        &self,
        route: &Route,
        keys: &[&str],
        args: &[&[u8]],
        meant_for: Option<Identity>,
    ) -> Result<ServerReply, Failure> {
        let key = keys.first().copied().unwrap_or_default();
        let add_args = |command: &mut Cmd| {
            command.arg(keys.len()).arg(keys);
            for arg in args {
                command.arg(*arg);
            }
        };
        self.call_with(route, key, add_args, meant_for).await
    }

    /// Calls the script at the server that has `key`; `add_args` adds the number of keys, the keys
    /// and the arguments.
    pub(crate) async fn call_with(
        &self,
        route: &Route,
        key: &str,
        add_args: impl Fn(&mut Cmd),
        meant_for: Option<Identity>,
    ) -> Result<ServerReply, Failure> {
        let request = |name: &str, script: &str| {
            let mut command = Cmd::new();
            command.arg(name).arg(script);
            add_args(&mut command);
            Request {
                command,
                is_asking: false,
                meant_for,
            }
        };
        match route.send(key, &request("EVALSHA", &self.hash)).await {
            // Nothing was done, so this is no retry.
            Err(failure) if failure.is_unknown_script() => {
                route.send(key, &request("EVAL", &self.text)).await
            }
            reply => reply,
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
        let ServerReply { value, connection } = self.load.call(route, &[key], &[], None).await?;
        loaded(&connection, value)
    }

    pub(crate) async fn swap(
        &self,
        route: &Route,
        key: &str,
        expected: Expected,
        value: &[u8],
    ) -> Result<Swap, Failure> {
        let RecordVersion(version) = expected.version;
        let found = version.to_string();
        let next = version.saturating_add(1).to_string();
        let args = [found.as_bytes(), next.as_bytes(), value];
        let meant_for = Some(expected.identity);
        match self.swap.call(route, &[key], &args, meant_for).await {
            Ok(ServerReply { value, connection }) => match value {
                Value::Int(1) => Ok(Swap::Swapped),
                value => loaded(&connection, value).map(Swap::Conflict),
            },
            Err(failure) if failure.is_meant_for_another() => Ok(Swap::OtherStore),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) async fn take(&self, route: &Route, key: &str) -> Result<u64, Failure> {
        let ttl_ms = COUNTER_TTL.as_millis().to_string();
        let ServerReply { value, connection } = self
            .take
            .call(route, &[key], &[ttl_ms.as_bytes()], None)
            .await?;
        match value {
            Value::Int(number) => u64::try_from(number).ok(),
            _ => None,
        }
        .ok_or_else(|| connection.unexpected_reply("no number"))
    }
}

/// Decodes a record and the clock of the server.
fn loaded(connection: &Connection, value: Value) -> Result<Loaded, Failure> {
    let Value::Array(parts) = value else {
        return Err(connection.unexpected_reply("no record"));
    };
    let Ok([version, value, secs, micros]) = <[Value; 4]>::try_from(parts) else {
        return Err(connection.unexpected_reply("no record"));
    };
    let now = number(&secs)
        .zip(number(&micros))
        .map(|(secs, micros)| Timestamp(secs.saturating_mul(1_000).saturating_add(micros / 1_000)))
        .ok_or_else(|| connection.unexpected_reply("no time"))?;
    Ok(Loaded {
        record: record(connection, &version, value)?,
        now,
        identity: connection.identity,
        durability: connection.durability,
    })
}

fn record(
    connection: &Connection,
    version: &Value,
    value: Value,
) -> Result<Option<Record>, Failure> {
    match (version, value) {
        (Value::Nil, Value::Nil) => Ok(None),
        (version, Value::BulkString(value)) => match number(version) {
            None | Some(0) => Err(connection.unexpected_reply("no version")),
            Some(version) => Ok(Some(Record {
                version: RecordVersion(version),
                value,
            })),
        },
        _ => Err(connection.unexpected_reply("half a record")),
    }
}

pub(crate) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn numbers_are_read_from_text_or_numbers() {
        let check = |value: Value, expected: Option<u64>| assert_eq!(number(&value), expected);
        check(bytes("18446744073709551615"), Some(u64::MAX));
        check(bytes("18446744073709551616"), None);
        check(bytes("-1"), None);
        check(Value::Int(7), Some(7));
        check(Value::Int(-7), None);
        check(Value::Nil, None);
    }
}
