//! Records from which calls are lent, at the server: read and written with their epoch in one round
//! trip each.
//!
//! A value is the token of the write that made it, 16 bytes, and then the record. Loads and swaps
//! know nothing of what follows the token; the script that lends in one step reads it, and is
//! arithmetic of its own beside that of [`anteroom_limit`]. The node compares what it lends with
//! what that would have lent.
//!
//! Deliberately absent: a way to wait for replicas. A replica that takes over is another server,
//! and whoever lends treats all that was lent before as spent.

mod step;

use std::fmt;

use anteroom_config::ValkeyAddress;
use anteroom_limit::lending::epoch::StoreIdentity;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::lent::step::{Step, Stepped};
use anteroom_limit_store::lent::{
    Expected, Kept, LeaseKey, LeaseRecords, Loaded, Shelf, Swapped, Token, Write,
};
use anteroom_limit_store::shared::{BoxFuture, CountsError, TestTime};
use anteroom_store::Identity;
use redis::Value;

use self::step::StepScript;
use crate::access::SetupError;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::link::ServerReply;
use crate::route::Route;
use crate::script::{Text, number};

/// How many shelves a cluster has. Many more than servers, so that each has about as many as
/// another; few enough that looking at the epoch of each once a second costs nothing.
const SHELVES_OF_A_CLUSTER: u32 = 64;

/// For how many ms more than asked a client's record is kept: the server rounds, and its clock may
/// be set a little.
const SLACK_MS: u64 = 1_000;

/// How many bytes a token has at the server.
const TOKEN_BYTES: usize = 16;

/// Records of calls that are lent, on Valkey or Redis.
///
/// One connection to each server, shared by all who call. A load, a swap and a step cost one round
/// trip each. Calls end within 1 s, 2.25 s if a connection has to be made first.
///
/// # What it cannot do
///
/// A server that evicts keys because its memory is full forgets clients. Epochs never expire, so a
/// policy that evicts only what does (`volatile-*`) leaves them alone, and no loss is noticed.
pub struct ValkeyLeases {
    route: Route,
    keys: Keys,
    load: Text,
    swap: Text,
    step: StepScript,
    /// Where it is, without secrets.
    place: String,
}

impl ValkeyLeases {
    /// Records at this address; `prefix` begins the names of all keys. Opens nothing yet.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if TLS is wanted and whom to trust cannot be read.
    pub fn new(address: &ValkeyAddress, prefix: &str) -> Result<Self, SetupError> {
        Self::by(StepScript::new(None), address, prefix)
    }

    /// The same at a time that a test brings along. What is lent in one step is kept for an hour
    /// more then, as the server goes by its own clock in that.
    ///
    /// # Errors
    ///
    /// Those of [`Self::new`].
    #[doc(hidden)]
    pub fn with_time(
        address: &ValkeyAddress,
        prefix: &str,
        time: TestTime,
    ) -> Result<Self, SetupError> {
        Self::by(StepScript::new(Some(time)), address, prefix)
    }

    fn by(step: StepScript, address: &ValkeyAddress, prefix: &str) -> Result<Self, SetupError> {
        Ok(Self {
            step,
            route: Route::new(address)?,
            keys: Keys::new(prefix),
            load: Text::new(include_str!("lent/load.lua")),
            swap: Text::new(include_str!("lent/swap.lua")),
            place: address.to_string(),
        })
    }

    /// Ends all connections; later calls fail.
    pub fn close(&self) {
        self.route.close();
    }

    /// The names of what lies on a shelf: the epoch, and the client if one is named.
    fn names(&self, shelf: Shelf, client: Option<LeaseKey<'_>>) -> Vec<String> {
        let client = client.map(|client| self.keys.lent(shelf, client));
        [self.keys.epoch(shelf)].into_iter().chain(client).collect()
    }

    async fn write(
        &self,
        names: Vec<String>,
        write: Write<'_>,
        keep_ms: u64,
    ) -> Result<Swapped, CountsError> {
        let Expected {
            client,
            epoch,
            identity,
        } = write.expected;
        let (client, epoch) = (token_bytes(client), token_bytes(epoch));
        let value = [&write.token.0.to_be_bytes(), write.value].concat();
        let keep_ms = keep_ms.to_string();
        let args: [&[u8]; 4] = [&epoch, &client, &value, keep_ms.as_bytes()];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let meant_for = Some(Identity(identity.0));
        let called = self.swap.call(&self.route, &names, &args, meant_for).await;
        let swapped = match called {
            Ok(ServerReply { value, connection }) => match value {
                Value::Int(1) => Ok(Swapped::Written),
                value => loaded(&connection, value).map(Swapped::Conflict),
            },
            Err(failure) if failure.is_meant_for_another() => Ok(Swapped::OtherStore),
            Err(failure) => Err(failure),
        };
        swapped.map_err(|failure| failure.into_counts_error(&self.place))
    }
}

/// A token as the script compares it: nothing for a record that is not there.
fn token_bytes(Token(token): Token) -> Vec<u8> {
    match token {
        0 => Vec::new(),
        token => token.to_be_bytes().to_vec(),
    }
}

/// Two records and the clock, from the server at the other end of this connection.
fn loaded(connection: &Connection, value: Value) -> Result<Loaded, Failure> {
    let read = read(value, StoreIdentity(connection.identity.0));
    read.ok_or_else(|| connection.strange("no records"))
}

/// `None` if it is something else.
fn read(value: Value, identity: StoreIdentity) -> Option<Loaded> {
    let Value::Array(parts) = value else {
        return None;
    };
    let [client, epoch, secs, micros] = <[Value; 4]>::try_from(parts).ok()?;
    let (secs, micros) = (number(&secs)?, number(&micros)?);
    Some(Loaded {
        client: kept(client)?,
        epoch: kept(epoch)?,
        now: TimestampUs(secs.checked_mul(1_000_000)?.checked_add(micros)?),
        identity,
    })
}

fn kept(value: Value) -> Option<Option<Kept>> {
    let mut token = match value {
        Value::Nil => return Some(None),
        Value::BulkString(bytes) if bytes.len() >= TOKEN_BYTES => bytes,
        _ => return None,
    };
    let value = token.split_off(TOKEN_BYTES);
    let token = Token(u128::from_be_bytes(token.try_into().ok()?));
    Some(Some(Kept { token, value }))
}

impl LeaseRecords for ValkeyLeases {
    fn place(&self) -> &str {
        &self.place
    }

    fn shelves(&self) -> u32 {
        if self.route.is_one_server() {
            1
        } else {
            SHELVES_OF_A_CLUSTER
        }
    }

    fn load<'a>(
        &'a self,
        shelf: Shelf,
        client: Option<LeaseKey<'a>>,
    ) -> BoxFuture<'a, Result<Loaded, CountsError>> {
        Box::pin(async move {
            let names = self.names(shelf, client);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let called = self.load.call(&self.route, &names, &[], None).await;
            let mut loaded =
                called.and_then(|ServerReply { value, connection }| loaded(&connection, value));
            if let (Ok(loaded), Some(now)) = (&mut loaded, self.step.test_time()) {
                loaded.now = now;
            }
            loaded.map_err(|failure| failure.into_counts_error(&self.place))
        })
    }

    fn swap<'a>(
        &'a self,
        shelf: Shelf,
        client: LeaseKey<'a>,
        write: Write<'a>,
        keep_for: DurationUs,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        let keep_ms = keep_for.0.div_ceil(1_000).saturating_add(SLACK_MS);
        // Later than any limit needs, and not so late that the server refuses it.
        let keep_ms = keep_ms.min(u64::MAX >> 16);
        Box::pin(self.write(self.names(shelf, Some(client)), write, keep_ms))
    }

    fn swap_epoch<'a>(
        &'a self,
        shelf: Shelf,
        write: Write<'a>,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        Box::pin(self.write(self.names(shelf, None), write, 0))
    }

    fn step<'a>(
        &'a self,
        shelf: Shelf,
        client: LeaseKey<'a>,
        step: Step<'a>,
    ) -> Option<BoxFuture<'a, Result<Stepped, CountsError>>> {
        self.step.can_lend(&step).then(|| {
            let call = async move {
                let names = self.names(shelf, Some(client));
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let stepped = self.step.call(&self.route, &names, &step).await;
                stepped.map_err(|failure| failure.into_counts_error(&self.place))
            };
            Box::pin(call) as BoxFuture<'a, _>
        })
    }
}

impl fmt::Debug for ValkeyLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValkeyLent({})", self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: &[u8]) -> Value {
        Value::BulkString(bytes.to_vec())
    }

    fn check(client: Value, epoch: Value, expected: Option<(Option<Kept>, Option<Kept>)>) {
        let answer = Value::Array(vec![client, epoch, bytes(b"7"), bytes(b"5")]);
        let loaded = read(answer, StoreIdentity(3));
        if let Some(loaded) = &loaded {
            assert_eq!((loaded.now, loaded.identity.0), (TimestampUs(7_000_005), 3));
        }
        assert_eq!(loaded.map(|loaded| (loaded.client, loaded.epoch)), expected);
    }

    #[test]
    fn a_value_is_its_token_and_the_record() {
        let kept = |value: &[u8]| {
            let (token, value) = (Token(1), value.to_vec());
            Some(Kept { token, value })
        };
        let token = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01";
        let long = [&token[..], b"abc"].concat();
        check(Value::Nil, Value::Nil, Some((None, None)));
        check(bytes(&long), bytes(token), Some((kept(b"abc"), kept(b""))));
        check(bytes(&token[1..]), Value::Nil, None);
        check(Value::Int(1), Value::Nil, None);
        assert_eq!(read(Value::Array(Vec::new()), StoreIdentity(3)), None);
        assert_eq!(read(Value::Nil, StoreIdentity(3)), None);
    }
}
