//! Findings about a room in a log of newcomers, from outside: who had to wait although a seat was
//! free, how full the room was, and who was admitted before others.
//!
//! Pure: the log and the limits are all that it reads. It knows what the visitors know. A visitor
//! takes part from its first request on, because nobody outside knows when a node decides. A seat
//! is taken from the response on until the end that its ticket has. So a visitor counts as
//! queued for nothing only if no order of the decisions explains it.

mod sweep;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anteroom_room::rules::Limits;
use anteroom_testkit::load::{Latencies, NewcomerLog};

use self::sweep::Sweep;

/// Time in which an admitted visitor gets its page, if the machine is not too slow.
const PAGE_WITHIN: Duration = Duration::from_secs(1);

/// Findings in a log.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Newcomers who sent a request.
    pub newcomers: u64,
    /// Newcomers whose first response queued them.
    pub queued: u64,
    /// Those of them who were first in line, with a seat and an admission free, all the time from
    /// the request to the response.
    pub first_though_free: u64,
    /// Those of [`Findings::first_though_free`] who were queued before the first seat ended: no
    /// node could wait for the end of a session to be counted.
    pub first_though_free_from_rest: u64,
    /// Newcomers queued although seats were free for them, for all who waited and for all
    /// whose request was on its way.
    pub though_free_for_all: u64,
    /// Share of taken seats when the first newcomer was queued.
    pub utilization_at_first_queue: Option<f64>,
    /// Mean share of taken seats while overloaded: as many visitors were active, waited or asked as
    /// there are seats, or more.
    pub fill_while_overloaded: Option<f64>,
    /// Time in which the room was overloaded.
    pub overloaded_for: Duration,
    /// Time from the first request to its response.
    pub decision: Latencies,
    /// Time by which an admitted visitor came later than the one who had waited longest; zero if it
    /// came first. Admissions while nobody waited are left out.
    pub inversion: Latencies,
    /// Newcomers admitted by their first request while others waited who had come more than a
    /// second earlier. Visitors of one second have no order.
    pub overtaking: u64,
    /// Delay of the first requests against the plan, by a machine that is too slow.
    pub late: Latencies,
    /// Admissions.
    pub admitted: u64,
    /// Most admissions in any second, wherever it begins.
    pub most_in_a_second: usize,
    /// Most admissions in any sixty seconds.
    pub most_in_60_s: usize,
    /// Numbers of people ahead that responses show, and the truth at that moment.
    pub ahead: Vec<Ahead>,
    /// Requests without a response that a visitor understands.
    pub failed: u64,
    /// Admitted visitors who did not get their page in time.
    pub without_page: u64,
}

/// Number of people ahead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ahead {
    /// Number in the response.
    pub shown: u64,
    /// Visitors who waited and had come earlier.
    pub truth: u64,
}

impl Findings {
    /// Examines a log. Fill counts until `until`, when newcomers end to come.
    #[must_use]
    pub fn of(log: &NewcomerLog, limits: Limits, until: Duration) -> Self {
        let mut findings = Sweep::new(log, limits, until).run();
        let mut admissions: Vec<Duration> = Vec::new();
        for visit in &log.visits {
            let Some(first) = visit.exchanges.first() else {
                continue;
            };
            findings.newcomers += 1;
            findings
                .late
                .note(first.sent_at.saturating_sub(visit.due_at));
            if let Some((at, _)) = first.response {
                findings.decision.note(at.saturating_sub(first.sent_at));
            }
            if let Some(at) = visit.admitted_at() {
                admissions.push(at);
                let had_time = at + PAGE_WITHIN <= log.ended_at;
                findings.without_page += u64::from(had_time && visit.seat_ends_at.is_none());
            }
        }
        admissions.sort_unstable();
        findings.admitted = admissions.len() as u64;
        findings.most_in_a_second = most_within(&admissions, Duration::from_secs(1));
        findings.most_in_60_s = most_within(&admissions, Duration::from_secs(60));
        findings
    }

    /// Returns the quantile of so many percent of the difference between what was shown and the
    /// truth.
    #[must_use]
    pub fn ahead_error(&self, percent: usize) -> u64 {
        let errors = self.ahead.iter();
        quantile(
            errors.map(|ahead| ahead.shown.abs_diff(ahead.truth)),
            percent,
        )
    }

    /// Returns the median of what was shown, and of the truth.
    #[must_use]
    pub fn ahead_medians(&self) -> Ahead {
        Ahead {
            shown: quantile(self.ahead.iter().map(|ahead| ahead.shown), 50),
            truth: quantile(self.ahead.iter().map(|ahead| ahead.truth), 50),
        }
    }
}

/// Returns the quantile of so many percent; zero without values.
fn quantile(values: impl Iterator<Item = u64>, percent: usize) -> u64 {
    let mut sorted: Vec<u64> = values.collect();
    sorted.sort_unstable();
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

/// Returns the most of these times, in order, that lie within a window of this length.
fn most_within(times: &[Duration], window: Duration) -> usize {
    let mut first = 0;
    let counts = times.iter().enumerate().map(|(last, at)| {
        while times[first] + window <= *at {
            first += 1;
        }
        last + 1 - first
    });
    counts.max().unwrap_or_default()
}
