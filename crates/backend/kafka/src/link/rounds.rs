//! Offsets of reports whose totals have arrived.
//!
//! Totals are sent in rounds. Offsets read before a round are committed once brokers have all of
//! that round and of those before it: a successor begins there, and no other node would publish
//! what is missing. Totals that did not arrive are published again, with a later round.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::stats::SlotId;

/// Last offset that was read of each partition.
pub(crate) type Offsets = BTreeMap<i32, i64>;

/// Messages that were sent together. Each holds a reference to its round until its delivery is
/// known.
#[derive(Debug, Default)]
pub(crate) struct Round {
    lost: Mutex<Vec<SlotId>>,
}

impl Round {
    /// Records a message that did not arrive.
    pub(crate) fn lose(&self, id: SlotId) {
        self.lost.lock().push(id);
    }
}

/// Rounds with unknown deliveries, and the offsets read before them.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    open: VecDeque<(Arc<Round>, Offsets)>,
}

impl Rounds {
    /// Adds a round that was sent, with the offsets read until then.
    pub(crate) fn begin(&mut self, round: Arc<Round>, read: Offsets) {
        self.open.push_back((round, read));
    }

    /// Returns the offsets to commit. Lost messages are passed to `again`, and the offsets before
    /// them go back to `read`: they belong to the next round.
    pub(crate) fn end(&mut self, read: &mut Offsets, mut again: impl FnMut(SlotId)) -> Offsets {
        let mut ended = Offsets::new();
        while let Some((round, offsets)) = self.open.front_mut() {
            // No message in flight refers to it any more.
            let Some(round) = Arc::get_mut(round) else {
                break;
            };
            let lost = std::mem::take(round.lost.get_mut());
            if lost.is_empty() {
                join(&mut ended, std::mem::take(offsets));
            } else {
                lost.into_iter().for_each(&mut again);
                for (_, offsets) in &mut self.open {
                    join(read, std::mem::take(offsets));
                }
            }
            self.open.pop_front();
        }
        ended
    }
}

fn join(all: &mut Offsets, more: Offsets) {
    for (partition, offset) in more {
        let known = all.entry(partition).or_insert(offset);
        *known = offset.max(*known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Name;

    fn slot(name: u128) -> SlotId {
        let name = Name(name);
        SlotId { name, index: 0 }
    }

    /// Sends a round of `messages` messages.
    fn send(rounds: &mut Rounds, messages: usize, read: Offsets) -> Vec<Arc<Round>> {
        let round = Arc::new(Round::default());
        let sent = vec![Arc::clone(&round); messages];
        rounds.begin(round, read);
        sent
    }

    fn end(rounds: &mut Rounds, read: &mut Offsets) -> (Offsets, Vec<SlotId>) {
        let mut again = Vec::new();
        let ended = rounds.end(read, |id| again.push(id));
        (ended, again)
    }

    #[test]
    fn offsets_are_committed_when_all_totals_have_arrived() {
        let mut rounds = Rounds::default();
        let mut read = Offsets::new();
        let first = send(&mut rounds, 2, [(0, 5), (1, 7)].into());
        let second = send(&mut rounds, 1, [(0, 6)].into());
        assert_eq!(end(&mut rounds, &mut read), Default::default());
        drop(second);
        assert_eq!(end(&mut rounds, &mut read), Default::default());
        drop(first);
        let expected = Offsets::from([(0, 6), (1, 7)]);
        assert_eq!(end(&mut rounds, &mut read), (expected, vec![]));
        send(&mut rounds, 0, [(2, 1)].into());
        assert_eq!(end(&mut rounds, &mut read).0, [(2, 1)].into());
        assert!(read.is_empty() && rounds.open.is_empty());
    }

    #[test]
    fn lost_totals_are_resent_before_later_offsets_are_committed() {
        let mut rounds = Rounds::default();
        let mut read = Offsets::from([(0, 9)]);
        let first = send(&mut rounds, 2, [(0, 5), (1, 7)].into());
        let second = send(&mut rounds, 1, [(0, 6)].into());
        first[1].lose(slot(3));
        drop(first);
        assert_eq!(end(&mut rounds, &mut read), (Offsets::new(), vec![slot(3)]));
        assert_eq!(read, [(0, 9), (1, 7)].into());
        let third = send(&mut rounds, 1, std::mem::take(&mut read));
        drop(third);
        assert_eq!(end(&mut rounds, &mut read), Default::default());
        drop(second);
        let expected = Offsets::from([(0, 9), (1, 7)]);
        assert_eq!(end(&mut rounds, &mut read), (expected, vec![]));
    }
}
