//! Counts of requests, for metrics.

use anteroom_proxy::striped_counts::StripedCounts;

/// Outcome of one request at one limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// Allowed at once.
    Allow,
    /// Over the limit and rejected.
    Reject,
    /// Delayed, then allowed.
    Delay,
    /// Over the limit and sent to the waiting room.
    Wait,
    /// Over a limit in shadow mode.
    Shadow,
    /// Skipped: the key of the limit is missing.
    Skip,
    /// Allowed without being counted: the store was unavailable.
    Uncounted,
    /// Rejected without being counted: the store was unavailable.
    Unavailable,
}

impl Event {
    /// All events, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Allow,
        Self::Reject,
        Self::Delay,
        Self::Wait,
        Self::Shadow,
        Self::Skip,
        Self::Uncounted,
        Self::Unavailable,
    ];

    /// Returns the name in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Reject => "reject",
            Self::Delay => "delay",
            Self::Wait => "wait",
            Self::Shadow => "shadow",
            Self::Skip => "skip",
            Self::Uncounted => "uncounted",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Counters of one limit.
#[derive(Debug, Default)]
pub(crate) struct LimitCounters(StripedCounts<{ Event::ALL.len() }>);

impl LimitCounters {
    pub(crate) fn count(&self, event: Event) {
        self.0.add(event as usize, 1);
    }

    pub(crate) fn read(&self) -> [(Event, u64); Event::ALL.len()] {
        let counts = self.0.read();
        Event::ALL.map(|event| (event, counts[event as usize]))
    }
}
