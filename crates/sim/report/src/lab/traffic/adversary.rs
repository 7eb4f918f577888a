//! Adversary: a client that knows where windows end. It sends all requests in the last instant of
//! one, and then tries at every moment at which a request may pass.
//!
//! It reaches the bound of each algorithm at a single node or store, because it knows the delay of
//! its requests. Where nodes count alone it has enough requests for all of them.

use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::{BEGIN, REQUESTS_MAX, Request, TooManyRequestsError, Traffic};

/// Tries in a window, or four times as many as the limit allows if that is more, so that each free
/// request is used at once.
const TRIES: u64 = 60_000;
const TRIES_PER_REQUEST: u64 = 4;

/// Delays between one try and the next: there, back, and there again. Where a store takes back what
/// does not fit, rejected tries count until then, and would block the next one.
const WAYS: u64 = 3;

/// Creates traffic against a limit of this rate that allows `most` requests in any window at so
/// many nodes. With decisions that take up to `way`, the last instant is that much earlier.
///
/// # Errors
///
/// Returns [`TooManyRequestsError`] for limits of too many requests.
pub fn adversary(
    rate: Rate,
    most: u64,
    nodes: u32,
    way: DurationUs,
) -> Result<Traffic, TooManyRequestsError> {
    let window = rate.window();
    // Twice as many as all nodes could allow, because random routing sends some to full nodes.
    let at_once = most.saturating_mul(u64::from(nodes)).saturating_mul(2);
    let tries = TRIES
        .max(u64::from(rate.requests()) * TRIES_PER_REQUEST)
        .min(window.0);
    let all = at_once.saturating_add(tries * 2);
    if all > REQUESTS_MAX as u64 {
        return Err(TooManyRequestsError { requests: all });
    }
    let step = DurationUs(window.0 / tries);
    let edge = next_edge(window);
    let first = edge - way - DurationUs(1);
    let mut requests: Vec<Request> = (0..at_once)
        .map(|_| Request {
            at: first,
            client: 0,
        })
        .collect();
    // The same number of tries for every distance: several at once.
    let apart = way.times(WAYS).0.max(1);
    let later = (0..tries * 2).map(|at| Request {
        at: edge + DurationUs(step.times(at).0 / apart * apart),
        client: 0,
    });
    requests.extend(later);
    let about = "an adversary who knows where windows end".to_owned();
    let traffic = Traffic::new(about, requests);
    Ok(Traffic {
        // Starts at the beginning of the window in whose last instant it begins.
        span: (edge - window, traffic.span.1),
        ..traffic
    })
}

/// Returns the end of a window, after a whole one.
fn next_edge(window: DurationUs) -> TimestampUs {
    TimestampUs((BEGIN.0 / window.0 + 2) * window.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sends_at_a_windows_last_instant_and_ever_after() {
        let rate = Rate::new(100, DurationUs::from_secs(60)).unwrap();
        let traffic = adversary(rate, 200, 2, DurationUs::ZERO).unwrap();
        let (first, last) = (traffic.requests[0].at, traffic.span.1);
        assert_eq!(traffic.requests.len(), 800 + 120_000);
        assert_eq!(first.0 % 60_000_000, 59_999_999);
        assert_eq!(traffic.requests[800].at.0 % 60_000_000, 0);
        assert_eq!(last.since(first).0, 119_999_001);
        let large = Rate::new(1_000_000, DurationUs::from_secs(60)).unwrap();
        assert!(adversary(large, 2_000_000, 1, DurationUs::ZERO).is_err());
    }

    #[test]
    fn distant_clients_send_earlier_and_several_times_at_once() {
        let rate = Rate::new(100, DurationUs::from_secs(60)).unwrap();
        let far = adversary(rate, 200, 2, DurationUs(50_000)).unwrap();
        assert_eq!(far.requests[0].at.0 % 60_000_000, 59_949_999);
        assert_eq!(far.requests.len(), 800 + 120_000);
        let tries = &far.requests[800..];
        assert!(tries[..150].iter().all(|try_| try_.at == tries[0].at));
        assert_eq!(tries[150].at.since(tries[149].at).0, 150_000);
    }
}
