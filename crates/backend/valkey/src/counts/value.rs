//! What does a value at the server say of a client?
//!
//! A letter and whole numbers, as the scripts write them down ([`anteroom_limit::codec`]): see
//! `counters.lua`, `pace.lua`, `token_bucket.lua`. Added is `e`, what `sliding_log.lua` tells of a
//! log. Whether a value can be read at all is for the scripts to say: what they pass on has this
//! form.

use anteroom_limit::codec;
use anteroom_limit::policy::State;
use anteroom_limit::sliding_log::{self, Entry};
use anteroom_limit::time::TimestampUs;

/// A log, as the script tells it.
pub(super) const LOG: &str = "e";

/// The state that a text stands for; `None` if it stands for none. An empty one is a client who
/// never called.
pub(super) fn read(text: &str) -> Option<State> {
    codec::read_or(text, |letter, numbers| {
        log(numbers).filter(|_| letter == LOG)
    })
}

fn log(entries: &[u64]) -> Option<State> {
    let entries = entries.chunks(2).map(|entry| match entry {
        [at, calls] => Some(Entry {
            at: TimestampUs(*at),
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
    use anteroom_limit::{fixed_window, sub_windows};

    use super::*;

    #[test]
    fn an_empty_text_is_a_client_who_never_called() {
        assert_eq!(read(""), Some(State::New));
    }

    #[test]
    fn zeros_at_the_end_are_left_out() {
        let state = sub_windows::State::from_counts(TimestampUs(50), [7, 0, 3, 0, 0].into());
        assert_eq!(read("w 5 50 7 0 3"), Some(State::SubWindows(state)));
        let state = fixed_window::State {
            starts_at: TimestampUs(50),
            counts: [0],
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
            "l 1",
            "l +1 2",
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
