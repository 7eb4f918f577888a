//! Traffic of requests, generated or recorded.

mod adversary;
mod bursty;
mod poisson;
mod random;
mod recorded;

pub use adversary::adversary;
pub use bursty::bursty;
pub use random::random;
pub(crate) use recorded::read;

use anteroom_config::RateText;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};

/// Most requests of a run: some 100 MB for each algorithm.
pub const REQUESTS_MAX: usize = 2_000_000;

/// Start of generated traffic: 07:00 UTC on 24 February 2022, the day of the article, at the start
/// of a minute and an hour.
pub const BEGIN: TimestampUs = TimestampUs(1_645_686_000_000_000);

/// Request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// Arrival time.
    pub at: TimestampUs,
    /// Client as a number from 0.
    pub client: u32,
}

/// Requests in the order of time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Traffic {
    /// Description for readers: `random, 110/m on average of each of 2 clients, 600 s long`.
    pub about: String,
    /// Requests.
    pub requests: Vec<Request>,
    /// Start and end: by default the first and the last request.
    pub span: (TimestampUs, TimestampUs),
    /// Names of clients, by their number; generated ones have none.
    pub names: Vec<String>,
}

/// Parameters of generated traffic: rate, length and number of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Demand {
    /// Mean rate of requests of each client.
    pub rate: Rate,
    /// Length of the traffic.
    pub length: DurationUs,
    /// Number of clients, each with as many requests.
    pub clients: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Error of traffic with more requests than [`REQUESTS_MAX`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("traffic has some {requests} requests: at most {REQUESTS_MAX} are run")]
pub struct TooManyRequestsError {
    /// Approximate number of requests.
    pub requests: u64,
}

impl Demand {
    /// Returns the expected number of requests.
    fn expected(&self) -> u64 {
        let requests = u128::from(self.rate.requests()) * u128::from(self.length.0);
        let requests = requests / u128::from(self.rate.window().0) * u128::from(self.clients);
        u64::try_from(requests).unwrap_or(u64::MAX)
    }

    fn check(&self) -> Result<(), TooManyRequestsError> {
        let requests = self.expected();
        if requests > REQUESTS_MAX as u64 {
            return Err(TooManyRequestsError { requests });
        }
        Ok(())
    }

    fn end(&self) -> TimestampUs {
        BEGIN + self.length
    }

    /// Returns these requests as traffic.
    fn made(&self, kind: &str, requests: Vec<Request>) -> Traffic {
        let about = format!(
            "{kind}, {} on average of each of {} clients, {} long",
            RateText::of(self.rate),
            self.clients,
            self.length
        );
        Traffic {
            span: (BEGIN, self.end()),
            ..Traffic::new(about, requests)
        }
    }
}

impl Traffic {
    /// Returns the number of clients.
    #[must_use]
    pub fn clients(&self) -> usize {
        let last = self.requests.iter().map(|request| request.client).max();
        last.map_or(0, |last| last as usize + 1)
    }

    /// Returns the client with the most requests, the first of several.
    #[must_use]
    pub fn busiest(&self) -> u32 {
        let mut counts = vec![0u32; self.clients()];
        for request in &self.requests {
            counts[request.client as usize] += 1;
        }
        let most = counts.iter().max().copied().unwrap_or(0);
        let found = counts.iter().position(|count| *count == most);
        found.and_then(|at| u32::try_from(at).ok()).unwrap_or(0)
    }

    /// Merges requests of several clients into one stream; of two at one moment the first one stays
    /// first.
    #[must_use]
    pub fn new(about: String, mut requests: Vec<Request>) -> Self {
        requests.sort_by_key(|request| request.at);
        let first = requests.first().map_or(BEGIN, |request| request.at);
        let last = requests.last().map_or(first, |request| request.at);
        Self {
            about,
            requests,
            span: (first, last),
            names: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn demand(requests: u32, seed: u64) -> Demand {
        Demand {
            rate: Rate::new(requests, DurationUs::from_secs(60)).unwrap(),
            length: DurationUs::from_secs(600),
            clients: 2,
            seed,
        }
    }

    #[test]
    fn generated_traffic_has_the_requested_size_and_repeats_by_seed() {
        for make in [random, bursty] {
            let traffic = make(&demand(110, 1)).unwrap();
            assert!(
                (1_800..2_600).contains(&traffic.requests.len()),
                "{}",
                traffic.about
            );
            assert_eq!(traffic, make(&demand(110, 1)).unwrap());
            assert_ne!(traffic.requests, make(&demand(110, 2)).unwrap().requests);
            assert!(traffic.requests.is_sorted_by_key(|request| request.at));
            assert_eq!(traffic.span, (BEGIN, demand(110, 1).end()));
            let last = traffic.requests.last().unwrap().at;
            assert!(traffic.requests[0].at >= BEGIN && last < demand(110, 1).end());
            assert_eq!(traffic.clients(), 2);
            assert!(make(&demand(0, 1)).unwrap().requests.is_empty());
            let error = make(&demand(u32::MAX, 1)).unwrap_err();
            assert!(error.requests > REQUESTS_MAX as u64);
        }
    }
}
