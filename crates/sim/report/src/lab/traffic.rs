//! Which calls come, and when? Made up, or recorded.

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

/// More calls than that take more memory than a comparison is worth: some 100 MB for each
/// algorithm.
pub const CALLS_MAX: usize = 2_000_000;

/// Made-up traffic begins at 07:00 UTC on 24 February 2022, the day of the article, where minutes
/// and hours begin, too.
pub const BEGIN: TimestampUs = TimestampUs(1_645_686_000_000_000);

/// A call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Call {
    /// When it comes.
    pub at: TimestampUs,
    /// Whose it is: a number from 0.
    pub client: u32,
}

/// Calls in the order of time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Traffic {
    /// What it is, for people: `random, 110/m on average of each of 2 clients, 600 s long`.
    pub about: String,
    /// The calls.
    pub calls: Vec<Call>,
    /// From when to when it goes: the first and the last call, if nobody says more.
    pub span: (TimestampUs, TimestampUs),
    /// Names of clients, by their number; made-up ones have none.
    pub names: Vec<String>,
}

/// Made-up traffic: how much, for how long, of how many clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Demand {
    /// So many calls of each client in how long, on average.
    pub rate: Rate,
    /// For how long.
    pub length: DurationUs,
    /// How many clients, each with as many calls.
    pub clients: u32,
    /// Another throw of the dice.
    pub seed: u64,
}

/// There would be more calls than [`CALLS_MAX`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("some {calls} calls are more than {CALLS_MAX}, the most that are run")]
pub struct TooManyCallsError {
    /// About how many.
    pub calls: u64,
}

impl Demand {
    /// How many calls are to be expected.
    fn expected(&self) -> u64 {
        let calls = u128::from(self.rate.calls()) * u128::from(self.length.0);
        let calls = calls / u128::from(self.rate.window().0) * u128::from(self.clients);
        u64::try_from(calls).unwrap_or(u64::MAX)
    }

    fn check(&self) -> Result<(), TooManyCallsError> {
        let calls = self.expected();
        if calls > CALLS_MAX as u64 {
            return Err(TooManyCallsError { calls });
        }
        Ok(())
    }

    fn end(&self) -> TimestampUs {
        BEGIN + self.length
    }

    /// These calls as traffic.
    fn made(&self, kind: &str, calls: Vec<Call>) -> Traffic {
        let about = format!(
            "{kind}, {} on average of each of {} clients, {} long",
            RateText::of(self.rate),
            self.clients,
            self.length
        );
        Traffic {
            span: (BEGIN, self.end()),
            ..Traffic::new(about, calls)
        }
    }
}

impl Traffic {
    /// How many clients there are.
    #[must_use]
    pub fn clients(&self) -> usize {
        let last = self.calls.iter().map(|call| call.client).max();
        last.map_or(0, |last| last as usize + 1)
    }

    /// The client with the most calls, the first of several.
    #[must_use]
    pub fn busiest(&self) -> u32 {
        let mut counts = vec![0u32; self.clients()];
        for call in &self.calls {
            counts[call.client as usize] += 1;
        }
        let most = counts.iter().max().copied().unwrap_or(0);
        let found = counts.iter().position(|count| *count == most);
        found.and_then(|at| u32::try_from(at).ok()).unwrap_or(0)
    }

    /// Calls of several clients as one stream; of two at one moment the one that came first stays
    /// first.
    #[must_use]
    pub fn new(about: String, mut calls: Vec<Call>) -> Self {
        calls.sort_by_key(|call| call.at);
        let first = calls.first().map_or(BEGIN, |call| call.at);
        let last = calls.last().map_or(first, |call| call.at);
        Self {
            about,
            calls,
            span: (first, last),
            names: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn demand(calls: u32, seed: u64) -> Demand {
        Demand {
            rate: Rate::new(calls, DurationUs::from_secs(60)).unwrap(),
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
                (1_800..2_600).contains(&traffic.calls.len()),
                "{}",
                traffic.about
            );
            assert_eq!(traffic, make(&demand(110, 1)).unwrap());
            assert_ne!(traffic.calls, make(&demand(110, 2)).unwrap().calls);
            assert!(traffic.calls.is_sorted_by_key(|call| call.at));
            assert_eq!(traffic.span, (BEGIN, demand(110, 1).end()));
            let last = traffic.calls.last().unwrap().at;
            assert!(traffic.calls[0].at >= BEGIN && last < demand(110, 1).end());
            assert_eq!(traffic.clients(), 2);
            assert!(make(&demand(0, 1)).unwrap().calls.is_empty());
            let error = make(&demand(u32::MAX, 1)).unwrap_err();
            assert!(error.calls > CALLS_MAX as u64);
        }
    }
}
