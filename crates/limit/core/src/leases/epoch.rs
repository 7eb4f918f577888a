//! Epochs of a store: a new one begins whenever writes may have been lost.
//!
//! One record for all clients of a store names the current epoch, its beginning, and what was lost
//! before it. After a loss, everything that a client could have spent before counts as spent
//! ([`crate::leases::record`]).
//!
//! A store that is found empty may be a new one. A node sends the latest epoch it has seen with
//! each request. A node with leases reads this record once a second, so that an old deployment
//! makes itself known within [`UNKNOWN_FOR`]. One case cannot be detected: if all nodes that saw
//! the old epoch are cut off for longer than that, the store counts as new.
//!
//! # A store that comes back with its data
//!
//! A store may promise to lack no more than its writes of the last moments. If it comes back as
//! another server, the epoch goes on when the nodes have reported what they were granted in those
//! moments ([`crate::leases::members`]). Nothing is granted before. Of two nodes that see different
//! promises, the more cautious one is right.
//!
//! # Why epochs are numbered
//!
//! After a replacement store, the old one can come back with its old record and its old identity. A
//! node that has seen a later epoch than the current one knows of a loss. A node that has seen only
//! an earlier one is behind.

use crate::leases::members::Reports;
use crate::leases::widened::TTL_LONGEST;
use crate::time::{DurationUs, TimestampUs};

/// Time for which a store that was found empty grants nothing: the longest lease.
pub const UNKNOWN_FOR: DurationUs = TTL_LONGEST;

/// Identity of a store. It changes after events that may have lost writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StoreIdentity(pub u64);

/// Identifier of an epoch. Two that began independently may have the same number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EpochId {
    /// One more than the highest number known when it began; the first is one.
    pub number: u64,
    /// Random number drawn by the node that began it.
    pub random: u64,
}

/// Data that a store may have lost when an epoch began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Before {
    /// Unknown: the store was empty, and no node had seen an epoch.
    Unknown,
    /// Some data, of unknown extent.
    Lost,
    /// None, as an operator confirmed.
    Nothing,
}

/// Record of an epoch. It must never expire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Epoch {
    /// Identifier of the epoch.
    pub id: EpochId,
    /// Store in which it began.
    pub identity: StoreIdentity,
    /// Beginning, by the clock of that store.
    pub began_at: TimestampUs,
    /// Data lost before it.
    pub before: Before,
    /// Longest time of acknowledged writes that the store may lack when it comes back as another
    /// server, as the most cautious node saw it. `None`: of any length.
    pub longest_loss: Option<DurationUs>,
}

/// Epoch record as a node reads it, with what the node knows.
#[derive(Clone, Copy, Debug)]
pub struct EpochObservation<'a> {
    /// Record, if there is one.
    pub record: Option<&'a Epoch>,
    /// Identity of the store that was read.
    pub identity: StoreIdentity,
    /// Promise of that store, as in [`Epoch::longest_loss`].
    pub longest_loss: Option<DurationUs>,
    /// State of the reports to that store, if it is another one than that of the epoch.
    pub reports: Reports,
    /// Time of the store's clock.
    pub now: TimestampUs,
    /// Latest epoch that the node has seen, in any store.
    pub witnessed: Option<EpochId>,
    /// Random number, in case an epoch begins.
    pub random: u64,
}

/// Decision about the epoch record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EpochDecision {
    /// The epoch is current.
    InForce(Epoch),
    /// The store came back with this epoch, and members have not reported yet. Has the promise that
    /// counts. Nothing is granted before they have.
    Reporting(Epoch, DurationUs),
    /// This record must replace the one that was read, and be read again. Nothing is granted
    /// before.
    Write(Epoch),
}

/// Decides whether the epoch that was read is current.
#[must_use]
pub fn decide(observation: EpochObservation<'_>) -> EpochDecision {
    let Some(found) = observation.record else {
        let before = match observation.witnessed {
            Some(_) => Before::Lost,
            None => Before::Unknown,
        };
        return EpochDecision::Write(observation.begin(before));
    };
    let later = observation
        .witnessed
        .filter(|seen| found.id.has_missed(*seen));
    if later.is_some() {
        return EpochDecision::Write(observation.begin(Before::Lost));
    }
    let longest_loss = weaker(found.longest_loss, observation.longest_loss);
    if found.identity != observation.identity {
        return match (longest_loss, observation.reports) {
            (Some(longest_loss), Reports::Missing) => {
                EpochDecision::Reporting(*found, longest_loss)
            }
            (Some(_), Reports::Complete) => EpochDecision::Write(Epoch {
                identity: observation.identity,
                longest_loss: observation.longest_loss,
                ..*found
            }),
            (None, _) | (_, Reports::Lost) => EpochDecision::Write(observation.begin(Before::Lost)),
        };
    }
    if longest_loss != found.longest_loss {
        return EpochDecision::Write(Epoch {
            longest_loss,
            ..*found
        });
    }
    if observation.now < found.began_at {
        // The clock was set back. From now on, the wait ends too late instead of never.
        let began_at = observation.now;
        return EpochDecision::Write(Epoch { began_at, ..*found });
    }
    EpochDecision::InForce(*found)
}

/// Returns the promise that counts if one node sees one and another node the other.
#[must_use]
pub fn weaker(one: Option<DurationUs>, other: Option<DurationUs>) -> Option<DurationUs> {
    Some(one?.max(other?))
}

/// Returns the later of two epochs that a node has seen.
#[must_use]
pub fn later(seen: Option<EpochId>, other: EpochId) -> EpochId {
    seen.filter(|seen| seen.number > other.number)
        .unwrap_or(other)
}

impl Epoch {
    /// Returns the time for which nobody is granted anything, because a node may still know of an
    /// older epoch. `now` is by the clock of the store.
    #[must_use]
    pub fn closed_for(&self, now: TimestampUs) -> DurationUs {
        self.unknown_until().since(now)
    }

    /// Returns the time until which clients without a record in this epoch get no lease, because a
    /// node may still know of an older epoch.
    pub(super) fn unknown_until(&self) -> TimestampUs {
        match self.before {
            Before::Unknown => self.began_at + UNKNOWN_FOR,
            Before::Lost | Before::Nothing => TimestampUs(0),
        }
    }
}

impl EpochId {
    /// Whether a node that has seen `seen` knows of an epoch that this one missed.
    fn has_missed(self, seen: Self) -> bool {
        seen.number >= self.number && seen != self
    }
}

impl EpochObservation<'_> {
    /// Returns the epoch that begins now. After [`Before::Nothing`], older records of clients are
    /// void: an operator confirms that no client has spent anything.
    #[must_use]
    pub fn begin(&self, before: Before) -> Epoch {
        let number = self.record.map_or(0, |found| found.id.number);
        let seen = self.witnessed.map_or(0, |seen| seen.number);
        Epoch {
            id: EpochId {
                number: number.max(seen).saturating_add(1),
                random: self.random,
            },
            identity: self.identity,
            began_at: self.now,
            before,
            longest_loss: self.longest_loss,
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
            longest_loss: None,
        }
    }

    fn observation(record: Option<&Epoch>, witnessed: Option<EpochId>) -> EpochObservation<'_> {
        EpochObservation {
            record,
            identity: STORE,
            longest_loss: None,
            reports: Reports::Missing,
            now: TimestampUs(500),
            witnessed,
            random: 9,
        }
    }

    fn begun(decision: EpochDecision) -> (EpochId, Before) {
        match decision {
            EpochDecision::Write(epoch) => {
                assert_eq!(epoch.began_at, TimestampUs(500));
                (epoch.id, epoch.before)
            }
            decision => panic!("{decision:?}"),
        }
    }

    #[test]
    fn an_empty_store_is_new_unless_a_node_saw_an_epoch() {
        assert_eq!(
            begun(decide(observation(None, None))),
            (id(1, 9), Before::Unknown)
        );
        let witnessed = decide(observation(None, Some(id(4, 3))));
        assert_eq!(begun(witnessed), (id(5, 9), Before::Lost));
        let new = epoch(1, Before::Unknown);
        let witnessed = decide(observation(Some(&new), Some(id(1, 3))));
        assert_eq!(begun(witnessed), (id(2, 9), Before::Lost));
    }

    #[test]
    fn a_changed_identity_means_loss() {
        for before in [Before::Unknown, Before::Lost, Before::Nothing] {
            let old = epoch(3, before);
            let mut observation = observation(Some(&old), Some(old.id));
            observation.identity = OTHER_STORE;
            assert_eq!(begun(decide(observation)), (id(4, 9), Before::Lost));
        }
    }

    #[test]
    fn a_store_that_promises_something_goes_on_when_all_have_reported() {
        let some = |millis| Some(DurationUs(millis));
        let old = Epoch {
            longest_loss: some(3),
            ..epoch(3, Before::Nothing)
        };
        let mut observation = observation(Some(&old), Some(old.id));
        observation.identity = OTHER_STORE;
        observation.longest_loss = some(2);
        let reporting = EpochDecision::Reporting(old, DurationUs(3));
        assert_eq!(decide(observation), reporting);
        observation.reports = Reports::Complete;
        let goes_on = Epoch {
            identity: OTHER_STORE,
            longest_loss: some(2),
            ..old
        };
        assert_eq!(decide(observation), EpochDecision::Write(goes_on));
        observation.longest_loss = None;
        assert_eq!(begun(decide(observation)), (id(4, 9), Before::Lost));
        observation.longest_loss = some(2);
        observation.reports = Reports::Lost;
        assert_eq!(begun(decide(observation)), (id(4, 9), Before::Lost));
        observation.reports = Reports::Complete;
        observation.witnessed = Some(id(4, 1));
        assert_eq!(begun(decide(observation)), (id(5, 9), Before::Lost));
    }

    #[test]
    fn the_weakest_promise_that_a_node_sees_counts() {
        let some = |millis| Some(DurationUs(millis));
        for (kept, seen, counts) in [
            (some(3), some(2), some(3)),
            (some(2), some(3), some(3)),
            (some(2), None, None),
            (None, some(2), None),
        ] {
            let old = Epoch {
                longest_loss: kept,
                ..epoch(3, Before::Nothing)
            };
            let mut observation = observation(Some(&old), Some(old.id));
            observation.longest_loss = seen;
            let expected = Epoch {
                longest_loss: counts,
                ..old
            };
            let decision = match counts == kept {
                true => EpochDecision::InForce(expected),
                false => EpochDecision::Write(expected),
            };
            assert_eq!(decide(observation), decision);
        }
    }

    #[test]
    fn a_later_epoch_means_loss_and_an_earlier_one_a_late_node() {
        let here = epoch(3, Before::Lost);
        for late in [None, Some(id(2, 1)), Some(here.id)] {
            assert_eq!(
                decide(observation(Some(&here), late)),
                EpochDecision::InForce(here)
            );
        }
        for (seen, number) in [(id(3, 1), 4), (id(8, 1), 9)] {
            let decision = decide(observation(Some(&here), Some(seen)));
            assert_eq!(begun(decision), (id(number, 9), Before::Lost));
        }
    }

    #[test]
    fn an_operators_epoch_outranks_every_older_one() {
        let lost = epoch(3, Before::Lost);
        let empty = observation(Some(&lost), Some(id(3, 7))).begin(Before::Nothing);
        assert_eq!((empty.id, empty.before), (id(4, 9), Before::Nothing));
        let decision = decide(observation(Some(&empty), Some(lost.id)));
        assert_eq!(decision, EpochDecision::InForce(empty));
    }

    #[test]
    fn an_epoch_that_begins_in_the_future_begins_now() {
        let mut ahead = epoch(3, Before::Lost);
        ahead.began_at = TimestampUs(501);
        let decision = decide(observation(Some(&ahead), None));
        assert_eq!(begun(decision), (ahead.id, Before::Lost));
    }
}
