//! Sliding window from two fixed ones: assumes that the requests of the previous window came
//! evenly.
//!
//! Two counters, which any store can keep. The estimate is right for an even load. It is too strict
//! if the requests of the previous window came early, and too generous if they came late. Sources:
//! Muscat, "Distributed Rate-Limiting Algorithms", 2022; Cloudflare, "How we built rate limiting
//! capable of scaling to millions of domains", 2017.

use crate::windows::{self, Windows};

/// Sliding window of a rate. Any window allows less than twice its requests.
pub type SlidingWindow = Windows<2>;

/// State of one client.
pub type State = windows::State<2>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm as _;
    use crate::cost::Cost;
    use crate::testing::{Client, a_minute, at};
    use crate::time::TimestampUs;

    fn client(requests: u32) -> Client<SlidingWindow> {
        Client::new(SlidingWindow::new(a_minute(requests)))
    }

    // Muscat, "Distributed Rate-Limiting Algorithms", 2022: at 00:01:43 the last 17 seconds of the
    // minute before still count, 17/60 of its requests.
    #[test]
    fn at_43_seconds_past_17_sixtieths_of_the_minute_before_count() {
        let mut client = client(100);
        client.send("00:00:30", 60);
        assert_eq!(client.remaining("00:01:43"), 100 - 17);
        client.send("00:01:43", 20);
        assert_eq!(client.remaining("00:01:43"), 100 - 17 - 20);
    }

    // Cloudflare, "How we built rate limiting capable of scaling to millions of domains", 2017: 42
    // in the minute before and 18 in this one are 42 * 45/60 + 18 = 49.5 of 50 after 15 seconds.
    #[test]
    fn an_estimate_of_49_5_of_fifty_is_not_over() {
        let mut client = client(50);
        client.send("00:00:30", 42);
        client.send("00:01:05", 8);
        client.send("00:01:15", 9);
        assert!(client.takes("00:01:15", 1));
        assert_eq!(client.state.counts, [18, 42]);
        // 50.5 now, and 50.0 when 30/42 of a second (0.714286 s) has passed.
        let retry_at = at("00:01:15") + crate::time::DurationUs(714_286);
        assert_eq!(client.retry_at("00:01:15", 1), Some(retry_at));
    }

    // Muscat: right for an even load, but for the request at the edge.
    #[test]
    fn evenly_spaced_requests_are_counted_correctly() {
        let mut client = client(100);
        // Just below 99 a minute.
        for k in 0..1_000 {
            let now = TimestampUs(k * 606_061);
            let verdict = client.limit.step(&mut client.state, now, Cost::ONE);
            assert!(verdict.is_allowed(), "{k}");
            let truth = 100 - u32::try_from(k + 1).unwrap().min(99);
            assert!(verdict.remaining.abs_diff(truth) <= 1, "{k}: {verdict:?}");
        }
    }

    // Muscat: wrong for an uneven load. Too strict if the requests before came early, too generous
    // if they came late.
    #[test]
    fn early_requests_count_too_long_and_late_ones_too_briefly() {
        let mut early = client(100);
        early.send("00:00:00", 100);
        assert_eq!(early.send("00:01:30", 100), 50);
        let mut late = client(100);
        late.send("00:00:59", 100);
        assert_eq!(late.send("00:01:30", 100), 50);
        assert_eq!(late.send("00:01:58.9", 100), 48);
    }

    #[test]
    fn a_client_that_stops_is_forgotten_after_two_windows() {
        let mut client = client(100);
        client.send("00:00:59", 100);
        assert_eq!(client.full_at("00:00:59"), at("00:02:00"));
        assert_eq!(client.retry_at("00:00:59", 100), Some(at("00:02:00")));
        assert_eq!(client.retry_at("00:00:59", 1), Some(at("00:01:00.6")));
        assert!(!client.limit.is_idle(&client.state, at("00:01:59.999999")));
        assert!(client.limit.is_idle(&client.state, at("00:02:00")));
    }

    #[test]
    fn a_clock_that_goes_back_stops_at_the_window_start() {
        let mut client = client(100);
        client.send("00:00:30", 60);
        client.send("00:01:30", 30);
        assert_eq!(client.remaining("00:01:30"), 40);
        assert_eq!(client.remaining("00:00:10"), 10);
    }

    #[test]
    fn a_refund_undoes_this_window_first_and_then_the_one_before() {
        let mut client = client(100);
        client.send("00:00:30", 60);
        client.send("00:01:30", 30);
        client.step("00:01:30", Cost::refund(40));
        assert_eq!(client.state.counts, [0, 50]);
        client.step("00:02:30", Cost::refund(40));
        assert_eq!(client.remaining("00:02:30"), 100);
    }

    #[test]
    fn what_was_spent_stays_spent_when_the_limit_changes() {
        let mut client = client(100);
        client.send("00:00:30", 60);
        for (requests, left) in [(20, 0), (31, 1), (200, 170), (0, 0)] {
            client.limit = SlidingWindow::new(a_minute(requests));
            assert_eq!(client.remaining("00:01:30"), left, "{requests}");
        }
    }
}
