//! Partition of a client's messages.
//!
//! The topics of calls and of totals are divided alike: a client has the same partition number in
//! both. Nodes choose it by the client's name, so each node knows which clients are cut off when a
//! partition is unavailable.

use std::num::NonZeroU16;

use crate::stats::Name;

/// Most partitions that are used. Each node sends a beat per second to each of them. More would
/// cause more messages of beats than of clients; fewer would let fewer nodes share the work.
const PARTITIONS_MAX: u16 = 256;

/// Number of partitions among which clients are divided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Partitions(NonZeroU16);

impl Partitions {
    /// A single partition, for the time until the number is known.
    pub(crate) const ONE: Self = Self(NonZeroU16::MIN);

    /// Returns the partitions that both topics have; `None` while one has none. Surplus partitions
    /// of one topic are not used.
    pub(crate) fn among(reports: usize, totals: usize) -> Option<Self> {
        let both = u16::try_from(reports.min(totals)).unwrap_or(u16::MAX);
        NonZeroU16::new(both.min(PARTITIONS_MAX)).map(Self)
    }

    /// Returns the number of partitions.
    pub(crate) fn count(self) -> u16 {
        self.0.get()
    }

    /// Returns the partition of a name.
    pub(crate) fn partition(self, name: Name) -> u16 {
        let partition = low(name) % u64::from(self.count());
        u16::try_from(partition).unwrap_or_default()
    }

    /// Returns a name near this one that belongs to this partition.
    pub(crate) fn name_in(self, partition: u16, name: Name) -> Name {
        let all = u128::from(self.count());
        // Leave room above any name.
        let near = name.0 & !(1 << 63);
        let low = near & u128::from(u64::MAX);
        Name(near - low % all + u128::from(partition) % all)
    }
}

/// Returns the lower half of a name, which decides on the partition and [does not depend on the
/// width](crate::names).
fn low(name: Name) -> u64 {
    u64::try_from(name.0 & u128::from(u64::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(count: usize) -> Partitions {
        Partitions::among(count, count).unwrap()
    }

    #[test]
    fn the_number_of_partitions_is_that_of_the_smaller_topic() {
        for (reports, totals, expected) in [
            (0, 4, None),
            (4, 0, None),
            (1, 9, Some(1)),
            (12, 12, Some(12)),
            (12, 8, Some(8)),
            (100_000, 300, Some(256)),
        ] {
            let found = Partitions::among(reports, totals).map(Partitions::count);
            assert_eq!(found, expected, "{reports} and {totals}");
        }
    }

    #[test]
    fn each_partition_has_a_name_near_any_name() {
        for name in [Name(0), Name(7 << 64), Name(u128::MAX), Name(1 << 63)] {
            for count in [1, 3, 4, 255, 256] {
                let partitions = partitions(count);
                for partition in 0..partitions.count() {
                    let near = partitions.name_in(partition, name);
                    assert_eq!(partitions.partition(near), partition, "{name:?} of {count}");
                    assert_eq!(near.0 >> 64, name.0 >> 64);
                }
            }
        }
    }
}
