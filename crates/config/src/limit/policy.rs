//! By which algorithm calls are counted, and with which settings.
//!
//! Clients with a limit of their own have the same algorithm; what they leave out is as the limit's
//! table says.

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leaky_bucket::LeakyBucket;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::rate::Rate;
use anteroom_limit::settings::SettingsError;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::sub_windows_strict::SubWindowsStrict;
use anteroom_limit::time::{MicroSpan, Micros};
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_limit::verdict::Outcome;
use anteroom_room::time::Span;

use super::keys::{ALGORITHM, BURST, INITIAL_BURST, LIMIT, QUEUE, SUB_WINDOWS};
use crate::duration;
use crate::problem::Finding;
use crate::rate_text::RateText;
use crate::reader::Table;

/// Which algorithm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AlgorithmKind {
    SubWindowsStrict,
    SlidingLog,
    FixedWindow,
    SlidingWindow,
    SubWindows,
    TokenBucket,
    Gcra,
    LeakyBucket,
}

/// Keys that mean something to some algorithms only, and to which.
const OF_ALGORITHMS: [(&str, &[AlgorithmKind]); 4] = [
    (
        SUB_WINDOWS.name,
        &[AlgorithmKind::SubWindowsStrict, AlgorithmKind::SubWindows],
    ),
    (
        BURST.name,
        &[AlgorithmKind::TokenBucket, AlgorithmKind::Gcra],
    ),
    (INITIAL_BURST.name, &[AlgorithmKind::TokenBucket]),
    (QUEUE.name, &[AlgorithmKind::LeakyBucket]),
];

/// What was typed for an algorithm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Settings {
    /// `None` after a mistake in it.
    pub(super) algorithm: Option<AlgorithmKind>,
    sub_windows: u32,
    burst: Option<u32>,
    initial_burst: Option<u32>,
    queue: Option<u32>,
}

impl Settings {
    /// Reads the keys of a limit's table. Says which of them mean nothing to its algorithm.
    fn read(table: &mut Table<'_>) -> Self {
        let algorithm = table.optional(&ALGORITHM);
        let is_left_out = !table.has(ALGORITHM.name);
        let settings = Self {
            algorithm: algorithm.or_else(|| is_left_out.then_some(AlgorithmKind::SubWindowsStrict)),
            sub_windows: table.defaulted(&SUB_WINDOWS),
            burst: table.optional(&BURST),
            initial_burst: table.optional(&INITIAL_BURST),
            queue: table.optional(&QUEUE),
        };
        settings.refuse_keys_of_others(table);
        settings
    }

    /// Reads the keys of one client, over those of the limit.
    fn read_own(self, table: &mut Table<'_>) -> Self {
        let settings = Self {
            burst: table.optional(&BURST).or(self.burst),
            initial_burst: table.optional(&INITIAL_BURST).or(self.initial_burst),
            queue: table.optional(&QUEUE).or(self.queue),
            ..self
        };
        settings.refuse_keys_of_others(table);
        settings
    }

    fn refuse_keys_of_others(&self, table: &mut Table<'_>) {
        let Some(algorithm) = self.algorithm else {
            return;
        };
        for (name, algorithms) in OF_ALGORITHMS {
            if !table.has(name) || algorithms.contains(&algorithm) {
                continue;
            }
            let spot = table.spot(name);
            let finding = format!("has no effect with algorithm {:?}", word(algorithm));
            let words = algorithms.iter().map(|kind| format!("{:?}", word(*kind)));
            let allowed = format!(
                "only with algorithm {}",
                words.collect::<Vec<_>>().join(" or ")
            );
            table
                .notes
                .refuse(&spot, Finding::Remark(finding), allowed, None);
        }
    }

    fn policy(&self, rate: Rate, algorithm: AlgorithmKind) -> Result<Policy, SettingsError> {
        let calls = rate.calls();
        // Without any calls nothing passes, whatever the burst is.
        let burst = self.burst.unwrap_or_else(|| calls.max(1));
        let initial_burst = self.initial_burst.unwrap_or(burst);
        let parts = self.sub_windows;
        Ok(match algorithm {
            AlgorithmKind::SubWindowsStrict => {
                Policy::SubWindowsStrict(SubWindowsStrict::new(rate, parts)?)
            }
            AlgorithmKind::SubWindows => Policy::SubWindows(SubWindows::new(rate, parts)?),
            AlgorithmKind::SlidingLog => Policy::SlidingLog(SlidingLog::new(rate)?),
            AlgorithmKind::FixedWindow => Policy::FixedWindow(FixedWindow::new(rate)),
            AlgorithmKind::SlidingWindow => Policy::SlidingWindow(SlidingWindow::new(rate)),
            AlgorithmKind::TokenBucket => {
                Policy::TokenBucket(TokenBucket::new(rate, burst, initial_burst)?)
            }
            AlgorithmKind::Gcra => Policy::Gcra(Gcra::new(rate, burst)?),
            AlgorithmKind::LeakyBucket => {
                Policy::LeakyBucket(LeakyBucket::new(rate, self.queue.unwrap_or(calls)))
            }
        })
    }
}

/// Reads how calls are counted: what was typed, and the policy unless there is a mistake in it.
pub(super) fn read(table: &mut Table<'_>) -> (Settings, Option<Policy>) {
    let mistakes = table.notes.count();
    let rate = table.required(&LIMIT);
    let settings = Settings::read(table);
    let is_right = table.notes.count() == mistakes;
    let policy = rate.filter(|_| is_right);
    let policy = policy.and_then(|rate| build(table, rate, &settings));
    (settings, policy)
}

/// The same of one client.
pub(super) fn read_own(table: &mut Table<'_>, limit: Settings) -> Option<Policy> {
    let mistakes = table.notes.count();
    let rate = table.required(&LIMIT);
    let settings = limit.read_own(table);
    let is_right = table.notes.count() == mistakes;
    let rate = rate.filter(|_| is_right)?;
    build(table, rate, &settings)
}

/// `None` after saying what does not go together.
fn build(table: &mut Table<'_>, rate: RateText, settings: &Settings) -> Option<Policy> {
    let misfit = match settings.policy(rate.rate(), settings.algorithm?) {
        Ok(policy) => return Some(policy),
        Err(error) => Misfit::of(error, rate),
    };
    let Misfit {
        mut key,
        mut found,
        mut hint,
        ..
    } = misfit;
    if !table.has(key) {
        // A client has it from the limit.
        found = format!("{:?} beside the limit's {key} {found}", rate.to_string());
        key = LIMIT.name;
        hint = None;
    }
    let spot = table.spot(key);
    let found = Finding::Value(found);
    table.notes.refuse(&spot, found, misfit.allowed, hint);
    None
}

/// A value that does not go together with others.
struct Misfit {
    key: &'static str,
    found: String,
    allowed: String,
    hint: Option<String>,
}

impl Misfit {
    fn of(error: SettingsError, rate: RateText) -> Self {
        match error {
            SettingsError::LogTooLong { most, .. } => Self {
                key: LIMIT.name,
                found: format!("{:?}", rate.to_string()),
                allowed: format!("at most {most} calls with algorithm \"sliding-log\""),
                hint: Some("\"sub-windows-strict\" is as strict and counts any number".to_owned()),
            },
            SettingsError::PartsUneven { window, parts } => Self {
                key: SUB_WINDOWS.name,
                found: parts.to_string(),
                allowed: format!("a number of parts of {window}, each of whole microseconds"),
                hint: Some(format!("did you mean {}?", even_parts(window, parts))),
            },
            SettingsError::InitialBurstBelowCapacity {
                initial_burst,
                capacity,
            } => Self {
                key: INITIAL_BURST.name,
                found: initial_burst.to_string(),
                allowed: format!("at least burst, which is {capacity}"),
                hint: None,
            },
            // What the keys may hold leaves no other.
            other => Self {
                key: LIMIT.name,
                found: format!("{:?}", rate.to_string()),
                allowed: "what the algorithm can count".to_owned(),
                hint: Some(other.to_string()),
            },
        }
    }
}

/// The next smaller number of parts that are whole microseconds.
fn even_parts(window: MicroSpan, parts: u32) -> u32 {
    let is_even = |parts: &u32| window.0.is_multiple_of(u64::from(*parts));
    (1..parts).rev().find(is_even).unwrap_or(1)
}

/// Whether no call of this cost ever goes through, not even the first one.
pub(super) fn lets_nothing_through(policy: &Policy, cost: u32) -> bool {
    let first = policy.step(&mut State::default(), Micros(0), Cost::take(cost));
    first.outcome == Outcome::Reject { retry_after: None }
}

/// Warns of places in a queue that no call ever takes, for it would be held for too long.
pub(super) fn warn_of_long_queue(table: &mut Table<'_>, policy: &Policy, delay_max: Span) {
    let Policy::LeakyBucket(bucket) = policy else {
        return;
    };
    let rate = bucket.rate();
    if !table.has(QUEUE.name) || rate.calls() == 0 {
        return;
    }
    let delay = u128::from(delay_max.0) * 1_000;
    let within = (delay * u128::from(rate.calls())).div_ceil(u128::from(rate.window().0));
    if u128::from(bucket.queue()) > within {
        let spot = table.spot(QUEUE.name);
        let delay_max = duration::text(delay_max);
        let remark = format!(
            "within delay_max ({delay_max}) no more than {within} calls can go on; more are \
             rejected, however long the queue is"
        );
        table.notes.warn(&spot, remark);
    }
}

/// The word for an algorithm.
fn word(algorithm: AlgorithmKind) -> &'static str {
    let words = ALGORITHM.kind.0.iter();
    let mut found = words.filter(|(_, kind)| *kind == algorithm);
    found.next().map_or("", |(word, _)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse::<RateText>().unwrap().rate()
    }

    #[test]
    fn a_call_that_no_pause_helps_is_found() {
        let bucket =
            |initial| Policy::TokenBucket(TokenBucket::new(rate("9/m"), 5, initial).unwrap());
        let check = |policy: Policy, cost: u32, expected: bool| {
            assert_eq!(lets_nothing_through(&policy, cost), expected, "{policy:?}");
        };
        check(Policy::FixedWindow(FixedWindow::new(rate("0/s"))), 1, true);
        check(Policy::FixedWindow(FixedWindow::new(rate("9/s"))), 9, false);
        check(Policy::FixedWindow(FixedWindow::new(rate("9/s"))), 10, true);
        check(Policy::Gcra(Gcra::new(rate("9/s"), 3).unwrap()), 4, true);
        check(bucket(5), 6, true);
        check(bucket(6), 6, false);
        check(
            Policy::LeakyBucket(LeakyBucket::new(rate("9/s"), 0)),
            1,
            false,
        );
        check(
            Policy::LeakyBucket(LeakyBucket::new(rate("0/s"), 9)),
            1,
            true,
        );
    }

    #[test]
    fn the_next_number_of_even_parts_is_found() {
        let minute = MicroSpan::from_secs(60);
        assert_eq!(even_parts(minute, 7), 6);
        assert_eq!(even_parts(minute, 119), 100);
        assert_eq!(even_parts(minute, 1), 1);
    }
}
