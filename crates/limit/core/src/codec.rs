//! Text form of a limit's state, which scripts of a store can read.
//!
//! A letter and whole numbers with spaces between them; empty for a new client:
//!
//! - `f`, `s`, `w` (fixed windows, sliding windows, sub-windows of both kinds): the number of
//!   counters, the start of the newest, and the counters from the newest on. Zeros at the end are
//!   left out.
//! - `g`, `l` (generic cell rate, leaky bucket): the point in time, and the fraction of a
//!   microsecond.
//! - `t` (token bucket): when it was counted, the part of the next token, tokens.
//! - `d` (sliding log): for each entry the time since the one before, and its requests.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::policy::State;
use crate::registry::AlgorithmKind;

/// Appends a state to a text.
pub fn write(state: &State, text: &mut String) {
    let Some(kind) = state.kind() else {
        return;
    };
    let letter = kind.row().state_letter;
    let begin = text.len();
    text.push_str(letter);
    state.write_numbers(&mut |number| {
        write!(text, " {number}").expect("writing into memory cannot fail");
    });
    if text.len() == begin + letter.len() {
        text.truncate(begin);
    }
}

/// Reads a state from a text; `None` if it is malformed.
#[must_use]
pub fn read(text: &str) -> Option<State> {
    read_or(text, |_, _| None)
}

/// Reads a state like [`read`], for a store that has letters of its own. `other` reads such a
/// letter and its numbers.
pub fn read_or(text: &str, other: impl FnOnce(&str, &[u64]) -> Option<State>) -> Option<State> {
    let mut parts = text.split(' ');
    let letter = parts.next()?;
    let numbers: Vec<u64> = parts.map(number).collect::<Option<_>>()?;
    if letter.is_empty() && numbers.is_empty() {
        return Some(State::New);
    }
    let mut kinds = AlgorithmKind::ALL.iter();
    match kinds.find(|kind| kind.row().state_letter == letter) {
        Some(kind) => (kind.row().read_state)(&numbers),
        None => other(letter, &numbers),
    }
}

/// Parses digits and nothing else: [`str::parse`] takes a sign as well.
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use super::*;
    use crate::time::TimestampUs;
    use crate::{fixed_window, leaky_bucket, sliding_log, sub_windows};

    fn check(text: &str, state: &State) {
        let mut written = String::new();
        write(state, &mut written);
        assert_eq!(written, text);
        assert_eq!(read(text).as_ref(), Some(state), "{text}");
    }

    #[test]
    fn zeros_at_the_end_are_left_out() {
        let sub = |counts: &[u32]| {
            let state = sub_windows::State::from_counts(TimestampUs(50), counts.into());
            State::SubWindows(state)
        };
        check("w 5 50 7 0 3", &sub(&[7, 0, 3, 0, 0]));
        check("w 3 50", &sub(&[0, 0, 0]));
        let fixed = fixed_window::State {
            starts_at: TimestampUs(50),
            counts: [0],
        };
        check("f 1 50", &State::FixedWindow(fixed));
        check("", &State::New);
    }

    #[test]
    fn a_log_stores_the_time_since_the_entry_before() {
        let entries = [(1_000, 2), (1_000, u32::MAX), (1_007, 1)];
        let entries = entries.map(|(at, requests)| sliding_log::Entry {
            at: TimestampUs(at),
            requests,
        });
        let log = Box::new(sliding_log::State::from_entries(entries));
        check("d 1000 2 0 4294967295 7 1", &State::SlidingLog(log));
    }

    #[test]
    fn a_point_in_time_is_written_with_its_part_of_a_microsecond() {
        let free_at = crate::fine::FineTimestamp {
            micros: TimestampUs(34_286_714),
            fraction: 2,
        };
        let state = leaky_bucket::State { free_at };
        check("l 34286714 2", &State::LeakyBucket(state));
        check("g 34286714 2", &State::Gcra(state));
    }

    #[test]
    fn a_malformed_text_is_no_state() {
        for text in [
            " ",
            "x 1",
            "f",
            "f 2 50 1 1",
            "s 1 50 1",
            "w 0 50",
            "w 122 50",
            "w 1 50 1 1",
            "f 1 50 4294967296",
            "g 1",
            "g 1 2 3",
            "g 1 4294967296",
            "g +1 2",
            "g 1 ",
            "g 18446744073709551616 0",
            "t 1 2",
            "t 1 2 -3",
            "d",
            "d 1",
            "d 1 0",
            "d 1 1 1",
            "d 18446744073709551615 1 1 1",
            "e 1 1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
