//! The keys of `[[limit]]` that say by which algorithm calls are counted, and how many may come:
//! each declared once, with what it may hold and its default.
//!
//! What they mean together is judged where they are read. The other keys stand with their readers.

use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::Setting;
use anteroom_limit::sub_windows::PARTS_MOST;

use crate::kind::{Choice, InvalidValue, Text, Whole};
use crate::rate_text::{RateText, RateTextError};
use crate::reader::Key;

pub(super) const LIMIT: Key<Text<RateText>> = Key {
    name: "limit",
    kind: Text {
        allowed: "calls, a slash and a time from 1s to 31d, such as \"100/s\", \"1000/h\" or \
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
// What is left out here follows from the limit.
pub(super) const BURST: Key<Whole<u32>> = whole("burst", 1, u32::MAX, None);
pub(super) const INITIAL_BURST: Key<Whole<u32>> = whole("initial_burst", 1, u32::MAX, None);
pub(super) const QUEUE: Key<Whole<u32>> = whole("queue", 0, u32::MAX, None);

/// The key of a number beside the rate.
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
        RateTextError::NoWindow => InvalidValue::hint("say in how long, as in \"100/min\""),
        RateTextError::NoUnit => InvalidValue::hint("add the unit: s, m, h, d or w"),
        RateTextError::Month => InvalidValue::hint("months differ in length; write 30d"),
        RateTextError::Calls => InvalidValue::hint(
            "calls are whole numbers up to 4294967295; half a call a second is 1/2s",
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
