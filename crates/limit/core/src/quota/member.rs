//! Member of a quota: its assignment, its reports and its demand.

use crate::rate::Rate;
use crate::time::{DurationUs, TimestampUs};

use crate::quota::lifetime::{CALLS_MOST, LONGEST};

/// Time for which requests are assigned ahead, if the window is that long. Unspent requests are
/// lost: a longer time loses more when visitors leave. Early replacements lose the rest of the old
/// assignment: a shorter time loses more while visitors stay.
pub(crate) const AHEAD: DurationUs = DurationUs::from_secs(60);

/// Reports in faster succession are merged, so that one request does not determine the pace.
const GAP_SHORTEST: DurationUs = DurationUs(100_000);

/// Longest gap that is assumed between reports, to decide whether an assignment lasts until the
/// next one.
const GAP_LONGEST: DurationUs = DurationUs::from_secs(10);

/// Time after the end of an assignment in which its requests may be reported: the longest gap
/// between reports.
const LATE_REPORT_MAX: DurationUs = GAP_LONGEST;

/// Assignments for which unreported requests are tracked. A member that gets more of them between
/// two reports has some requests taken twice.
const SPARES: usize = 3;

/// Part of a limit that idle members share, so that a first request is not rejected.
const PART_OF_IDLE: u32 = 16;

/// Latest assignment of a member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CurrentAssignment {
    pub(crate) calls: u32,
    /// Requests reported since.
    pub(crate) used: u64,
    assigned_at: TimestampUs,
    pub(crate) ends_at: TimestampUs,
}

/// Unreported requests of an assignment, and the time until which they may be reported.
#[derive(Clone, Copy, Debug, Default)]
struct Spare {
    calls: u64,
    until: TimestampUs,
}

/// State of one member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) held: Option<CurrentAssignment>,
    /// Requests assigned in this comparison period.
    pub(crate) got: u64,
    /// Time of the last report that counted for the pace.
    reported_at: TimestampUs,
    /// Requests since then that the pace does not include yet.
    uncounted: u64,
    gap: DurationUs,
    /// Requests in a thousand seconds.
    pace: u64,
    /// Assignments that may still be reported as spent, newest first.
    spares: [Spare; SPARES],
}

impl Member {
    pub(crate) const fn new(now: TimestampUs) -> Self {
        Self {
            held: None,
            got: 0,
            reported_at: now,
            uncounted: 0,
            gap: GAP_LONGEST,
            pace: 0,
            spares: [Spare {
                calls: 0,
                until: TimestampUs(0),
            }; SPARES],
        }
    }

    /// Records requests that the member allowed and denied since its last report. Returns how many
    /// it allowed beyond its recent assignments: they were not taken from the limit.
    pub(crate) fn handle_report(&mut self, allowed: u64, denied: u64, now: TimestampUs) -> u64 {
        let requests = allowed.saturating_add(denied);
        if let Some(held) = &mut self.held {
            held.used = held.used.saturating_add(allowed);
        }
        self.uncounted = self.uncounted.saturating_add(requests);
        let gap = now.since(self.reported_at);
        if gap >= GAP_SHORTEST {
            self.handle_pace(gap);
            self.reported_at = now;
        }
        let mut unassigned = allowed;
        // Those that end first come first.
        for spare in self.spares.iter_mut().rev() {
            if now < spare.until {
                let assigned = spare.calls.min(unassigned);
                spare.calls -= assigned;
                unassigned -= assigned;
            }
        }
        unassigned
    }

    /// Updates the pace: up at once, down slowly, because requests come in bursts.
    fn handle_pace(&mut self, gap: DurationUs) {
        let seen = u128::from(self.uncounted) * 1_000_000_000 / u128::from(gap.0);
        let seen = u64::try_from(seen).unwrap_or(u64::MAX);
        self.pace = seen.max(self.pace / 2 + seen / 2);
        self.gap = gap.min(GAP_LONGEST);
        self.uncounted = 0;
    }

    pub(crate) fn handle_assigned(&mut self, calls: u32, now: TimestampUs, ends_at: TimestampUs) {
        self.held = Some(CurrentAssignment {
            calls,
            used: 0,
            assigned_at: now,
            ends_at,
        });
        self.got = self.got.saturating_add(calls.into());
        // The assignment that this one replaces can no longer be spent.
        for spare in &mut self.spares {
            spare.until = spare.until.min(now + LATE_REPORT_MAX);
        }
        if calls > 0 {
            self.spares.rotate_right(1);
            self.spares[0] = Spare {
                calls: calls.into(),
                until: ends_at + LATE_REPORT_MAX,
            };
        }
    }

    /// Returns what the member has left, by its reports.
    pub(crate) fn left(&self, now: TimestampUs) -> u32 {
        let held = self.held.filter(|held| held.ends_at > now);
        held.map_or(0, |held| {
            let left = u64::from(held.calls).saturating_sub(held.used);
            u32::try_from(left).unwrap_or(u32::MAX)
        })
    }

    /// Whether the member has run out, or may before its next report.
    pub(crate) fn is_short(&self, now: TimestampUs) -> bool {
        let left = self.left(now);
        // A report right after an assignment describes the time before it. A new assignment would
        // void the one just sent.
        let has_reported = self
            .held
            .is_none_or(|held| self.reported_at.since(held.assigned_at).0 >= self.gap.0 / 2);
        left == 0 || has_reported && u64::from(left) <= self.expects(self.gap)
    }

    /// Returns how many requests the member will use during `lasts`, out of a limit that `members`
    /// share.
    pub(crate) fn wants(&self, lasts: DurationUs, limit: Rate, members: usize) -> u32 {
        let expected = self.expects(lasts.min(AHEAD));
        // A quarter more, because requests do not come evenly.
        let expected = expected.saturating_add(expected / 4);
        let parts = u128::from(PART_OF_IDLE) * u128::try_from(members.max(1)).unwrap_or(u128::MAX);
        let calls = u128::from(limit.requests()) * u128::from(lasts.min(LONGEST).0);
        let idle = calls / u128::from(limit.window().0) / parts;
        let idle = u64::try_from(idle).unwrap_or(u64::MAX).max(1);
        let most = limit.requests().min(CALLS_MOST);
        u32::try_from(expected.max(idle)).map_or(most, |wanted| wanted.min(most))
    }

    fn expects(&self, span: DurationUs) -> u64 {
        let expected = u128::from(self.pace) * u128::from(span.0) / 1_000_000_000;
        u64::try_from(expected).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
