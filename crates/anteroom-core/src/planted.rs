//! Known ways to break the protocol, to show that they are noticed.
//!
//! Each leaves out one rule of the design. Without the feature `planted-bugs` nothing of this is
//! compiled into a program: [`is_planted`] is then a constant `false`.

/// A rule that is left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Bug {
    /// None.
    Nothing = 0,
    /// A seat may move to an earlier end: an older ticket takes back what a newer one was given.
    MovesToEarlierEnds,
    /// A node keeps no memory of newest ends: parallel and replayed tickets move a seat each.
    ForgetsNewestEnds,
    /// A ticket with a seat in another data center gets one here that nobody counts.
    SeatsOnCredit,
    /// A seat taken here takes away the one in the old data center, whose visitor is refused there.
    TransfersTakeAway,
    /// Every logout frees a seat, a repeated one too.
    LogoutsFreeTwice,
    /// A visitor counts as waiting as soon as it was told to wait.
    CountsBeforeReturn,
    /// Any answer is applied, not only the one to the newest request.
    AppliesStaleAnswers,
    /// What is given back stays in hand until the answer comes.
    KeepsWhatItGivesBack,
    /// A request counts again what the same message gives back.
    GivesBackAndCountsAnew,
    /// A lease is used until the parent's end of it, counted from the answer.
    CountsLeaseFromAnswer,
    /// A data center lends beyond the end of its own lease.
    LendsBeyondOwnLease,
    /// Phantom seats are computed from the session in force and not from the longest one lent.
    PhantomsOfPresentSession,
    /// Claims under a lease that was given up are believed.
    BelievesVoidClaims,
    /// An interval gives its seats back by the parent's clock alone.
    ClosesByOwnClock,
    /// A child that falls silent leaves no phantom seats.
    NoPhantoms,
    /// Unused renewal credits of a silent child leave no phantom seats.
    NoPhantomsOfCredits,
    /// A node that stops says goodbye and keeps admitting with what it had.
    UsesSlotsAfterGoodbye,
    /// A ledger that was found empty lends at once.
    NoReserveAfterLoss,
    /// A node that starts again goes on with the number and the row of its former life.
    RestartKeepsRow,
    /// A node that starts admits before it has a lease of its own.
    AdmitsBeforeLease,
    /// Renewals need no credit.
    RenewsWithoutCredit,
    /// A restarted node writes the row that it had before.
    StartsWithoutAsking,
}

#[cfg(not(feature = "planted-bugs"))]
mod switch {
    use super::Bug;

    /// Whether this rule is left out: never.
    #[must_use]
    pub const fn is_planted(_bug: Bug) -> bool {
        false
    }
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Bug;

    static PLANTED: AtomicU8 = AtomicU8::new(0);

    /// Leaves one rule out in this process, or none.
    pub fn plant(bug: Bug) {
        PLANTED.store(bug as u8, Ordering::SeqCst);
    }

    /// Whether this rule is left out.
    #[must_use]
    pub fn is_planted(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }
}

pub use switch::*;
