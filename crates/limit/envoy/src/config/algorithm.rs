//! Algorithm of a limit, with the settings from the file, checked as far as possible here.
//!
//! [`anteroom_limit::registry`] lists the algorithms and their settings. This module has the keys
//! of the file: it calls a queue a burst.

use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::{Setting, Settings};
use anteroom_limit::sub_windows::PARTS_MOST;

/// Algorithm with the given settings; the algorithm has defaults for the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AlgorithmChoice {
    /// Algorithm.
    pub kind: AlgorithmKind,
    /// Settings that were given beside the rate.
    pub settings: Settings,
}

/// Numbers beside `algorithm`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Typed {
    pub(crate) burst: Option<u32>,
    pub(crate) sub_windows: Option<u32>,
    pub(crate) initial_burst: Option<u32>,
}

/// Error of a choice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BadChoice {
    /// The name is unknown.
    Unknown,
    /// The algorithm has no such setting.
    NotASetting(&'static str),
    /// The number admits nothing, or costs too much.
    OutOfRange {
        key: &'static str,
        value: u32,
        least: u32,
        most: u32,
    },
}

impl BadChoice {
    /// Returns the key whose value is wrong.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Unknown => "algorithm",
            Self::NotASetting(key) | Self::OutOfRange { key, .. } => key,
        }
    }
}

impl Default for AlgorithmChoice {
    /// Returns the fixed window, the only algorithm of the reference service.
    fn default() -> Self {
        Self {
            kind: AlgorithmKind::FixedWindow,
            settings: Settings::default(),
        }
    }
}

impl AlgorithmChoice {
    /// Builds the choice from `name` and `typed` for a limit of `requests`. Returns all wrong
    /// settings otherwise.
    pub(crate) fn of(name: &str, typed: Typed, requests: u32) -> Result<Self, Vec<BadChoice>> {
        let Some(kind) = AlgorithmKind::named(name) else {
            return Err(vec![BadChoice::Unknown]);
        };
        let (mut settings, mut bad) = (Settings::default(), Vec::new());
        for (key, value) in typed.given() {
            let mut known = kind.row().settings.iter().copied();
            let Some(setting) = known.find(|setting| key_of(*setting) == key) else {
                bad.push(BadChoice::NotASetting(key));
                continue;
            };
            let (least, most) = typed.range(setting, requests);
            if (least..=most).contains(&value) {
                settings.set(setting, value);
            } else {
                bad.push(BadChoice::OutOfRange {
                    key,
                    value,
                    least,
                    most,
                });
            }
        }
        if bad.is_empty() {
            Ok(Self { kind, settings })
        } else {
            Err(bad)
        }
    }
}

/// Returns the key of a setting in the file.
const fn key_of(setting: Setting) -> &'static str {
    match setting {
        Setting::SubWindows => "sub_windows",
        Setting::Burst | Setting::Queue => "burst",
        Setting::InitialBurst => "initial_burst",
    }
}

impl Typed {
    fn given(self) -> impl Iterator<Item = (&'static str, u32)> {
        let all = [
            ("burst", self.burst),
            ("sub_windows", self.sub_windows),
            ("initial_burst", self.initial_burst),
        ];
        let all = all.into_iter();
        all.filter_map(|(key, value)| Some((key, value?)))
    }

    /// Returns the range of a setting.
    fn range(self, setting: Setting, requests: u32) -> (u32, u32) {
        match setting {
            Setting::Burst => (1, u32::MAX),
            Setting::Queue => (0, u32::MAX),
            Setting::InitialBurst => (self.burst.unwrap_or(requests), u32::MAX),
            Setting::SubWindows => (1, PARTS_MOST),
        }
    }
}

/// Returns the algorithms that a file may name, in the order of their numbers.
fn kinds() -> Vec<AlgorithmKind> {
    let mut kinds = AlgorithmKind::ALL.to_vec();
    kinds.sort_by_key(|kind| (kind.row().number, kind.name()));
    kinds
}

/// Returns the names that a file may use.
pub(crate) fn names() -> Vec<&'static str> {
    kinds().into_iter().map(AlgorithmKind::name).collect()
}

/// Describes which algorithms have which settings: `burst belongs to gcra, ...`.
pub(crate) fn whose_settings() -> String {
    let owners = |key: &str| {
        let has_it = |kind: &AlgorithmKind| {
            let mut settings = kind.row().settings.iter();
            settings.any(|setting| key_of(*setting) == key)
        };
        let owners = kinds().into_iter().filter(has_it);
        let owners: Vec<_> = owners.map(AlgorithmKind::name).collect();
        match owners.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    };
    format!(
        "burst belongs to {}, initial_burst to {}, sub_windows to {}",
        owners("burst"),
        owners("initial_burst"),
        owners("sub_windows")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(burst: Option<u32>, sub_windows: Option<u32>, initial_burst: Option<u32>) -> Typed {
        Typed {
            burst,
            sub_windows,
            initial_burst,
        }
    }

    #[test]
    fn every_name_alone_is_a_choice_with_that_name() {
        for name in names() {
            let choice = AlgorithmChoice::of(name, Typed::default(), 100).unwrap();
            assert_eq!(choice.kind.name(), name);
        }
        for name in ["", "GCRA", "token_bucket", "fixed-window "] {
            let choice = AlgorithmChoice::of(name, Typed::default(), 100);
            assert_eq!(choice, Err(vec![BadChoice::Unknown]), "{name}");
        }
    }

    #[test]
    fn a_setting_belongs_to_some_algorithms_only() {
        let takes = |settings| {
            let names = names().into_iter();
            let takes = names.filter(|name| AlgorithmChoice::of(name, settings, 1).is_ok());
            takes.collect::<Vec<_>>()
        };
        assert_eq!(
            takes(settings(Some(5), None, None)),
            ["token-bucket", "gcra", "leaky-bucket"]
        );
        assert_eq!(
            takes(settings(None, Some(5), None)),
            ["sub-windows", "sub-windows-strict"]
        );
        assert_eq!(takes(settings(None, None, Some(5))), ["token-bucket"]);
    }

    #[test]
    fn a_limit_of_zero_or_an_excessive_cost_is_out_of_range() {
        let check = |name, settings: Typed, is_right| {
            let choice = AlgorithmChoice::of(name, settings, 100);
            assert_eq!(choice.is_ok(), is_right, "{name} {settings:?} {choice:?}");
        };
        check("gcra", settings(Some(0), None, None), false);
        check("token-bucket", settings(Some(0), None, None), false);
        check("leaky-bucket", settings(Some(0), None, None), true);
        check("sub-windows", settings(None, Some(0), None), false);
        check("sub-windows", settings(None, Some(120), None), true);
        check("sub-windows-strict", settings(None, Some(121), None), false);
        check("token-bucket", settings(None, None, Some(99)), false);
        check("token-bucket", settings(None, None, Some(100)), true);
        check("token-bucket", settings(Some(20), None, Some(20)), true);
        check("token-bucket", settings(Some(20), None, Some(19)), false);
    }

    #[test]
    fn every_wrong_setting_is_reported() {
        let bad = AlgorithmChoice::of("sliding-log", settings(Some(1), Some(1), Some(1)), 1);
        assert_eq!(bad.unwrap_err().len(), 3);
    }

    #[test]
    fn names_and_settings_are_listed() {
        assert_eq!(
            names().join(", "),
            "fixed-window, sliding-window, sliding-log, token-bucket, gcra, sub-windows, \
             sub-windows-strict, leaky-bucket"
        );
        assert_eq!(
            whose_settings(),
            "burst belongs to token-bucket, gcra and leaky-bucket, initial_burst to token-bucket, \
             sub_windows to sub-windows and sub-windows-strict"
        );
    }
}
