//! What is known of one of those who share a limit?

use crate::rate::Rate;
use crate::time::{DurationUs, TimestampUs};

use crate::quota::lasting::{CALLS_MOST, LONGEST};

/// For how long ahead calls are assigned, if the window lasts so long. What is not spent is lost,
/// so that a longer time costs more when visitors go elsewhere; and each assignment that is
/// replaced early costs what was left of it, so that a shorter one costs more while they stay.
pub(crate) const AHEAD: DurationUs = DurationUs::from_secs(60);

/// Reports that come faster are taken together: a pace is not to be told by one request.
const GAP_SHORTEST: DurationUs = DurationUs(100_000);

/// Reports are taken to come as often as this at least, when it is said whether calls will do until
/// the next.
const GAP_LONGEST: DurationUs = DurationUs::from_secs(10);

/// So long after calls can be spent no more, it may be reported that they were: as long as reports
/// may be apart.
const TOLD_LATE: DurationUs = GAP_LONGEST;

/// Of so many assignments, the last ones, it is known how much of them was not reported as spent.
/// Who is told more often than that between two reports has what it let through charged once more.
const SPARES: usize = 3;

/// All that do not ask share such a part of a limit, so that the first who comes is not refused.
const PART_OF_IDLE: u32 = 16;

/// What it was assigned last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CurrentAssignment {
    pub(crate) calls: u32,
    /// What it reported since.
    pub(crate) used: u64,
    assigned_at: TimestampUs,
    pub(crate) ends_at: TimestampUs,
}

/// What of an assignment was not reported as spent, and until when it may be.
#[derive(Clone, Copy, Debug, Default)]
struct Spare {
    calls: u64,
    until: TimestampUs,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) held: Option<CurrentAssignment>,
    /// What it was assigned in this stretch of time.
    pub(crate) got: u64,
    /// When it last told of a request.
    heard_at: TimestampUs,
    /// Requests since then that no pace was made of yet.
    uncounted: u64,
    gap: DurationUs,
    /// Requests in a thousand seconds.
    pace: u64,
    /// What was assigned and may still be reported as spent, the newest first.
    spares: [Spare; SPARES],
}

impl Member {
    pub(crate) const fn new(now: TimestampUs) -> Self {
        Self {
            held: None,
            got: 0,
            heard_at: now,
            uncounted: 0,
            gap: GAP_LONGEST,
            pace: 0,
            spares: [Spare {
                calls: 0,
                until: TimestampUs(0),
            }; SPARES],
        }
    }

    /// Notes what it let through and what it refused since it last reported. What it let through
    /// beyond what it was assigned lately is returned: nobody has charged that.
    pub(crate) fn handle_report(&mut self, allowed: u64, denied: u64, now: TimestampUs) -> u64 {
        let asked = allowed.saturating_add(denied);
        if let Some(held) = &mut self.held {
            held.used = held.used.saturating_add(allowed);
        }
        self.uncounted = self.uncounted.saturating_add(asked);
        let gap = now.since(self.heard_at);
        if gap >= GAP_SHORTEST {
            self.handle_pace(gap);
            self.heard_at = now;
        }
        let mut unpaid = allowed;
        // Those first that are over first.
        for spare in self.spares.iter_mut().rev() {
            if now < spare.until {
                let paid = spare.calls.min(unpaid);
                spare.calls -= paid;
                unpaid -= paid;
            }
        }
        unpaid
    }

    /// Up at once, down slowly: requests come in bursts.
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
        // What this replaces can be spent no more.
        for spare in &mut self.spares {
            spare.until = spare.until.min(now + TOLD_LATE);
        }
        if calls > 0 {
            self.spares.rotate_right(1);
            self.spares[0] = Spare {
                calls: calls.into(),
                until: ends_at + TOLD_LATE,
            };
        }
    }

    /// What it has left, as far as it has told.
    pub(crate) fn left(&self, now: TimestampUs) -> u32 {
        let held = self.held.filter(|held| held.ends_at > now);
        held.map_or(0, |held| {
            let left = u64::from(held.calls).saturating_sub(held.used);
            u32::try_from(left).unwrap_or(u32::MAX)
        })
    }

    /// Whether it has run out, or may before it reports again.
    pub(crate) fn is_short(&self, now: TimestampUs) -> bool {
        let left = self.left(now);
        // What a report says that came right after an assignment was so before it: who is told anew
        // then would lose what it was just told.
        let has_told = self
            .held
            .is_none_or(|held| self.heard_at.since(held.assigned_at).0 >= self.gap.0 / 2);
        left == 0 || has_told && u64::from(left) <= self.expects(self.gap)
    }

    /// How many calls it will use for as long as `lasts`, of a limit that so many share.
    pub(crate) fn wants(&self, lasts: DurationUs, limit: Rate, members: usize) -> u32 {
        let expected = self.expects(lasts.min(AHEAD));
        // A quarter more: requests do not come evenly.
        let expected = expected.saturating_add(expected / 4);
        let parts = u128::from(PART_OF_IDLE) * u128::try_from(members.max(1)).unwrap_or(u128::MAX);
        let calls = u128::from(limit.calls()) * u128::from(lasts.min(LONGEST).0);
        let idle = calls / u128::from(limit.window().0) / parts;
        let idle = u64::try_from(idle).unwrap_or(u64::MAX).max(1);
        let most = limit.calls().min(CALLS_MOST);
        u32::try_from(expected.max(idle)).map_or(most, |wanted| wanted.min(most))
    }

    fn expects(&self, span: DurationUs) -> u64 {
        let expected = u128::from(self.pace) * u128::from(span.0) / 1_000_000_000;
        u64::try_from(expected).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
