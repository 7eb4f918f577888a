//! What a node has counted of itself; for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Something that happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Event {
    /// A node was found, or came back.
    PeerJoined,
    /// A node left, or was not heard of any more.
    PeerLeft,
    DatagramSent,
    /// The system would not send it.
    SendFailed,
    DatagramReceived,
    /// Not sealed with the secret, or nothing that this program says.
    DatagramRefused,
    /// A counter that was heard of and not kept.
    CounterDropped,
    /// A counter whose news wait for its next repetition, for there are too many.
    CounterPutOff,
    /// A call that was counted together with those of other clients.
    Crowded,
    /// A message of a node whose clock is too far from ours.
    ClockApart,
    /// A node that was heard of and is not known, for too many are.
    MemberRefused,
}

const WORDS: [(Event, &str); 11] = [
    (Event::PeerJoined, "peer_joined"),
    (Event::PeerLeft, "peer_left"),
    (Event::DatagramSent, "datagram_sent"),
    (Event::SendFailed, "send_failed"),
    (Event::DatagramReceived, "datagram_received"),
    (Event::DatagramRefused, "datagram_rejected"),
    (Event::CounterDropped, "counter_dropped"),
    (Event::CounterPutOff, "counter_deferred"),
    (Event::Crowded, "overflow"),
    (Event::ClockApart, "clock_skew"),
    (Event::MemberRefused, "member_rejected"),
];

/// How often each happened.
#[derive(Debug, Default)]
pub(crate) struct Tally([AtomicU64; WORDS.len()]);

impl Tally {
    pub(crate) fn count(&self, event: Event) {
        self.count_many(event, 1);
    }

    pub(crate) fn count_many(&self, event: Event, times: u64) {
        self.0[event as usize].fetch_add(times, Ordering::Relaxed);
    }

    pub(crate) fn of(&self, event: Event) -> u64 {
        self.0[event as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn words(&self) -> Vec<(&'static str, u64)> {
        let words = WORDS.iter();
        words
            .map(|(event, word)| (*word, self.of(*event)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_a_word_and_a_place_of_its_own() {
        let event_counts = Tally::default();
        for (at, (event, _)) in WORDS.iter().enumerate() {
            assert_eq!(*event as usize, at);
            event_counts.count_many(*event, at as u64 + 1);
        }
        let counts: Vec<u64> = event_counts
            .words()
            .iter()
            .map(|(_, count)| *count)
            .collect();
        assert_eq!(counts, (1..=WORDS.len() as u64).collect::<Vec<_>>());
    }
}
