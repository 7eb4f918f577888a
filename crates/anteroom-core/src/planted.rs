//! Known ways to break the protocol, to show that they are noticed.
//!
//! Each leaves out one rule of the design. Without the feature `planted-bugs` nothing of this is
//! compiled into a program: [`is_planted`] is then a constant `false`.

macro_rules! bugs {
    ($($(#[$meta:meta])* $bug:ident),* $(,)?) => {
        /// A rule that is left out.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[repr(u8)]
        pub enum Bug {
            $($(#[$meta])* $bug),*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$bug),*];
        }
    };
}

bugs! {
    /// A seat may move to an earlier end, although an older ticket still shows the later one.
    MovesToEarlierEnds,
    /// A node keeps no memory of newest ends: parallel and replayed tickets move a seat each.
    ForgetsNewestEnds,
    /// A visitor from another data center gets a seat here that nobody counts.
    SeatsOnCredit,
    /// A seat taken here takes away the one in the old data center.
    TransfersTakeAway,
    /// Every logout frees a seat, a repeated one too.
    LogoutsFreeTwice,
    /// A visitor who has changed the data center finds a seat there no sooner than those who wait.
    MoversWaitInLine,
    /// A logout frees its seat before other nodes know of it.
    LogoutsFreeAtOnce,
    /// A visitor counts as waiting as soon as it was told to wait, whether it comes back or not.
    CountsBeforeReturn,
    /// Any answer is applied, not only the one to the newest request.
    AppliesStaleAnswers,
    /// Giving back leaves an answer on its way in force.
    GivesBackWithoutVoiding,
    /// What a child gives back is counted without what it has used of it.
    GivesBackAndCountsAnew,
    /// What a child says that it gives back it goes on using.
    KeepsWhatItGivesBack,
    /// A node keeps what it was lent, whether it has use for it or not.
    HoardsSlots,
    /// A data center asks for no more renewal credits than it uses while the world is there.
    FewCreditsFarAway,
    /// Admissions of the next minute are used before it has begun.
    SpendsNextMinute,
    /// A lease is used after its end.
    UsesLeaseAfterItsEnd,
    /// A data center lends beyond the end of its own lease.
    LendsBeyondOwnLease,
    /// Seats are lengthened before the parent has agreed to it.
    LengthensSeatsAtOnce,
    /// An interval gives its seats back by the ledger's clock, whatever the children have closed.
    ClosesByOwnClock,
    /// A child that falls silent leaves no phantom seats.
    NoPhantoms,
    /// Unused renewal credits of a silent child leave no phantom seats.
    NoPhantomsOfCredits,
    /// A node that has said goodbye goes on admitting while it drains.
    AdmitsAfterGoodbye,
    /// A ledger that has lost its memory lends at once.
    NoReserveAfterLoss,
    /// A node that starts again writes the row that it had before.
    RestartWritesOldRow,
    /// Seats are prolonged without a credit.
    RenewsWithoutCredit,
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

    /// Leaves one rule out in this whole process, or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(0, |bug| bug as u8 + 1), Ordering::SeqCst);
    }

    /// Whether this rule is left out.
    #[must_use]
    pub fn is_planted(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8 + 1
    }
}

pub use switch::*;
