//! The client that knows where windows end: all it can get in the last instant of one, and then a
//! try at every moment at which something may have come free.
//!
//! It reaches the bound of each algorithm when it asks the only node there is, or one store, for it
//! knows how long its calls are on their way to that; where nodes count by themselves it has enough
//! calls for all of them.

use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::{BEGIN, CALLS_MAX, Call, TooManyCallsError, Traffic};

/// It tries so often in a window, and four times as often as the limit allows if that is more: a
/// call that comes free must not wait for the next try.
const TRIES: u64 = 60_000;
const TRIES_PER_CALL: u64 = 4;

/// How many ways of a call it leaves between one try and the next: there, back, and there again.
/// Where a store takes back what does not fit, refused tries count until then, and would stand in
/// the way of the next.
const WAYS: u64 = 3;

/// Against a limit of this rate that admits at most so many in any window, at so many nodes. Where
/// it takes up to `way` until a call is decided, the last instant comes that much earlier.
///
/// # Errors
///
/// [`TooManyCallsError`] for limits of too many calls.
pub fn adversary(
    rate: Rate,
    most: u64,
    nodes: u32,
    way: DurationUs,
) -> Result<Traffic, TooManyCallsError> {
    let window = rate.window();
    // Twice as many as all nodes could let through, for chance sends some to nodes that are full.
    let at_once = most.saturating_mul(u64::from(nodes)).saturating_mul(2);
    let tries = TRIES
        .max(u64::from(rate.calls()) * TRIES_PER_CALL)
        .min(window.0);
    let all = at_once.saturating_add(tries * 2);
    if all > CALLS_MAX as u64 {
        return Err(TooManyCallsError { calls: all });
    }
    let step = DurationUs(window.0 / tries);
    let edge = next_edge(window);
    let first = edge - way - DurationUs(1);
    let mut calls: Vec<Call> = (0..at_once)
        .map(|_| Call {
            at: first,
            client: 0,
        })
        .collect();
    // As many tries however far apart they are: several at once.
    let apart = way.times(WAYS).0.max(1);
    let later = (0..tries * 2).map(|at| Call {
        at: edge + DurationUs(step.times(at).0 / apart * apart),
        client: 0,
    });
    calls.extend(later);
    let about = "an adversary who knows where windows end".to_owned();
    let traffic = Traffic::new(about, calls);
    Ok(Traffic {
        // From the beginning of the window in whose last instant it begins.
        span: (edge - window, traffic.span.1),
        ..traffic
    })
}

/// Where a window ends, after a whole one.
fn next_edge(window: DurationUs) -> TimestampUs {
    TimestampUs((BEGIN.0 / window.0 + 2) * window.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_at_a_windows_last_instant_and_ever_after() {
        let rate = Rate::new(100, DurationUs::from_secs(60)).unwrap();
        let traffic = adversary(rate, 200, 2, DurationUs::ZERO).unwrap();
        let (first, last) = (traffic.calls[0].at, traffic.span.1);
        assert_eq!(traffic.calls.len(), 800 + 120_000);
        assert_eq!(first.0 % 60_000_000, 59_999_999);
        assert_eq!(traffic.calls[800].at.0 % 60_000_000, 0);
        assert_eq!(last.since(first).0, 119_999_001);
        let large = Rate::new(1_000_000, DurationUs::from_secs(60)).unwrap();
        assert!(adversary(large, 2_000_000, 1, DurationUs::ZERO).is_err());
    }

    #[test]
    fn distant_callers_ask_earlier_and_several_times_at_once() {
        let rate = Rate::new(100, DurationUs::from_secs(60)).unwrap();
        let far = adversary(rate, 200, 2, DurationUs(50_000)).unwrap();
        assert_eq!(far.calls[0].at.0 % 60_000_000, 59_949_999);
        assert_eq!(far.calls.len(), 800 + 120_000);
        let tries = &far.calls[800..];
        assert!(tries[..150].iter().all(|try_| try_.at == tries[0].at));
        assert_eq!(tries[150].at.since(tries[149].at).0, 150_000);
    }
}
