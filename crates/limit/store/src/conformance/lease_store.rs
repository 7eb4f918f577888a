//! Conformance list of all stores that grant leases. A new store runs it and adds one line.

mod steps;

use anteroom_limit::leases::epoch::StoreIdentity;
use anteroom_limit::time::DurationUs;
use futures_util::future::join_all;

use crate::key::ClientKey;
use crate::lease_store::{
    Expected, LeaseKey, LeaseRecords, Loaded, Partition, StoredRecord, Swapped, Token, Write,
};
use crate::shared::CountsError;

/// Longer than the whole list takes.
const KEPT: DurationUs = DurationUs::from_secs(600);
/// Number of concurrent writers.
const WRITERS: u128 = 4;

/// Runs the whole list against an empty store.
///
/// # Errors
///
/// [`CountsError`] if the store fails where it should work.
///
/// # Panics
///
/// If the store does not do what it must: this is a test.
pub async fn check(store: &dyn LeaseRecords) -> Result<(), CountsError> {
    let last = Partition(store.partitions().checked_sub(1).expect("there is one"));
    let partitions = if last == Partition(0) {
        vec![last]
    } else {
        vec![Partition(0), last]
    };
    for partition in partitions {
        let on = PartitionUnderTest { store, partition };
        on.records_are_absent_until_written().await?;
        on.a_write_that_expects_other_records_changes_nothing()
            .await?;
        on.a_write_meant_for_another_store_changes_nothing().await?;
        on.clients_and_limits_are_independent().await?;
        on.values_come_back_byte_for_byte().await?;
        on.exactly_one_of_concurrent_writers_wins().await?;
        on.the_clock_is_monotonic_and_the_identity_constant()
            .await?;
        on.steps().await?;
    }
    Ok(())
}

/// One partition of the store under test.
struct PartitionUnderTest<'s> {
    store: &'s dyn LeaseRecords,
    partition: Partition,
}

const fn client(limit: &str, key: u128) -> LeaseKey<'_> {
    let key = ClientKey(key);
    LeaseKey { limit, key }
}

fn kept(token: u128, value: &[u8]) -> Option<StoredRecord> {
    let (token, value) = (Token(token), value.to_vec());
    Some(StoredRecord { token, value })
}

fn write(expected: Expected, token: u128, value: &[u8]) -> Write<'_> {
    Write {
        expected,
        token: Token(token),
        value,
    }
}

impl PartitionUnderTest<'_> {
    async fn load(&self, client: LeaseKey<'_>) -> Result<Loaded, CountsError> {
        self.store.load(self.partition, Some(client)).await
    }

    async fn swap(
        &self,
        client: LeaseKey<'_>,
        expected: Expected,
        token: u128,
        value: &[u8],
    ) -> Result<Swapped, CountsError> {
        let write = write(expected, token, value);
        self.store.swap(self.partition, client, write, KEPT).await
    }

    async fn swap_epoch(
        &self,
        expected: Expected,
        token: u128,
        value: &[u8],
    ) -> Result<Swapped, CountsError> {
        let write = write(expected, token, value);
        self.store.swap_epoch(self.partition, write).await
    }

    async fn records_are_absent_until_written(&self) -> Result<(), CountsError> {
        let one = client("absent", 1);
        let nothing = self.load(one).await?;
        // There may be an epoch: some stores know what was before them.
        assert_eq!(nothing.client, None);
        let begun = self.swap_epoch(nothing.expected(), 10, b"epoch").await?;
        assert_eq!(begun, Swapped::Written);
        let begun = self.load(one).await?;
        assert_eq!((&begun.client, &begun.epoch), (&None, &kept(10, b"epoch")));
        let written = self.swap(one, begun.expected(), 11, b"one").await?;
        assert_eq!(written, Swapped::Written);
        let current = self.load(one).await?;
        assert_eq!(current.client, kept(11, b"one"));
        assert_eq!(current.epoch, kept(10, b"epoch"));
        let epoch_alone = self.store.load(self.partition, None).await?;
        assert_eq!(epoch_alone.client, None);
        assert_eq!(epoch_alone.epoch, kept(10, b"epoch"));
        Ok(())
    }

    /// A conflict returns the current records, which saves another round trip.
    async fn a_write_that_expects_other_records_changes_nothing(&self) -> Result<(), CountsError> {
        let one = client("contended", 1);
        let absent = self.load(one).await?.expected();
        let first = self.swap(one, absent, 21, b"first").await?;
        assert_eq!(first, Swapped::Written);
        let current = self.load(one).await?.expected();
        let unknown = Token(0xFFFF);
        let (other_client, other_epoch) = (
            Expected {
                client: unknown,
                ..current
            },
            Expected {
                epoch: unknown,
                ..current
            },
        );
        let no_epoch = Expected {
            epoch: Token(0),
            ..current
        };
        for stale in [absent, other_client, other_epoch, no_epoch] {
            let swapped = self.swap(one, stale, 22, b"second").await?;
            let Swapped::Conflict(returned) = swapped else {
                panic!("{stale:?}: {swapped:?}");
            };
            assert_eq!(returned.expected(), current);
            assert_eq!(returned.client, kept(21, b"first"));
        }
        for stale in [other_epoch, no_epoch] {
            let swapped = self.swap_epoch(stale, 23, b"another").await?;
            let Swapped::Conflict(returned) = swapped else {
                panic!("{stale:?}: {swapped:?}");
            };
            assert_eq!(returned.epoch, self.load(one).await?.epoch);
        }
        let written = self.swap(one, current, 24, b"third").await?;
        assert_eq!(written, Swapped::Written);
        assert_eq!(self.load(one).await?.client, kept(24, b"third"));
        Ok(())
    }

    async fn a_write_meant_for_another_store_changes_nothing(&self) -> Result<(), CountsError> {
        let one = client("strange", 1);
        let here = self.load(one).await?.expected();
        let other_store = Expected {
            identity: StoreIdentity(here.identity.0 ^ 1),
            ..here
        };
        let swapped = self.swap(one, other_store, 31, b"one").await?;
        assert_eq!(swapped, Swapped::OtherStore);
        let swapped = self.swap_epoch(other_store, 32, b"one").await?;
        assert_eq!(swapped, Swapped::OtherStore);
        assert_eq!(self.load(one).await?.expected(), here);
        Ok(())
    }

    async fn clients_and_limits_are_independent(&self) -> Result<(), CountsError> {
        let clients = [
            client("a", 1),
            client("a", 2),
            client("a", 1 << 64),
            client("b", 1),
            client("{a}", 1),
        ];
        for (token, client) in (41..).zip(clients) {
            let absent = self.load(client).await?;
            assert_eq!(absent.client, None, "{client:?}");
            let written = self.swap(client, absent.expected(), token, b"").await?;
            assert_eq!(written, Swapped::Written);
        }
        for (token, client) in (41..).zip(clients) {
            assert_eq!(self.load(client).await?.client, kept(token, b""));
        }
        Ok(())
    }

    async fn values_come_back_byte_for_byte(&self) -> Result<(), CountsError> {
        let one = client("bytes", 1);
        let all: Vec<u8> = (0..=255).collect();
        // The length of a long log.
        let long = all.repeat(1_000);
        let values = [&all[..], &[], &long, b"\r\n$-1\r\n"];
        for (token, value) in (u128::MAX - 10..).zip(values) {
            let expected = self.load(one).await?.expected();
            let written = self.swap(one, expected, token, value).await?;
            assert_eq!(written, Swapped::Written);
            assert_eq!(self.load(one).await?.client, kept(token, value));
        }
        Ok(())
    }

    async fn exactly_one_of_concurrent_writers_wins(&self) -> Result<(), CountsError> {
        let one = client("race", 1);
        for round in 1..20 {
            let expected = self.load(one).await?.expected();
            let tokens = (0..WRITERS).map(|writer| round * 100 + writer);
            let writes = tokens.map(|token| self.swap(one, expected, token, b"mine"));
            let swaps: Result<Vec<Swapped>, CountsError> =
                join_all(writes).await.into_iter().collect();
            let swaps = swaps?;
            let won = (0..).zip(&swaps);
            let won = won.filter(|(_, swap)| **swap == Swapped::Written);
            let won: Vec<u128> = won.map(|(writer, _)| writer).collect();
            let [winner] = won[..] else {
                panic!("{won:?} have won");
            };
            let current = self.load(one).await?.client;
            assert_eq!(current, kept(round * 100 + winner, b"mine"));
        }
        Ok(())
    }

    async fn the_clock_is_monotonic_and_the_identity_constant(&self) -> Result<(), CountsError> {
        let first = self.store.load(self.partition, None).await?;
        let second = self.store.load(self.partition, None).await?;
        assert!(second.now >= first.now);
        assert_eq!(second.identity, first.identity);
        Ok(())
    }
}
