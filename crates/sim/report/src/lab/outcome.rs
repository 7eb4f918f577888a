//! Results of a run: the fate of each request, and statistics to compare.

use anteroom_limit::time::{DurationUs, TimestampUs};

/// Fate of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// The limit allowed it.
    Admitted,
    /// The limit rejected it.
    Rejected,
    /// Rejected, because no decision came in time.
    Undecided,
}

/// Decision about one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    /// Time that counts: when the request went on or was rejected. Where a store decides, by its
    /// clock.
    pub at: TimestampUs,
    /// Client of the request.
    pub client: u32,
    /// Fate of the request.
    pub fate: Fate,
}

/// Statistics of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LimitStatistics {
    /// Requests that came.
    pub requests: u64,
    /// Requests that were allowed.
    pub admitted: u64,
    /// Requests that were rejected, undecided ones included.
    pub rejected: u64,
    /// Rejected requests without a decision in time.
    pub undecided: u64,
    /// Requests allowed although the window before was full.
    pub wrongly_allowed: u64,
    /// Requests rejected although the window before was not full.
    pub wrongly_rejected: u64,
    /// Most allowed requests of one client in any window.
    pub highest: u64,
    /// Requests leased to nodes and never used.
    pub stranded: u64,
    /// Messages between nodes, and between nodes and stores.
    pub messages: u64,
    /// Longest time until nodes learn of a request, where they learn of requests at others;
    /// otherwise 0.
    pub lag: DurationUs,
    /// Writes that failed because another writer was faster.
    pub writes_lost: u64,
    /// Attempted writes.
    pub writes: u64,
}

/// Results of a finished run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// Statistics.
    pub stats: LimitStatistics,
    /// Decisions in the order of time.
    pub decisions: Vec<Decision>,
}
