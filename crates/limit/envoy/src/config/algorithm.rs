//! Which algorithm counts a limit? What was typed, checked as far as it can be here.
//!
//! Ours: the reference counts in fixed windows alone. What each one does is another crate's
//! business.

/// An algorithm with the settings that were given; what was not given is for the algorithm to say.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(missing_docs, reason = "the names are the words of the file")]
pub enum AlgorithmChoice {
    /// What the reference does, and what holds where nothing is said.
    #[default]
    FixedWindow,
    SlidingWindow,
    SlidingLog,
    TokenBucket {
        /// What the bucket holds at most.
        burst: Option<u32>,
        /// What it holds at first; not less than `burst`.
        initial_burst: Option<u32>,
    },
    Gcra {
        /// How many may come at once.
        burst: Option<u32>,
    },
    SubWindows {
        /// Into how many parts a window is cut.
        sub_windows: Option<u32>,
    },
    SubWindowsStrict {
        /// Into how many parts a window is cut.
        sub_windows: Option<u32>,
    },
    LeakyBucket {
        /// How many may wait; none if zero.
        burst: Option<u32>,
    },
}

/// Most parts of a window. Each is a counter that is kept and read for every key.
pub(crate) const SUB_WINDOWS_MAX: u32 = 120;

/// Numbers beside `algorithm`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) burst: Option<u32>,
    pub(crate) sub_windows: Option<u32>,
    pub(crate) initial_burst: Option<u32>,
}

/// Why a choice is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BadChoice {
    /// No algorithm has this name.
    Unknown,
    /// The algorithm has no such setting.
    NotASetting(&'static str),
    /// A number that lets nobody through or that costs too much.
    OutOfRange {
        key: &'static str,
        value: u32,
        least: u32,
        most: u32,
    },
}

impl BadChoice {
    /// The key whose value is wrong.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Unknown => "algorithm",
            Self::NotASetting(key) | Self::OutOfRange { key, .. } => key,
        }
    }
}

impl AlgorithmChoice {
    /// The names that a file may say.
    pub const NAMES: [&'static str; 8] = [
        "fixed-window",
        "sliding-window",
        "sliding-log",
        "token-bucket",
        "gcra",
        "sub-windows",
        "sub-windows-strict",
        "leaky-bucket",
    ];

    /// The name that a file says.
    #[must_use]
    pub const fn name(self) -> &'static str {
        let [fixed, sliding, log, token, gcra, sub, strict, leaky] = Self::NAMES;
        match self {
            Self::FixedWindow => fixed,
            Self::SlidingWindow => sliding,
            Self::SlidingLog => log,
            Self::TokenBucket { .. } => token,
            Self::Gcra { .. } => gcra,
            Self::SubWindows { .. } => sub,
            Self::SubWindowsStrict { .. } => strict,
            Self::LeakyBucket { .. } => leaky,
        }
    }

    /// The choice that `name` and `settings` make for a limit of `requests`; every setting that is
    /// wrong otherwise.
    pub(crate) fn of(
        name: &str,
        settings: Settings,
        requests: u32,
    ) -> Result<Self, Vec<BadChoice>> {
        let Settings {
            burst,
            sub_windows,
            initial_burst,
        } = settings;
        let choice = match name {
            "fixed-window" => Self::FixedWindow,
            "sliding-window" => Self::SlidingWindow,
            "sliding-log" => Self::SlidingLog,
            "token-bucket" => Self::TokenBucket {
                burst,
                initial_burst,
            },
            "gcra" => Self::Gcra { burst },
            "sub-windows" => Self::SubWindows { sub_windows },
            "sub-windows-strict" => Self::SubWindowsStrict { sub_windows },
            "leaky-bucket" => Self::LeakyBucket { burst },
            _ => return Err(vec![BadChoice::Unknown]),
        };
        let bad = choice.bad_settings(settings, requests);
        if bad.is_empty() { Ok(choice) } else { Err(bad) }
    }

    fn bad_settings(self, settings: Settings, requests: u32) -> Vec<BadChoice> {
        let all = [
            ("burst", settings.burst),
            ("sub_windows", settings.sub_windows),
            ("initial_burst", settings.initial_burst),
        ];
        let given = all
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)));
        let bad = given.filter_map(|(key, value)| {
            let Some((least, most)) = self.range(key, settings, requests) else {
                return Some(BadChoice::NotASetting(key));
            };
            let is_in_range = (least..=most).contains(&value);
            (!is_in_range).then_some(BadChoice::OutOfRange {
                key,
                value,
                least,
                most,
            })
        });
        bad.collect()
    }

    /// From where to where a setting may go; none if this algorithm has no such setting.
    fn range(self, key: &str, settings: Settings, requests: u32) -> Option<(u32, u32)> {
        match (self, key) {
            (Self::TokenBucket { .. } | Self::Gcra { .. }, "burst") => Some((1, u32::MAX)),
            (Self::LeakyBucket { .. }, "burst") => Some((0, u32::MAX)),
            (Self::TokenBucket { .. }, "initial_burst") => {
                Some((settings.burst.unwrap_or(requests), u32::MAX))
            }
            (Self::SubWindows { .. } | Self::SubWindowsStrict { .. }, "sub_windows") => {
                Some((1, SUB_WINDOWS_MAX))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(
        burst: Option<u32>,
        sub_windows: Option<u32>,
        initial_burst: Option<u32>,
    ) -> Settings {
        Settings {
            burst,
            sub_windows,
            initial_burst,
        }
    }

    #[test]
    fn every_name_alone_is_a_choice_with_that_name() {
        for name in AlgorithmChoice::NAMES {
            let choice = AlgorithmChoice::of(name, Settings::default(), 100).unwrap();
            assert_eq!(choice.name(), name);
        }
        for name in ["", "GCRA", "token_bucket", "fixed-window "] {
            let choice = AlgorithmChoice::of(name, Settings::default(), 100);
            assert_eq!(choice, Err(vec![BadChoice::Unknown]), "{name}");
        }
    }

    #[test]
    fn a_setting_belongs_to_some_algorithms_only() {
        let takes = |settings| {
            let names = AlgorithmChoice::NAMES.into_iter();
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
        let check = |name, settings: Settings, is_right| {
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
    fn every_setting_that_is_wrong_is_told() {
        let bad = AlgorithmChoice::of("sliding-log", settings(Some(1), Some(1), Some(1)), 1);
        assert_eq!(bad.unwrap_err().len(), 3);
    }
}
