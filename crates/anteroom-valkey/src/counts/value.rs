//! What does a value at the server say of a client?
//!
//! A letter and whole numbers, as the scripts write them down: see `counters.lua`, `pace.lua`, `token_bucket.lua`
//! and, for what is told of a log, `sliding_log.lua`. Whether a value can be read at all is for the scripts to say:
//! what they pass on has this form.

use anteroom_limits::fine::FineMicros;
use anteroom_limits::policy::State;
use anteroom_limits::sliding_log::{self, Entry};
use anteroom_limits::time::Micros;
use anteroom_limits::{
    fixed_window, gcra, leaky_bucket, sliding_window, sub_windows, token_bucket,
};

/// The state that a text stands for; `None` if it stands for none. An empty one is a client who never called.
pub(super) fn read(text: &str) -> Option<State> {
    let mut parts = text.split(' ');
    let letter = parts.next()?;
    let numbers: Result<Vec<u64>, _> = parts.map(str::parse).collect();
    let numbers = numbers.ok()?;
    match (letter, numbers.as_slice()) {
        ("", []) => Some(State::New),
        ("f" | "s" | "w", [count, starts_at, known @ ..]) => {
            counters(letter, *count, Micros(*starts_at), known)
        }
        ("g", point) => {
            let free_at = fine(point)?;
            Some(State::Gcra(gcra::State { free_at }))
        }
        ("l", point) => {
            let next_at = fine(point)?;
            Some(State::LeakyBucket(leaky_bucket::State { next_at }))
        }
        ("t", [counted_at, part, tokens]) => Some(State::TokenBucket(token_bucket::State {
            counted_at: Micros(*counted_at),
            part: *part,
            tokens: u32::try_from(*tokens).ok()?,
            is_known: true,
        })),
        ("e", entries) => log(entries),
        _ => None,
    }
}

fn counters(letter: &str, count: u64, starts_at: Micros, known: &[u64]) -> Option<State> {
    let count = usize::try_from(count).ok()?;
    // More there never are: a window has 120 parts at most.
    if count > sub_windows::PARTS_MOST as usize + 1 || known.len() > count {
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
        ("w", _) => Some(State::SubWindows(sub_windows::State::from_counts(
            starts_at,
            counts.into(),
        ))),
        _ => None,
    }
}

fn fine(point: &[u64]) -> Option<FineMicros> {
    let [micros, fraction] = point else {
        return None;
    };
    Some(FineMicros {
        micros: Micros(*micros),
        fraction: u32::try_from(*fraction).ok()?,
    })
}

fn log(entries: &[u64]) -> Option<State> {
    let entries = entries.chunks(2).map(|entry| match entry {
        [at, calls] => Some(Entry {
            at: Micros(*at),
            calls: u32::try_from(*calls).ok()?,
        }),
        _ => None,
    });
    let entries: Vec<Entry> = entries.collect::<Option<_>>()?;
    let state = sliding_log::State::from_entries(entries);
    Some(State::SlidingLog(Box::new(state)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_is_a_client_who_never_called() {
        assert_eq!(read(""), Some(State::New));
    }

    #[test]
    fn zeros_at_the_end_are_left_out() {
        let state = sub_windows::State::from_counts(Micros(50), [7, 0, 3, 0, 0].into());
        assert_eq!(read("w 5 50 7 0 3"), Some(State::SubWindows(state)));
        let state = fixed_window::State {
            starts_at: Micros(50),
            count: 0,
        };
        assert_eq!(read("f 1 50"), Some(State::FixedWindow(state)));
    }

    #[test]
    fn what_has_another_form_is_nothing() {
        for text in [
            "x 1",
            "f",
            "f 2 50 1 1",
            "s 1 50 1",
            "w 122 50",
            "w 1 50 1 1",
            "g 1",
            "g 1 2 3",
            "g 1 4294967296",
            "l 1 x",
            "t 1 2",
            "e 1",
            "t 1 2 -3",
            "f 1 50 4294967296",
            " ",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
