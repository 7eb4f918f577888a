//! What became of calls, for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What one limit said to a call, and what came of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// Let through at once.
    Admit,
    /// Over the limit, and sent away.
    Reject,
    /// Held for a while, then let through.
    Delay,
    /// Over the limit, and sent into the waiting room.
    Wait,
    /// Over a limit that only looks.
    Shadow,
    /// Not counted: what it is counted by is missing.
    Skip,
    /// Let through uncounted: the store was away.
    Uncounted,
    /// Refused because it could not be counted: the store was away.
    Unavailable,
}

impl Event {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Admit,
        Self::Reject,
        Self::Delay,
        Self::Wait,
        Self::Shadow,
        Self::Skip,
        Self::Uncounted,
        Self::Unavailable,
    ];

    /// Its name in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
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

/// Counts of one limit.
#[derive(Debug, Default)]
pub(crate) struct LimitCounters([AtomicU64; Event::ALL.len()]);

impl LimitCounters {
    pub(crate) fn count(&self, event: Event) {
        self.0[event as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn read(&self) -> [(Event, u64); Event::ALL.len()] {
        Event::ALL.map(|event| (event, self.0[event as usize].load(Relaxed)))
    }
}
