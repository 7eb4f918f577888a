//! Fixed window: counts requests since the window began.
//!
//! One counter, which any store can keep. At each edge of a window the count restarts, so that
//! twice the limit can pass within a moment. Source: Muscat, "Distributed Rate-Limiting
//! Algorithms", 2022.
//!
//! Windows begin at the Unix epoch. Minutes, hours and days are those of UTC; a window of a week
//! begins on Thursday.

use crate::windows::{self, Windows};

/// Fixed window of a rate. Any window allows at most twice its requests.
pub type FixedWindow = Windows<1>;

/// State of one client.
pub type State = windows::State<1>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Cost;
    use crate::testing::{Client, a_minute, at};

    fn client(requests: u32) -> Client<FixedWindow> {
        Client::new(FixedWindow::new(a_minute(requests)))
    }

    // Muscat, "Distributed Rate-Limiting Algorithms", 2022: the count of 07:10 at 07:10:23.
    #[test]
    fn a_request_at_23_seconds_counts_from_the_full_minute() {
        let mut client = client(100);
        client.send("07:09:23", 10);
        client.send("07:10:00", 20);
        assert_eq!(client.remaining("07:10:23"), 80);
        assert_eq!(client.state.starts_at, at("07:10:00"));
    }

    // Muscat: 100 requests at 07:09:59 and 100 at 07:10:00.
    #[test]
    fn twice_the_limit_passes_at_the_edge_of_a_minute() {
        let mut client = client(100);
        let requests = client.send("07:09:59", 100) + client.send("07:10:00", 100);
        assert_eq!(requests, 200);
        assert_eq!(client.send("07:10:00", 1), 0);
    }

    #[test]
    fn a_rejected_client_may_retry_when_the_next_minute_begins() {
        let mut client = client(100);
        client.send("07:10:10", 99);
        assert_eq!(client.retry_at("07:10:20", 2), Some(at("07:11:00")));
        assert_eq!(client.full_at("07:10:20"), at("07:11:00"));
        assert!(client.takes("07:10:20", 1));
        assert_eq!(client.step("07:10:20", Cost::take(101)), {
            let mut never = client.step("07:10:20", Cost::ONE);
            never.outcome = crate::verdict::Outcome::Reject { retry_after: None };
            never
        });
    }

    #[test]
    fn a_clock_that_goes_back_reopens_no_window() {
        let mut client = client(100);
        client.send("07:09:59", 100);
        client.send("07:10:00", 100);
        assert_eq!(client.send("07:09:00", 1), 0);
        assert_eq!(client.retry_at("07:09:00", 1), Some(at("07:11:00")));
    }

    #[test]
    fn what_was_spent_stays_spent_when_the_limit_changes() {
        let mut client = client(100);
        client.send("07:10:00", 60);
        for (requests, left) in [(50, 0), (61, 1), (200, 140), (0, 0)] {
            client.limit = FixedWindow::new(a_minute(requests));
            assert_eq!(client.remaining("07:10:01"), left, "{requests}");
        }
    }

    #[test]
    fn a_refund_undoes_only_this_window() {
        let mut client = client(100);
        client.send("07:09:59", 100);
        client.step("07:09:59", Cost::refund(30));
        assert_eq!(client.remaining("07:09:59"), 30);
        client.send("07:10:00", 10);
        client.step("07:10:01", Cost::refund(30));
        assert_eq!(client.remaining("07:10:01"), 100);
    }
}
