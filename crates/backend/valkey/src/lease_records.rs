//! Records from which requests are leased, at the server: each is read and written with its epoch
//! in one round trip.
//!
//! A value is the token of the write that created it, 16 bytes, and then the record. Loads and
//! swaps do not interpret the record. The step script grants leases in one round trip, with its own
//! implementation of the arithmetic of [`anteroom_limit`]. The node checks each grant against that.
//!
//! Deliberately absent: waiting for replicas. A promoted replica is another server, and all earlier
//! leases count as spent.

mod step;

use std::fmt;

use anteroom_config::ValkeyAddress;
use anteroom_limit::leases::epoch::StoreIdentity;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::lease_store::step::{Step, Stepped};
use anteroom_limit_store::lease_store::{
    Expected, LeaseKey, LeaseRecords, Loaded, Partition, StoredRecord, Swapped, Token, Write,
};
use anteroom_limit_store::shared::{BoxFuture, CountsError, TestTime};
use anteroom_room::time::DurationMs;
use anteroom_store::{Durability, Identity};
use redis::Value;

use self::step::StepScript;
use crate::access::SetupError;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::link::ServerReply;
use crate::route::Route;
use crate::script::{Text, number};

/// Partitions of a cluster. Many more than servers, so that servers have about equally many. Few
/// enough that a check of every epoch once a second costs nothing.
const PARTITIONS_OF_A_CLUSTER: u32 = 64;

/// Extra time, in ms, for which a client's record is kept: the server rounds, and its clock may be
/// adjusted a little.
const SLACK_MS: u64 = 1_000;

/// Bytes of a token at the server.
const TOKEN_BYTES: usize = 16;

/// Lease records on Valkey or Redis.
///
/// There is one connection to each server, shared by all requests. A load, a swap and a step cost
/// one round trip each. Requests end within 1 s, 2.25 s with a new connection.
///
/// # Limits
///
/// A server that evicts keys because its memory is full forgets clients. Epochs never expire, so a
/// policy that evicts only expiring keys (`volatile-*`) keeps them, and no loss is noticed.
pub struct ValkeyLeases {
    route: Route,
    keys: Keys,
    load: Text,
    swap: Text,
    step: StepScript,
    /// Name of the store, without secrets.
    store_name: String,
}

impl ValkeyLeases {
    /// Creates records at this address; `prefix` begins all keys. Opens no connection yet.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the trusted certificates for TLS cannot be read.
    pub fn new(address: &ValkeyAddress, prefix: &str) -> Result<Self, SetupError> {
        Self::by(StepScript::new(None), address, prefix)
    }

    /// Creates records with the clock of a test. Grants by the step script are kept for an hour
    /// more then, as the server expires them by its own clock.
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
            load: Text::new(include_str!("lease_records/load.lua")),
            swap: Text::new(include_str!("lease_records/swap.lua")),
            store_name: address.to_string(),
        })
    }

    /// Ends all connections; later requests fail.
    pub fn close(&self) {
        self.route.close();
    }

    /// Returns the keys on a partition: the epoch, and the client if there is one.
    fn names(&self, partition: Partition, client: Option<LeaseKey<'_>>) -> Vec<String> {
        let client = client.map(|client| self.keys.lease(partition, client));
        [self.keys.epoch(partition)]
            .into_iter()
            .chain(client)
            .collect()
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
        swapped.map_err(|failure| failure.into_counts_error(&self.store_name))
    }
}

/// Encodes a token for the script; empty for a missing record.
fn token_bytes(Token(token): Token) -> Vec<u8> {
    match token {
        0 => Vec::new(),
        token => token.to_be_bytes().to_vec(),
    }
}

/// Decodes two records and the clock of the server.
fn loaded(connection: &Connection, value: Value) -> Result<Loaded, Failure> {
    let read = read(value, Server::of(connection));
    read.ok_or_else(|| connection.unexpected_reply("no records"))
}

/// Server that replied.
#[derive(Clone, Copy, Debug)]
struct Server {
    identity: StoreIdentity,
    longest_loss: Option<DurationUs>,
}

impl Server {
    fn of(connection: &Connection) -> Self {
        Self {
            identity: StoreIdentity(connection.identity.0),
            longest_loss: match connection.durability {
                Durability::Unknown => None,
                Durability::LosesAtMost(DurationMs(millis)) => {
                    Some(DurationUs(millis.saturating_mul(1_000)))
                }
                Durability::KeepsAll => Some(DurationUs::ZERO),
            },
        }
    }
}

/// Decodes a load; `None` if the reply is invalid.
fn read(value: Value, server: Server) -> Option<Loaded> {
    let Value::Array(parts) = value else {
        return None;
    };
    let [client, epoch, secs, micros] = <[Value; 4]>::try_from(parts).ok()?;
    let (secs, micros) = (number(&secs)?, number(&micros)?);
    Some(Loaded {
        client: kept(client)?,
        epoch: kept(epoch)?,
        now: TimestampUs(secs.checked_mul(1_000_000)?.checked_add(micros)?),
        identity: server.identity,
        longest_loss: server.longest_loss,
    })
}

fn kept(value: Value) -> Option<Option<StoredRecord>> {
    let mut token = match value {
        Value::Nil => return Some(None),
        Value::BulkString(bytes) if bytes.len() >= TOKEN_BYTES => bytes,
        _ => return None,
    };
    let value = token.split_off(TOKEN_BYTES);
    let token = Token(u128::from_be_bytes(token.try_into().ok()?));
    Some(Some(StoredRecord { token, value }))
}

impl LeaseRecords for ValkeyLeases {
    fn store_name(&self) -> &str {
        &self.store_name
    }

    fn partitions(&self) -> u32 {
        if self.route.is_one_server() {
            1
        } else {
            PARTITIONS_OF_A_CLUSTER
        }
    }

    fn load<'a>(
        &'a self,
        partition: Partition,
        client: Option<LeaseKey<'a>>,
    ) -> BoxFuture<'a, Result<Loaded, CountsError>> {
        Box::pin(async move {
            let names = self.names(partition, client);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let called = self.load.call(&self.route, &names, &[], None).await;
            let mut loaded =
                called.and_then(|ServerReply { value, connection }| loaded(&connection, value));
            if let (Ok(loaded), Some(now)) = (&mut loaded, self.step.test_time()) {
                loaded.now = now;
            }
            loaded.map_err(|failure| failure.into_counts_error(&self.store_name))
        })
    }

    fn swap<'a>(
        &'a self,
        partition: Partition,
        client: LeaseKey<'a>,
        write: Write<'a>,
        keep_for: DurationUs,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        let keep_ms = keep_for.0.div_ceil(1_000).saturating_add(SLACK_MS);
        // Longer than any limit needs, and still accepted by the server.
        let keep_ms = keep_ms.min(u64::MAX >> 16);
        Box::pin(self.write(self.names(partition, Some(client)), write, keep_ms))
    }

    fn swap_epoch<'a>(
        &'a self,
        partition: Partition,
        write: Write<'a>,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        Box::pin(self.write(self.names(partition, None), write, 0))
    }

    fn step<'a>(
        &'a self,
        partition: Partition,
        client: LeaseKey<'a>,
        step: Step<'a>,
    ) -> Option<BoxFuture<'a, Result<Stepped, CountsError>>> {
        self.step.can_grant(&step).then(|| {
            let call = async move {
                let names = self.names(partition, Some(client));
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let stepped = self.step.call(&self.route, &names, &step).await;
                stepped.map_err(|failure| failure.into_counts_error(&self.store_name))
            };
            Box::pin(call) as BoxFuture<'a, _>
        })
    }
}

impl fmt::Debug for ValkeyLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValkeyLeases({})", self.store_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const SERVER: Server = Server {
        identity: StoreIdentity(3),
        longest_loss: Some(DurationUs(9)),
    };

    fn bytes(bytes: &[u8]) -> Value {
        Value::BulkString(bytes.to_vec())
    }

    fn check(
        client: Value,
        epoch: Value,
        expected: Option<(Option<StoredRecord>, Option<StoredRecord>)>,
    ) {
        let reply = Value::Array(vec![client, epoch, bytes(b"7"), bytes(b"5")]);
        let loaded = read(reply, SERVER);
        if let Some(loaded) = &loaded {
            assert_eq!((loaded.now, loaded.identity.0), (TimestampUs(7_000_005), 3));
            assert_eq!(loaded.longest_loss, Some(DurationUs(9)));
        }
        assert_eq!(loaded.map(|loaded| (loaded.client, loaded.epoch)), expected);
    }

    #[test]
    fn a_value_is_its_token_and_the_record() {
        let kept = |value: &[u8]| {
            let (token, value) = (Token(1), value.to_vec());
            Some(StoredRecord { token, value })
        };
        let token = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01";
        let long = [&token[..], b"abc"].concat();
        check(Value::Nil, Value::Nil, Some((None, None)));
        check(bytes(&long), bytes(token), Some((kept(b"abc"), kept(b""))));
        check(bytes(&token[1..]), Value::Nil, None);
        check(Value::Int(1), Value::Nil, None);
        assert_eq!(read(Value::Array(Vec::new()), SERVER), None);
        assert_eq!(read(Value::Nil, SERVER), None);
    }
}
