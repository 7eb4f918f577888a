//! Reader of a limit's algorithm and its settings.
//!
//! Clients with a limit of their own have the same algorithm. Settings that they leave out are
//! those of the limit.

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::{self, Setting, SettingsError};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Outcome;
use anteroom_room::time::DurationMs;

use super::keys::{ALGORITHM, INITIAL_BURST, LIMIT, QUEUE, SUB_WINDOWS, of_setting};
use crate::duration;
use crate::problem::Finding;
use crate::rate_text::RateText;
use crate::reader::Table;

/// Numbers that the override of a client may set.
pub(super) const OF_CLIENTS: [Setting; 3] = [Setting::Burst, Setting::InitialBurst, Setting::Queue];

/// Settings of an algorithm, as they were typed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Settings {
    /// `None` after a mistake.
    pub(super) algorithm: Option<AlgorithmKind>,
    numbers: settings::Settings,
}

impl Settings {
    /// Reads the keys of a limit's table. Reports those that have no effect with its algorithm.
    fn read(table: &mut Table<'_>) -> Self {
        let algorithm = table.optional(&ALGORITHM);
        let is_left_out = !table.has(ALGORITHM.name);
        let mut settings = Self {
            algorithm: algorithm.or_else(|| is_left_out.then_some(AlgorithmKind::USUAL)),
            numbers: settings::Settings::default(),
        };
        settings
            .numbers
            .set(Setting::SubWindows, table.defaulted(&SUB_WINDOWS));
        settings.read_own(table)
    }

    /// Reads the keys of one client, over those of the limit.
    fn read_own(mut self, table: &mut Table<'_>) -> Self {
        for setting in OF_CLIENTS {
            if let Some(value) = table.optional(of_setting(setting)) {
                self.numbers.set(setting, value);
            }
        }
        self.refuse_keys_of_others(table);
        self
    }

    fn refuse_keys_of_others(&self, table: &mut Table<'_>) {
        let Some(algorithm) = self.algorithm else {
            return;
        };
        for setting in Setting::ALL {
            let name = of_setting(setting).name;
            if !table.has(name) || algorithm.has(setting) {
                continue;
            }
            let location = table.location(name);
            let finding = format!("has no effect with algorithm {:?}", algorithm.name());
            let owners = AlgorithmKind::ALL.iter().filter(|kind| kind.has(setting));
            let words = owners.map(|kind| format!("{:?}", kind.name()));
            let allowed = format!(
                "only with algorithm {}",
                words.collect::<Vec<_>>().join(" or ")
            );
            table
                .notes
                .report(&location, Finding::Remark(finding), allowed, None);
        }
    }
}

/// Reads the settings, and the policy unless they have a mistake.
pub(super) fn read(table: &mut Table<'_>) -> (Settings, Option<Policy>) {
    let mistakes = table.notes.count();
    let rate = table.required(&LIMIT);
    let settings = Settings::read(table);
    let is_right = table.notes.count() == mistakes;
    let policy = rate.filter(|_| is_right);
    let policy = policy.and_then(|rate| build(table, rate, &settings));
    (settings, policy)
}

/// Reads the policy of one client.
pub(super) fn read_own(table: &mut Table<'_>, limit: Settings) -> Option<Policy> {
    let mistakes = table.notes.count();
    let rate = table.required(&LIMIT);
    let settings = limit.read_own(table);
    let is_right = table.notes.count() == mistakes;
    let rate = rate.filter(|_| is_right)?;
    build(table, rate, &settings)
}

/// Returns the policy; `None` after reporting settings that do not fit together.
fn build(table: &mut Table<'_>, rate: RateText, settings: &Settings) -> Option<Policy> {
    let misfit = match settings.algorithm?.build(rate.rate(), &settings.numbers) {
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
        // A client takes this setting from the limit.
        found = format!("{:?} beside the limit's {key} {found}", rate.to_string());
        key = LIMIT.name;
        hint = None;
    }
    let location = table.location(key);
    let found = Finding::Value(found);
    table.notes.report(&location, found, misfit.allowed, hint);
    None
}

/// Value that does not fit the others.
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
                allowed: format!(
                    "at most {most} requests with algorithm {:?}",
                    AlgorithmKind::SlidingLog.name()
                ),
                hint: Some(format!(
                    "{:?} is as strict and counts any number",
                    AlgorithmKind::USUAL.name()
                )),
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
            // The ranges of the keys exclude the other errors.
            other => Self {
                key: LIMIT.name,
                found: format!("{:?}", rate.to_string()),
                allowed: "what the algorithm can count".to_owned(),
                hint: Some(other.to_string()),
            },
        }
    }
}

/// Returns the next smaller number of parts of a whole number of microseconds each.
fn even_parts(window: DurationUs, parts: u32) -> u32 {
    let is_even = |parts: &u32| window.0.is_multiple_of(u64::from(*parts));
    (1..parts).rev().find(is_even).unwrap_or(1)
}

/// Whether a request of this cost is always rejected, even the first one.
pub(super) fn rejects_everything(policy: &Policy, cost: u32) -> bool {
    let first = policy.step(&mut State::default(), TimestampUs(0), Cost::take(cost));
    first.outcome == Outcome::Reject { retry_after: None }
}

/// Warns of a queue that is longer than `delay_max` allows to use.
pub(super) fn warn_of_long_queue(table: &mut Table<'_>, policy: &Policy, delay_max: DurationMs) {
    let Some(queue) = policy.settings().queue else {
        return;
    };
    let rate = policy.rate();
    if !table.has(QUEUE.name) || rate.requests() == 0 {
        return;
    }
    let delay = u128::from(delay_max.0) * 1_000;
    let requests = (delay * u128::from(rate.requests())).div_ceil(u128::from(rate.window().0));
    if u128::from(queue) > requests {
        let location = table.location(QUEUE.name);
        let delay_max = duration::text(delay_max);
        let remark = format!(
            "at most {requests} requests can proceed within delay_max ({delay_max}); more \
             are rejected, however long the queue is"
        );
        table.notes.warn(&location, remark);
    }
}

#[cfg(test)]
mod tests {
    use anteroom_limit::fixed_window::FixedWindow;
    use anteroom_limit::gcra::Gcra;
    use anteroom_limit::leaky_bucket::LeakyBucket;
    use anteroom_limit::rate::Rate;
    use anteroom_limit::token_bucket::TokenBucket;

    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse::<RateText>().unwrap().rate()
    }

    #[test]
    fn a_policy_that_rejects_every_request_is_found() {
        let bucket =
            |initial| Policy::TokenBucket(TokenBucket::new(rate("9/m"), 5, initial).unwrap());
        let check = |policy: Policy, cost: u32, expected: bool| {
            assert_eq!(rejects_everything(&policy, cost), expected, "{policy:?}");
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
    fn the_nearest_smaller_number_of_even_parts_is_found() {
        let minute = DurationUs::from_secs(60);
        assert_eq!(even_parts(minute, 7), 6);
        assert_eq!(even_parts(minute, 119), 100);
        assert_eq!(even_parts(minute, 1), 1);
    }
}
