//! Each rule that is left out is noticed by the judge.

use crate::lending::faults::{Wanted, run};

/// A rule that is left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Bug {
    /// Lent by the limit that is promised.
    NotWidened,
    /// The lease counted from when the answer came.
    CountsFromTheAnswer,
    /// The lease counted from when the write was sent, and not the read.
    CountsFromTheWrite,
    /// A process that starts anew names its requests as the one before it.
    SameNamesAgain,
    /// What was before an epoch counts as nothing.
    NoReserve,
    /// Nobody says which epoch it has seen.
    NoWitness,
    /// A record of another epoch is believed.
    BelievesOldRecords,
    /// A record that another limit wrote counts as nothing.
    CarriesNothingOver,
    /// A lease runs on when its fixed window has ended.
    CrossesFixedWindows,
    /// Records expire before they may be forgotten.
    ForgetsTooSoon,
    /// Writes over whatever is there.
    SwapsBlindly,
    /// Writes into a store that is not the one that was read.
    SwapsIntoAnyStore,
    /// A node's clock runs slower than any real one.
    SlowClock,
}

fn check(bug: Bug, wanted: Wanted, seeds: u64) {
    let is_noticed = (0..seeds).any(|seed| run(seed, wanted, Some(bug)).is_err());
    assert!(is_noticed, "{bug:?} is not noticed in {seeds} seeds");
}

#[test]
fn each_rule_that_is_left_out_is_noticed() {
    let each = [
        (Bug::NotWidened, Wanted::Anything),
        (Bug::CountsFromTheAnswer, Wanted::Anything),
        (Bug::CountsFromTheWrite, Wanted::Anything),
        (Bug::SlowClock, Wanted::Anything),
        (Bug::SwapsBlindly, Wanted::Anything),
        (Bug::ForgetsTooSoon, Wanted::Anything),
        (Bug::SameNamesAgain, Wanted::Crashes),
        (Bug::NoReserve, Wanted::Losses),
        (Bug::BelievesOldRecords, Wanted::Losses),
        (Bug::SwapsIntoAnyStore, Wanted::Losses),
        (Bug::NoWitness, Wanted::Wipes),
        (Bug::CarriesNothingOver, Wanted::Changes),
        (Bug::CrossesFixedWindows, Wanted::FixedWindows),
    ];
    for (bug, wanted) in each {
        check(bug, wanted, 4_000);
    }
}
