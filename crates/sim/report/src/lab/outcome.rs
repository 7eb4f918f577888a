//! What came out of a run: each call's fate, and the figures that people compare.

use anteroom_limit::time::{DurationUs, TimestampUs};

/// What became of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// It went on.
    Admitted,
    /// It was refused.
    Refused,
    /// Nobody could say in time, so it was refused, too.
    Undecided,
}

/// One call that was decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    /// When it counts: when it went on, or was refused. Where a store decides, by its clock.
    pub at: TimestampUs,
    /// Whose call.
    pub client: u32,
    /// What became of it.
    pub fate: Fate,
}

/// The figures of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Figures {
    /// Calls that came.
    pub calls: u64,
    /// Of those, admitted.
    pub admitted: u64,
    /// Refused, those among them that nobody could decide in time.
    pub refused: u64,
    /// Of the refused ones, those that nobody could decide in time.
    pub undecided: u64,
    /// Admitted although as many as the limit says had been admitted in the window before.
    pub wrongly_admitted: u64,
    /// Refused although fewer had.
    pub wrongly_refused: u64,
    /// The most that was admitted of one client in any window.
    pub highest: u64,
    /// Calls that were lent to nodes and never used.
    pub stranded: u64,
    /// Messages between nodes, and between nodes and stores.
    pub messages: u64,
    /// How late news of a call were at most, where nodes hear of calls from others; nothing where
    /// they do not.
    pub lag: DurationUs,
    /// Writes that came to nothing because somebody else had written first.
    pub writes_lost: u64,
    /// Writes that were tried.
    pub writes: u64,
}

/// A run that is over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// The figures.
    pub stats: Figures,
    /// Every decision, in the order of time.
    pub decisions: Vec<Decision>,
}
