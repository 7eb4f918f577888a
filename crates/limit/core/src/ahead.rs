//! Time by which a limit may run ahead of its rate, and how much of it a store that counts in
//! doubles can represent.
//!
//! Algorithms that keep a point in time record when everything taken is paid off. If a burst or a
//! queue takes years to pay off, that point is so far ahead that such a store cannot represent its
//! microseconds exactly. Algorithms that keep numbers of requests have no such bound.

use crate::policy::Policy;
use crate::registry::{Early, Remembers};
use crate::time::DurationUs;

const YEAR: DurationUs = DurationUs::from_secs(365 * 86_400);

/// Most years that may lie between a request and the time at which it is paid off, where times are
/// doubles. From any time before the year 2112, that stays below 2^53 us. Up to there doubles are
/// exact.
pub const YEARS_EXACT: u64 = 142;

/// Returns how far ahead of its rate the last request of a full burst or queue may be, in years,
/// rounded up.
#[must_use]
pub fn years_ahead(policy: &Policy) -> u64 {
    let (rate, row) = (policy.rate(), policy.row());
    match row.remembers {
        Remembers::Time => {}
        // These keep numbers of requests and the time of the last one.
        Remembers::Requests | Remembers::Counts | Remembers::Tokens => return 0,
    }
    let settings = policy.settings();
    let requests_ahead = match row.early {
        Early::AtOnce => u64::from(settings.burst.unwrap_or(0)),
        Early::Waits => u64::from(settings.queue.unwrap_or(0)) + u64::from(rate.requests()),
    };
    if rate.requests() == 0 {
        // No request is ever allowed.
        return 0;
    }
    let parts = u128::from(requests_ahead) * u128::from(rate.window().0);
    let span = parts / u128::from(rate.requests());
    u64::try_from(span.div_ceil(u128::from(YEAR.0))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_window::FixedWindow;
    use crate::gcra::Gcra;
    use crate::leaky_bucket::LeakyBucket;
    use crate::rate::Rate;

    #[test]
    fn a_burst_takes_as_long_as_its_requests_one_by_one() {
        let check = |policy: Policy, expected: u64| assert_eq!(years_ahead(&policy), expected);
        let a_year = |calls| Rate::new(calls, YEAR).unwrap();
        let gcra = |calls, burst| Policy::Gcra(Gcra::new(a_year(calls), burst).unwrap());
        check(gcra(1, 142), 142);
        check(gcra(1, 143), 143);
        check(gcra(2, 285), 143);
        check(gcra(100, 100), 1);
        // A full queue, and the requests that go on before it fills.
        check(Policy::LeakyBucket(LeakyBucket::new(a_year(1), 141)), 142);
        check(Policy::LeakyBucket(LeakyBucket::new(a_year(1), 142)), 143);
        check(gcra(0, u32::MAX), 0);
        check(Policy::FixedWindow(FixedWindow::new(a_year(u32::MAX))), 0);
        check(gcra(1, u32::MAX), u64::from(u32::MAX));
    }
}
