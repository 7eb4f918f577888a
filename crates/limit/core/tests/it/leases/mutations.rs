//! Mutations: the checker notices each rule that is left out.

use crate::leases::faults::{FaultKind, run};

/// Rule that is left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mutation {
    /// Grants by the promised limit instead of the widened one.
    NotWidened,
    /// Times the lease from the reply.
    CountsFromTheReply,
    /// Times the lease from the write instead of the read.
    CountsFromTheWrite,
    /// Reuses request identifiers after a restart.
    ReusesRequestIds,
    /// Counts nothing as spent before an epoch.
    NoReserve,
    /// Ignores the epoch that a node has seen.
    NoWitness,
    /// Trusts a record of another epoch.
    TrustsOldRecords,
    /// Ignores a record that another limit wrote.
    CarriesNothingOver,
    /// Lets a lease run past the end of its fixed window.
    CrossesFixedWindows,
    /// Lets records expire too early.
    ForgetsTooSoon,
    /// Writes without comparing the version.
    SwapsBlindly,
    /// Writes into a store other than the one that was read.
    SwapsIntoAnyStore,
    /// Runs a node's clock slower than any real one.
    SlowClock,
}

fn check(mutation: Mutation, fault_kind: FaultKind, seeds: u64) {
    let is_noticed = (0..seeds).any(|seed| run(seed, fault_kind, Some(mutation)).is_err());
    assert!(is_noticed, "{mutation:?} is not noticed in {seeds} seeds");
}

#[test]
fn the_checker_notices_each_mutation() {
    let each = [
        (Mutation::NotWidened, FaultKind::Anything),
        (Mutation::CountsFromTheReply, FaultKind::Anything),
        (Mutation::CountsFromTheWrite, FaultKind::Anything),
        (Mutation::SlowClock, FaultKind::Anything),
        (Mutation::SwapsBlindly, FaultKind::Anything),
        (Mutation::ForgetsTooSoon, FaultKind::Anything),
        (Mutation::ReusesRequestIds, FaultKind::Crashes),
        (Mutation::NoReserve, FaultKind::Losses),
        (Mutation::TrustsOldRecords, FaultKind::Losses),
        (Mutation::SwapsIntoAnyStore, FaultKind::Losses),
        (Mutation::NoWitness, FaultKind::Wipes),
        (Mutation::CarriesNothingOver, FaultKind::Changes),
        (Mutation::CrossesFixedWindows, FaultKind::FixedWindows),
    ];
    for (mutation, fault_kind) in each {
        check(mutation, fault_kind, 4_000);
    }
}
