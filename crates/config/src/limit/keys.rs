//! Keys of `[[limit]]` for the algorithm and its numbers, each declared once with its range and
//! default.
//!
//! The reader checks what they mean together. Other keys are declared next to their readers.

use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::Setting;
use anteroom_limit::sub_windows::PARTS_MOST;

use crate::kind::{Choice, InvalidValue, Text, Whole};
use crate::rate_text::{RateText, RateTextError};
use crate::reader::Key;

pub(super) const LIMIT: Key<Text<RateText>> = Key {
    name: "limit",
    kind: Text {
        allowed: "requests, a slash and a time from 1s to 31d, such as \"100/s\", \"1000/h\" or \
                  \"5/15m\"",
        read: rate,
    },
    default: None,
};
/// Each algorithm by its name.
const ALGORITHMS: [(&str, AlgorithmKind); AlgorithmKind::ALL.len()] = {
    let mut named = [("", AlgorithmKind::USUAL); AlgorithmKind::ALL.len()];
    let mut at = 0;
    while at < named.len() {
        let kind = AlgorithmKind::ALL[at];
        named[at] = (kind.name(), kind);
        at += 1;
    }
    named
};
pub(super) const ALGORITHM: Key<Choice<AlgorithmKind>> = Key {
    name: "algorithm",
    kind: Choice(&ALGORITHMS),
    default: Some("\"sub-windows-strict\""),
};
pub(super) const SUB_WINDOWS: Key<Whole<u32>> = whole("sub_windows", 1, PARTS_MOST, Some("10"));
// The defaults of these keys follow from the limit.
pub(super) const BURST: Key<Whole<u32>> = whole("burst", 1, u32::MAX, None);
pub(super) const INITIAL_BURST: Key<Whole<u32>> = whole("initial_burst", 1, u32::MAX, None);
pub(super) const QUEUE: Key<Whole<u32>> = whole("queue", 0, u32::MAX, None);

/// Returns the key of a number besides the rate.
pub(super) const fn of_setting(setting: Setting) -> &'static Key<Whole<u32>> {
    match setting {
        Setting::SubWindows => &SUB_WINDOWS,
        Setting::Burst => &BURST,
        Setting::InitialBurst => &INITIAL_BURST,
        Setting::Queue => &QUEUE,
    }
}

pub(super) const fn whole(
    name: &'static str,
    min: u32,
    max: u32,
    default: Option<&'static str>,
) -> Key<Whole<u32>> {
    let note = "";
    let kind = Whole { min, max, note };
    Key {
        name,
        kind,
        default,
    }
}

fn rate(text: &str) -> Result<RateText, InvalidValue> {
    text.parse().map_err(|error| match error {
        RateTextError::NoWindow => InvalidValue::hint("add the time, as in \"100/min\""),
        RateTextError::NoUnit => InvalidValue::hint("add the unit: s, m, h, d or w"),
        RateTextError::Month => InvalidValue::hint("months differ in length; write 30d"),
        RateTextError::Requests => InvalidValue::hint(
            "requests are a whole number up to 4294967295; write 1/2s for half a request a second",
        ),
        RateTextError::Unit | RateTextError::WindowOutOfRange => InvalidValue::PLAIN,
    })
}

#[cfg(test)]
mod tests {
    use anteroom_limit::registry::SUB_WINDOWS_USUAL;

    use super::*;

    #[test]
    fn defaults_are_those_of_the_table_of_algorithms() {
        let usual = format!("\"{}\"", AlgorithmKind::USUAL.name());
        assert_eq!(ALGORITHM.default, Some(usual.as_str()));
        let parts = SUB_WINDOWS_USUAL.to_string();
        assert_eq!(SUB_WINDOWS.default, Some(parts.as_str()));
    }
}
