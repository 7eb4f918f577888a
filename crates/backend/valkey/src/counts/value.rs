//! Decoding of a client's value at the server.
//!
//! A value is a letter and whole numbers, as the scripts write them ([`anteroom_limit::codec`]):
//! see `counters.lua`, `pace.lua`, `token_bucket.lua`. The letter `e` is added for what
//! `sliding_log.lua` returns of a log. The scripts decide whether a value is readable, so all
//! values that they return have this format.

use anteroom_limit::codec;
use anteroom_limit::policy::State;
use anteroom_limit::sliding_log::{self, Entry};
use anteroom_limit::time::TimestampUs;

/// Letter of a log, as the script returns it.
pub(super) const LOG: &str = "e";

/// Decodes a state; `None` if the text is invalid. An empty text is a client without requests.
pub(super) fn read(text: &str) -> Option<State> {
    codec::read_or(text, |letter, numbers| {
        log(numbers).filter(|_| letter == LOG)
    })
}

fn log(entries: &[u64]) -> Option<State> {
    let entries = entries.chunks(2).map(|entry| match entry {
        [at, calls] => Some(Entry {
            at: TimestampUs(*at),
            requests: u32::try_from(*calls).ok()?,
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
    fn an_empty_text_is_a_client_without_requests() {
        assert_eq!(read(""), Some(State::New));
    }

    #[test]
    fn trailing_zeros_are_omitted() {
        let state = sub_windows::State::from_counts(TimestampUs(50), [7, 0, 3, 0, 0].into());
        assert_eq!(read("w 5 50 7 0 3"), Some(State::SubWindows(state)));
        let state = fixed_window::State {
            starts_at: TimestampUs(50),
            counts: [0],
        };
        assert_eq!(read("f 1 50"), Some(State::FixedWindow(state)));
    }

    #[test]
    fn invalid_texts_are_rejected() {
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
