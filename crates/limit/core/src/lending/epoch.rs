//! What is a store's memory worth? An epoch begins whenever writes may have been lost.
//!
//! One record for all clients of a store says which epoch is in force, since when, and what was
//! before. Whatever a client may have spent before an epoch that began with a loss counts as spent
//! ([`crate::lending::record`]).
//!
//! A store that is found empty may be a new one. Whoever has seen an epoch says so with everything
//! it asks; a node that lends or spends reads this record once a second, so that an old deployment
//! has spoken within [`UNKNOWN_FOR`]. What cannot be known: if all that ever saw the old epoch are
//! out of touch for longer than that, it was a first start.
//!
//! # Why epochs are numbered
//!
//! A store can come back after another one has stood in for it, with its old record and its old
//! identity. Whoever has seen a later epoch than the one in force knows that something was lost;
//! whoever has seen an earlier one is only late.

use crate::lending::widened::TTL_LONGEST;
use crate::time::{DurationUs, TimestampUs};

/// How long a store that was found empty lends nothing: as long as a lease runs.
pub const UNKNOWN_FOR: DurationUs = TTL_LONGEST;

/// Who a store is: another value after it may have lost writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StoreIdentity(pub u64);

/// Which epoch. Two that began without knowing of each other may have the same number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EpochId {
    /// One more than any that was known of when it began; the first is one.
    pub number: u64,
    /// Drawn at random.
    pub random: u64,
}

/// What a store may have forgotten when an epoch began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Before {
    /// It was found empty, and nobody knew of anything.
    Unknown,
    /// Something, and nobody knows what.
    Lost,
    /// Nothing, on an operator's word.
    Nothing,
}

/// The record of an epoch. It must never expire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Epoch {
    /// Its name.
    pub id: EpochId,
    /// The store in which it began.
    pub identity: StoreIdentity,
    /// When, by the clock of that store.
    pub began_at: TimestampUs,
    /// What was before.
    pub before: Before,
}

/// What a node finds when it reads the record, and brings along.
#[derive(Clone, Copy, Debug)]
pub struct EpochObservation<'a> {
    /// The record, if there is one.
    pub record: Option<&'a Epoch>,
    /// Who the store is that was read.
    pub identity: StoreIdentity,
    /// What its clock said.
    pub now: TimestampUs,
    /// The latest epoch that the node has seen, in whichever store.
    pub witnessed: Option<EpochId>,
    /// A random number, in case an epoch begins.
    pub random: u64,
}

/// What is to be done about the record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EpochDecision {
    /// It is in force.
    InForce(Epoch),
    /// This must be written over what was read, and read again. Nothing is lent before.
    Write(Epoch),
}

/// Says whether the epoch that was read is in force.
#[must_use]
pub fn judge(sight: EpochObservation<'_>) -> EpochDecision {
    let Some(found) = sight.record else {
        let before = match sight.witnessed {
            Some(_) => Before::Lost,
            None => Before::Unknown,
        };
        return EpochDecision::Write(sight.next(0, before));
    };
    let later = sight
        .witnessed
        .filter(|seen| found.id.is_outlived_by(*seen));
    if later.is_some() || found.identity != sight.identity {
        return EpochDecision::Write(sight.next(found.id.number, Before::Lost));
    }
    if sight.now < found.began_at {
        // The clock was set back. Counted from now on it is over too late, and not never.
        let began_at = sight.now;
        return EpochDecision::Write(Epoch { began_at, ..*found });
    }
    EpochDecision::InForce(*found)
}

/// The epoch that begins on an operator's word that nobody has spent anything: what is kept of
/// clients before it is forgotten.
#[must_use]
pub fn assume_empty(sight: EpochObservation<'_>) -> Epoch {
    let number = sight.record.map_or(0, |found| found.id.number);
    sight.next(number, Before::Nothing)
}

/// The later of two epochs that a node has seen.
#[must_use]
pub fn later(seen: Option<EpochId>, other: EpochId) -> EpochId {
    seen.filter(|seen| seen.number > other.number)
        .unwrap_or(other)
}

impl Epoch {
    /// Until when nobody is lent anything of whom this epoch knows nothing, because somebody may
    /// still remember what was before.
    pub(super) fn unknown_until(&self) -> TimestampUs {
        match self.before {
            Before::Unknown => self.began_at + UNKNOWN_FOR,
            Before::Lost | Before::Nothing => TimestampUs(0),
        }
    }
}

impl EpochId {
    /// Whether somebody who has seen `seen` knows of something that this epoch does not.
    fn is_outlived_by(self, seen: Self) -> bool {
        seen.number >= self.number && seen != self
    }
}

impl EpochObservation<'_> {
    fn next(&self, number: u64, before: Before) -> Epoch {
        let seen = self.witnessed.map_or(0, |seen| seen.number);
        Epoch {
            id: EpochId {
                number: number.max(seen).saturating_add(1),
                random: self.random,
            },
            identity: self.identity,
            began_at: self.now,
            before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreIdentity = StoreIdentity(1);
    const OTHER_STORE: StoreIdentity = StoreIdentity(2);

    fn id(number: u64, random: u64) -> EpochId {
        EpochId { number, random }
    }

    fn epoch(number: u64, before: Before) -> Epoch {
        Epoch {
            id: id(number, 7),
            identity: STORE,
            began_at: TimestampUs(100),
            before,
        }
    }

    fn sight(record: Option<&Epoch>, witnessed: Option<EpochId>) -> EpochObservation<'_> {
        EpochObservation {
            record,
            identity: STORE,
            now: TimestampUs(500),
            witnessed,
            random: 9,
        }
    }

    fn begun(judgement: EpochDecision) -> (EpochId, Before) {
        match judgement {
            EpochDecision::Write(epoch) => {
                assert_eq!(epoch.began_at, TimestampUs(500));
                (epoch.id, epoch.before)
            }
            EpochDecision::InForce(epoch) => panic!("{epoch:?} is in force"),
        }
    }

    #[test]
    fn a_store_found_empty_is_new_until_somebody_remembers() {
        assert_eq!(begun(judge(sight(None, None))), (id(1, 9), Before::Unknown));
        let remembers = judge(sight(None, Some(id(4, 3))));
        assert_eq!(begun(remembers), (id(5, 9), Before::Lost));
        let new = epoch(1, Before::Unknown);
        let remembers = judge(sight(Some(&new), Some(id(1, 3))));
        assert_eq!(begun(remembers), (id(2, 9), Before::Lost));
    }

    #[test]
    fn another_store_has_lost_something_whatever_it_holds() {
        for before in [Before::Unknown, Before::Lost, Before::Nothing] {
            let old = epoch(3, before);
            let mut sight = sight(Some(&old), Some(old.id));
            sight.identity = OTHER_STORE;
            assert_eq!(begun(judge(sight)), (id(4, 9), Before::Lost));
        }
    }

    #[test]
    fn a_later_epoch_means_loss_and_an_earlier_one_means_late() {
        let here = epoch(3, Before::Lost);
        for late in [None, Some(id(2, 1)), Some(here.id)] {
            assert_eq!(
                judge(sight(Some(&here), late)),
                EpochDecision::InForce(here)
            );
        }
        for (seen, number) in [(id(3, 1), 4), (id(8, 1), 9)] {
            let judged = judge(sight(Some(&here), Some(seen)));
            assert_eq!(begun(judged), (id(number, 9), Before::Lost));
        }
    }

    #[test]
    fn an_operators_word_begins_an_epoch_that_nobody_older_can_doubt() {
        let lost = epoch(3, Before::Lost);
        let empty = assume_empty(sight(Some(&lost), Some(id(3, 7))));
        assert_eq!((empty.id, empty.before), (id(4, 9), Before::Nothing));
        let judged = judge(sight(Some(&empty), Some(lost.id)));
        assert_eq!(judged, EpochDecision::InForce(empty));
    }

    #[test]
    fn an_epoch_that_begins_in_the_future_begins_now() {
        let mut ahead = epoch(3, Before::Lost);
        ahead.began_at = TimestampUs(501);
        let judged = judge(sight(Some(&ahead), None));
        assert_eq!(begun(judged), (ahead.id, Before::Lost));
    }
}
