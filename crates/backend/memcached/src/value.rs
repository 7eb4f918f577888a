//! Encoding of a client's state.
//!
//! A value is a version and then text ([`anteroom_limit::codec`]). An unreadable value is not a new
//! client: its requests fail with an error.

use anteroom_limit::codec;
use anteroom_limit::policy::State;

/// Version, which changes with the text.
const VERSION: u8 = b'1';

/// Encodes a state.
pub(crate) fn encode(state: &State) -> Vec<u8> {
    let mut text = String::from(char::from(VERSION));
    codec::write(state, &mut text);
    text.into_bytes()
}

/// Decodes a state; `None` if the bytes are not valid for this version.
pub(crate) fn decode(bytes: &[u8]) -> Option<State> {
    let text = bytes.strip_prefix(&[VERSION])?;
    codec::read(std::str::from_utf8(text).ok()?)
}

#[cfg(test)]
mod tests {
    use anteroom_limit::algorithm::Algorithm as _;
    use anteroom_limit::cost::Cost;
    use anteroom_limit::gcra::Gcra;
    use anteroom_limit::leaky_bucket::LeakyBucket;
    use anteroom_limit::policy::Policy;
    use anteroom_limit::rate::Rate;
    use anteroom_limit::sliding_log::SlidingLog;
    use anteroom_limit::time::{DurationUs, TimestampUs};
    use anteroom_limit::token_bucket::TokenBucket;

    use super::*;

    #[test]
    fn every_swapped_state_is_decoded_as_it_was_encoded() {
        let rate = Rate::new(7, DurationUs::from_secs(60)).unwrap();
        for (policy, text) in [
            (
                Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
                "1d 1000 2 5 2",
            ),
            (
                Policy::TokenBucket(TokenBucket::new(rate, 7, 7).unwrap()),
                "1t 1005 35 3",
            ),
            (Policy::Gcra(Gcra::new(rate, 7).unwrap()), "1g 34286714 2"),
            (
                Policy::LeakyBucket(LeakyBucket::new(rate, 7)),
                "1l 34286714 2",
            ),
        ] {
            let mut state = State::New;
            for now in [1_000, 1_005] {
                policy.step(&mut state, TimestampUs(now), Cost::take(2));
            }
            let bytes = encode(&state);
            assert_eq!(String::from_utf8_lossy(&bytes), text);
            assert_eq!(decode(&bytes), Some(state));
        }
        assert_eq!(decode(&encode(&State::New)), Some(State::New));
    }

    #[test]
    fn invalid_states_are_not_new_clients() {
        for text in [
            "",
            "2g 1 2",
            "7",
            "1l 1",
            "1l 1 2 3",
            "1l 1 4294967296",
            "1l -1 0",
            "1l 1 ",
            "1x 1",
            "1g 1",
            "1\u{fffd}",
        ] {
            assert_eq!(decode(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(decode(b"1g \xff 1"), None);
    }
}
