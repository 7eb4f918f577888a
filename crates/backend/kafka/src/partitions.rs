//! Over which partition does what is told of a client go?
//!
//! A lane is a partition of the topic of calls and the one of the same number of the topic of
//! totals. The nodes choose it themselves, by the name of a client, so that each knows which of its
//! clients are cut off when a lane is silent.

use std::num::NonZeroU16;

use crate::stats::Name;

/// Lanes that are used at most. In each of them each node tells a beat a second, and more would
/// make more messages of beats than of clients; fewer would let fewer nodes share the work.
const PARTITIONS_MAX: u16 = 256;

/// Into how many lanes clients are divided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Partitions(NonZeroU16);

impl Partitions {
    /// All in one: as good as any other as long as it is not known how many there are.
    pub(crate) const ONE: Self = Self(NonZeroU16::MIN);

    /// With so many partitions of the two topics; `None` while there are none. What one has more is
    /// not used.
    pub(crate) fn among(calls: usize, totals: usize) -> Option<Self> {
        let both = u16::try_from(calls.min(totals)).unwrap_or(u16::MAX);
        NonZeroU16::new(both.min(PARTITIONS_MAX)).map(Self)
    }

    /// How many there are.
    pub(crate) fn count(self) -> u16 {
        self.0.get()
    }

    /// Which one a name is told in.
    pub(crate) fn partition(self, name: Name) -> u16 {
        let partition = low(name) % u64::from(self.count());
        u16::try_from(partition).unwrap_or_default()
    }

    /// The name next to this one that is told in this lane.
    pub(crate) fn name_in(self, partition: u16, name: Name) -> Name {
        let all = u128::from(self.count());
        // So that there is one above, whatever the name.
        let near = name.0 & !(1 << 63);
        let low = near & u128::from(u64::MAX);
        Name(near - low % all + u128::from(partition) % all)
    }
}

/// What lanes go by: the lower half, in which the width of stretches [does not show](crate::names).
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
    fn there_are_as_many_partitions_as_partitions_within_a_bound() {
        for (calls, totals, expected) in [
            (0, 4, None),
            (4, 0, None),
            (1, 9, Some(1)),
            (12, 12, Some(12)),
            (12, 8, Some(8)),
            (100_000, 300, Some(256)),
        ] {
            let found = Partitions::among(calls, totals).map(Partitions::count);
            assert_eq!(found, expected, "{calls} and {totals}");
        }
    }

    #[test]
    fn in_each_partition_there_is_a_name_near_every_other() {
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
