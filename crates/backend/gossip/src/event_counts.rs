//! Event counters of a node; for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Event of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Event {
    /// A peer was found, or came back.
    PeerJoined,
    /// A peer left, or stopped responding.
    PeerLeft,
    DatagramSent,
    /// The system would not send it.
    SendFailed,
    DatagramReceived,
    /// A datagram was not sealed with our secret, or its body was invalid.
    DatagramRejected,
    /// A counter that was reported by a peer and not kept.
    CounterDropped,
    /// A counter whose changes wait for its next repetition, because too many are pending.
    CounterDeferred,
    /// A request that was counted in an overflow entry.
    Overflow,
    /// A message of a peer whose clock is too far from ours.
    ClockApart,
    /// A node that was named by a peer and left out, because too many are known.
    MemberRejected,
}

const WORDS: [(Event, &str); 11] = [
    (Event::PeerJoined, "peer_joined"),
    (Event::PeerLeft, "peer_left"),
    (Event::DatagramSent, "datagram_sent"),
    (Event::SendFailed, "send_failed"),
    (Event::DatagramReceived, "datagram_received"),
    (Event::DatagramRejected, "datagram_rejected"),
    (Event::CounterDropped, "counter_dropped"),
    (Event::CounterDeferred, "counter_deferred"),
    (Event::Overflow, "overflow"),
    (Event::ClockApart, "clock_skew"),
    (Event::MemberRejected, "member_rejected"),
];

/// Number of times each event happened.
#[derive(Debug, Default)]
pub(crate) struct EventCounts([AtomicU64; WORDS.len()]);

impl EventCounts {
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
    fn each_event_has_its_own_word_and_index() {
        let event_counts = EventCounts::default();
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
