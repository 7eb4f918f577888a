//! How is the state of a limit written down, so that scripts of a store can read it too?
//!
//! A letter and whole numbers with spaces between them, nothing for a client who never called:
//!
//! | letter | of | numbers |
//! | --- | --- | --- |
//! | `f` `s` `w` | fixed windows, sliding windows, sub-windows of both kinds | how many counters, where the newest begins, counters from the newest on; zeros at the end are left out |
//! | `g` | generic cell rate | the moment, and the part of a microsecond |
//! | `t` | token bucket | when it was counted, the part of the next token, tokens |
//! | `d` | sliding log | for each entry how long after the one before, and how many calls |

use anteroom_limit::fine::FineMicros;
use anteroom_limit::policy::State;
use anteroom_limit::sliding_log::{self, Entry};
use anteroom_limit::sub_windows::{self, PARTS_MOST};
use anteroom_limit::time::Micros;
use anteroom_limit::{fixed_window, gcra, sliding_window, token_bucket};

/// Appends a state to a text.
pub fn write(state: &State, text: &mut String) {
    match state {
        State::FixedWindow(fixed) => counters(text, 'f', fixed.starts_at, &[fixed.count]),
        State::SlidingWindow(sliding) => counters(text, 's', sliding.starts_at, &sliding.counts),
        State::SubWindows(sub) if !sub.counts().is_empty() => {
            counters(text, 'w', sub.starts_at(), sub.counts());
        }
        State::Gcra(gcra) => {
            let FineMicros { micros, fraction } = gcra.free_at;
            numbers(text, 'g', [micros.0, u64::from(fraction)]);
        }
        State::TokenBucket(bucket) if bucket.is_known => {
            let tokens = u64::from(bucket.tokens);
            numbers(text, 't', [bucket.counted_at.0, bucket.part, tokens]);
        }
        State::SlidingLog(log) if log.entries().len() > 0 => {
            let mut before = Micros(0);
            let entries = log.entries().flat_map(|entry| {
                let after = entry.at.since(before).0;
                before = entry.at;
                [after, u64::from(entry.calls)]
            });
            numbers(text, 'd', entries);
        }
        // Of a leaky bucket there is none: it cannot be lent. Who keeps such states writes them by
        // itself.
        State::New
        | State::SubWindows(_)
        | State::TokenBucket(_)
        | State::SlidingLog(_)
        | State::LeakyBucket(_) => {}
    }
}

fn counters(text: &mut String, letter: char, starts_at: Micros, counts: &[u32]) {
    let last = counts.iter().rposition(|count| *count > 0);
    let known = counts.get(..last.map_or(0, |last| last + 1));
    let known = known.unwrap_or_default().iter().map(|one| u64::from(*one));
    let count = counts.len() as u64;
    numbers(text, letter, [count, starts_at.0].into_iter().chain(known));
}

fn numbers(text: &mut String, letter: char, all: impl IntoIterator<Item = u64>) {
    text.push(letter);
    for one in all {
        text.push(' ');
        text.push_str(&one.to_string());
    }
}

/// The state that a text stands for; `None` if it stands for none.
#[must_use]
pub fn read(text: &str) -> Option<State> {
    read_or(text, |_, _| None)
}

/// The same for a store that has letters of its own: what `other` makes of such a letter and its
/// numbers.
pub fn read_or(text: &str, other: impl FnOnce(&str, &[u64]) -> Option<State>) -> Option<State> {
    let mut parts = text.split(' ');
    let letter = parts.next()?;
    let all: Vec<u64> = parts.map(number).collect::<Option<_>>()?;
    match (letter, all.as_slice()) {
        ("", []) => Some(State::New),
        ("f" | "s" | "w", [count, starts_at, known @ ..]) => {
            read_counters(letter, *count, Micros(*starts_at), known)
        }
        ("g", point) => {
            let free_at = read_point(point)?;
            Some(State::Gcra(gcra::State { free_at }))
        }
        ("t", [counted_at, part, tokens]) => Some(State::TokenBucket(token_bucket::State {
            counted_at: Micros(*counted_at),
            part: *part,
            tokens: u32::try_from(*tokens).ok()?,
            is_known: true,
        })),
        ("d", entries @ [_, ..]) => read_log(entries),
        (letter, numbers) => other(letter, numbers),
    }
}

/// A moment and the part of a microsecond; `None` if the numbers are none.
#[must_use]
pub fn read_point(numbers: &[u64]) -> Option<FineMicros> {
    let [micros, fraction] = numbers else {
        return None;
    };
    Some(FineMicros {
        micros: Micros(*micros),
        fraction: u32::try_from(*fraction).ok()?,
    })
}

/// Digits and nothing else: [`str::parse`] takes a sign as well.
pub(crate) fn number(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

fn read_counters(letter: &str, count: u64, starts_at: Micros, known: &[u64]) -> Option<State> {
    let count = usize::try_from(count).ok()?;
    // No limit has more.
    if count > PARTS_MOST as usize + 1 || known.len() > count {
        return None;
    }
    let known = known.iter().map(|count| u32::try_from(*count));
    let mut counts = known.collect::<Result<Vec<u32>, _>>().ok()?;
    counts.resize(count, 0);
    match (letter, counts.as_slice()) {
        ("f", [count]) => Some(State::FixedWindow(fixed_window::State {
            starts_at,
            count: *count,
        })),
        ("s", [newer, older]) => Some(State::SlidingWindow(sliding_window::State {
            starts_at,
            counts: [*newer, *older],
        })),
        ("w", [_, ..]) => Some(State::SubWindows(sub_windows::State::from_counts(
            starts_at,
            counts.into(),
        ))),
        _ => None,
    }
}

fn read_log(numbers: &[u64]) -> Option<State> {
    let mut at = Micros(0);
    let entries = numbers.chunks(2).map(|entry| {
        let [after, calls] = *entry else {
            return None;
        };
        at = Micros(at.0.checked_add(after)?);
        let calls = u32::try_from(calls).ok().filter(|calls| *calls > 0)?;
        Some(Entry { at, calls })
    });
    let entries: Vec<Entry> = entries.collect::<Option<_>>()?;
    let log = sliding_log::State::from_entries(entries);
    Some(State::SlidingLog(Box::new(log)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, state: &State) {
        let mut written = String::new();
        write(state, &mut written);
        assert_eq!(written, text);
        assert_eq!(read(text).as_ref(), Some(state), "{text}");
    }

    #[test]
    fn zeros_at_the_end_are_left_out() {
        let sub = |counts: &[u32]| {
            let state = sub_windows::State::from_counts(Micros(50), counts.into());
            State::SubWindows(state)
        };
        check("w 5 50 7 0 3", &sub(&[7, 0, 3, 0, 0]));
        check("w 3 50", &sub(&[0, 0, 0]));
        let fixed = fixed_window::State {
            starts_at: Micros(50),
            count: 0,
        };
        check("f 1 50", &State::FixedWindow(fixed));
        check("", &State::New);
    }

    #[test]
    fn a_log_says_how_long_after_the_one_before_each_call_came() {
        let entries = [(1_000, 2), (1_000, u32::MAX), (1_007, 1)];
        let entries = entries.map(|(at, calls)| Entry {
            at: Micros(at),
            calls,
        });
        let log = Box::new(sliding_log::State::from_entries(entries));
        check("d 1000 2 0 4294967295 7 1", &State::SlidingLog(log));
    }

    #[test]
    fn what_has_another_form_is_nothing() {
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
            "l 1 0",
            "e 1 1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
