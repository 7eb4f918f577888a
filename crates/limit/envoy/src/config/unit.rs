//! Units of time of a limit.

/// Unit of time of a limit.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    /// 30 days, whatever the month.
    Month,
    /// 365 days, even in a leap year.
    Year,
}

impl Unit {
    /// All units, from the shortest to the longest.
    pub const ALL: [Self; 7] = [
        Self::Second,
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Year,
    ];

    /// Returns its length in seconds.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 7 * 86_400,
            Self::Month => 30 * 86_400,
            Self::Year => 365 * 86_400,
        }
    }

    /// Returns its name on the wire, in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "SECOND",
            Self::Minute => "MINUTE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
            Self::Week => "WEEK",
            Self::Month => "MONTH",
            Self::Year => "YEAR",
        }
    }

    /// Returns its number on the wire: the same in `RateLimitResponse.RateLimit.Unit` and in
    /// `type.v3.RateLimitUnit`.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Second => 1,
            Self::Minute => 2,
            Self::Hour => 3,
            Self::Day => 4,
            Self::Month => 5,
            Self::Year => 6,
            Self::Week => 7,
        }
    }

    /// Returns the unit with this number on the wire; `None` for 0 (unknown) and for other numbers.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.number() == number)
    }

    /// Returns the unit with this name, in upper or lower case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_uppercase();
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_as_long_as_the_reference_counts() {
        let seconds = Unit::ALL.map(Unit::seconds);
        assert_eq!(
            seconds,
            [1, 60, 3_600, 86_400, 604_800, 2_592_000, 31_536_000]
        );
    }

    #[test]
    fn a_unit_is_found_by_name_in_any_case_or_number() {
        for unit in Unit::ALL {
            assert_eq!(Unit::from_name(unit.name()), Some(unit));
            assert_eq!(Unit::from_name(&unit.name().to_lowercase()), Some(unit));
            assert_eq!(Unit::from_number(unit.number()), Some(unit));
        }
        assert_eq!(Unit::from_name("mInUtE"), Some(Unit::Minute));
        for name in ["", "unknown", "minutes", "min", " minute"] {
            assert_eq!(Unit::from_name(name), None, "{name}");
        }
        for number in [i32::MIN, -1, 0, 8, i32::MAX] {
            assert_eq!(Unit::from_number(number), None);
        }
    }
}
