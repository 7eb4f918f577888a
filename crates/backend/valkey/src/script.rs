//! Calls scripts, and decodes the replies to those of rooms.
//!
//! Scripts are called by their hash. The text is sent only to a server that does not know it yet,
//! or has flushed its scripts. The scripts of rate limits are in `counts/script.rs`, and those of
//! leases of requests in `lease_records.rs` and `lease_records/`.

use std::borrow::Cow;
use std::time::Duration;

use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::{
    Expected, Identity, LEFT_FOR, LEFT_MAX, LeftChanges, LeftId, LeftRequest, Loaded, NOTE_FOR,
    NOTES_MAX, Note, Record, RecordVersion, Swap,
};
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
    load_changed: Text,
    read_notes: Text,
    keep_for: Text,
    swap: Text,
    take: Text,
    load_and_leave: Text,
    swap_and_remove: Text,
}

/// Keys of a record and of the requests beside it.
#[derive(Clone, Copy)]
pub(crate) struct KeysWithLeft<'a> {
    pub(crate) record: &'a str,
    pub(crate) left: &'a str,
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
            load_changed: Text::new(concat!(
                include_str!("script/notes.lua"),
                include_str!("script/load_changed.lua")
            )),
            read_notes: Text::new(concat!(
                include_str!("script/notes.lua"),
                include_str!("script/read_notes.lua")
            )),
            keep_for: Text::new(include_str!("script/keep_for.lua")),
            swap: Text::new(include_str!("script/swap.lua")),
            take: Text::new(include_str!("script/take.lua")),
            load_and_leave: Text::new(concat!(
                include_str!("script/left.lua"),
                include_str!("script/load_and_leave.lua")
            )),
            swap_and_remove: Text::new(concat!(
                include_str!("script/left.lua"),
                include_str!("script/swap_and_remove.lua")
            )),
        }
    }

    pub(crate) async fn load(&self, route: &Route, key: &str) -> Result<Loaded, Failure> {
        let ServerReply { value, connection } = self.load.call(route, &[key], &[], None).await?;
        loaded(&connection, value)
    }

    /// Loads a record; `None` if it still is the known one. Leaves a note under the key that stands
    /// beside it.
    pub(crate) async fn load_changed(
        &self,
        route: &Route,
        key: &str,
        known: Expected,
        note: Option<(&str, &Note)>,
    ) -> Result<Option<Loaded>, Failure> {
        let RecordVersion(version) = known.version;
        let version = version.to_string();
        let (ttl_ms, most) = (NOTE_FOR.0.to_string(), NOTES_MAX.to_string());
        let mut keys = vec![key];
        let mut args = vec![version.as_bytes()];
        if let Some((notes, note)) = note {
            keys.push(notes);
            args.extend([ttl_ms.as_bytes(), most.as_bytes()]);
            args.extend([note.name.as_bytes(), &note.value]);
        }
        let called = self.load_changed.call(route, &keys, &args, None).await?;
        let ServerReply { value, connection } = called;
        match value {
            Value::Int(0) if connection.identity == known.identity => Ok(None),
            // Another server, or the same one after a loss, happens to have this version.
            Value::Int(0) => self.load(route, key).await.map(Some),
            value => loaded(&connection, value).map(Some),
        }
    }

    /// Returns the notes under a key.
    pub(crate) async fn notes(&self, route: &Route, key: &str) -> Result<Vec<Note>, Failure> {
        let ttl_ms = NOTE_FOR.0.to_string();
        let args = [ttl_ms.as_bytes()];
        let called = self.read_notes.call(route, &[key], &args, None).await?;
        let ServerReply { value, connection } = called;
        let pairs = pairs(Some(value)).ok_or_else(|| connection.unexpected_reply("no notes"))?;
        let note = |(name, value): (Vec<u8>, Vec<u8>)| Note {
            name: String::from_utf8_lossy(&name).into_owned(),
            value,
        };
        Ok(pairs.into_iter().map(note).collect())
    }

    /// Lets a record expire, and writes it before if there is none. Returns whether there is one.
    pub(crate) async fn keep_for(
        &self,
        route: &Route,
        key: &str,
        value: Option<&[u8]>,
        lifetime: DurationMs,
    ) -> Result<bool, Failure> {
        let ttl_ms = lifetime.0.to_string();
        let mut args = vec![ttl_ms.as_bytes()];
        args.extend(value);
        let called = self.keep_for.call(route, &[key], &args, None).await?;
        match called.value {
            Value::Int(kept) => Ok(kept == 1),
            _ => Err(called.connection.unexpected_reply("no number")),
        }
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
        swapped(self.swap.call(route, &[key], &args, meant_for).await)
    }

    pub(crate) async fn load_and_leave(
        &self,
        route: &Route,
        keys: KeysWithLeft<'_>,
        leave: Option<&LeftRequest>,
    ) -> Result<Loaded, Failure> {
        let (most, ttl_ms) = (LEFT_MAX.to_string(), LEFT_FOR.0.to_string());
        let mut args = vec![most.as_bytes(), ttl_ms.as_bytes()];
        args.extend(
            leave
                .iter()
                .flat_map(|request| [&request.id.0[..], &request.value]),
        );
        let keys = [keys.record, keys.left];
        let called = self.load_and_leave.call(route, &keys, &args, None).await?;
        loaded(&called.connection, called.value)
    }

    pub(crate) async fn swap_and_remove(
        &self,
        route: &Route,
        keys: KeysWithLeft<'_>,
        (expected, value): (Expected, &[u8]),
        changes: &LeftChanges,
    ) -> Result<Swap, Failure> {
        let (most, ttl_ms) = (LEFT_MAX.to_string(), LEFT_FOR.0.to_string());
        let RecordVersion(version) = expected.version;
        let found = version.to_string();
        let next = version.saturating_add(1).to_string();
        let leave = changes.leave.as_ref();
        let count = if leave.is_some() { "1" } else { "0" };
        let mut args = vec![most.as_bytes(), ttl_ms.as_bytes()];
        args.extend([found.as_bytes(), next.as_bytes(), value, count.as_bytes()]);
        args.extend(
            leave
                .iter()
                .flat_map(|request| [&request.id.0[..], &request.value]),
        );
        args.extend(changes.applied.iter().map(|id| &id.0[..]));
        let keys = [keys.record, keys.left];
        let meant_for = Some(expected.identity);
        swapped(
            self.swap_and_remove
                .call(route, &keys, &args, meant_for)
                .await,
        )
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

/// Decodes the reply to a write.
fn swapped(called: Result<ServerReply, Failure>) -> Result<Swap, Failure> {
    match called {
        Ok(ServerReply { value, connection }) => match value {
            Value::Int(1) => Ok(Swap::Swapped),
            value => loaded(&connection, value).map(Swap::Conflict),
        },
        Err(failure) if failure.is_meant_for_another() => Ok(Swap::OtherStore),
        Err(failure) => Err(failure),
    }
}

/// Decodes a record, the clock of the server, and the requests beside the record if there are any.
fn loaded(connection: &Connection, value: Value) -> Result<Loaded, Failure> {
    let Value::Array(mut parts) = value else {
        return Err(connection.unexpected_reply("no record"));
    };
    let left = match parts.get(4) {
        Some(_) => left_requests(parts.pop()),
        None => Some(Vec::new()),
    };
    let left = left.ok_or_else(|| connection.unexpected_reply("no requests"))?;
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
        left,
    })
}

/// Decodes the requests beside a record.
fn left_requests(value: Option<Value>) -> Option<Vec<LeftRequest>> {
    let request = |(name, value)| LeftRequest {
        id: LeftId(name),
        value,
    };
    Some(pairs(value)?.into_iter().map(request).collect())
}

/// Decodes names and values, in turns.
fn pairs(value: Option<Value>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let Some(Value::Array(parts)) = value else {
        return None;
    };
    let mut parts = parts.into_iter();
    let mut pairs = Vec::new();
    while let Some(name) = parts.next() {
        let (Value::BulkString(name), Some(Value::BulkString(value))) = (name, parts.next()) else {
            return None;
        };
        pairs.push((name, value));
    }
    Some(pairs)
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
    fn left_requests_are_read_in_pairs() {
        let check = |value: Option<Value>, expected: Option<&[(&[u8], &[u8])]>| {
            let pairs = left_requests(value).map(|left| {
                let left = left.into_iter();
                left.map(|left| (left.id.0, left.value)).collect::<Vec<_>>()
            });
            let expected = expected.map(|expected| {
                let expected = expected.iter();
                expected
                    .map(|(id, value)| (id.to_vec(), value.to_vec()))
                    .collect()
            });
            assert_eq!(pairs, expected);
        };
        let of = |parts: &[Value]| Some(Value::Array(parts.to_vec()));
        check(of(&[]), Some(&[]));
        check(of(&[bytes("a"), bytes("b")]), Some(&[(b"a", b"b")]));
        check(of(&[bytes("a")]), None);
        check(of(&[bytes("a"), Value::Nil]), None);
        check(Some(Value::Nil), None);
        check(None, None);
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
