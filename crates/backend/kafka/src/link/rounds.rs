//! How far were calls read of which the totals have arrived?
//!
//! Totals are sent in rounds. What was read before a round counts as read when brokers have all of
//! that round and of those before it: whoever takes over begins there, and nobody else would
//! publish what is missing. What did not arrive is published again, with a later round.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::stats::SlotId;

/// The last offset that was read of each partition.
pub(crate) type Offsets = BTreeMap<i32, i64>;

/// Some messages that were sent together. Each has a copy of it on its way, which ends when its
/// fate is known.
#[derive(Debug, Default)]
pub(crate) struct Round {
    lost: Mutex<Vec<SlotId>>,
}

impl Round {
    /// A message of it did not arrive.
    pub(crate) fn lose(&self, id: SlotId) {
        self.lost.lock().push(id);
    }
}

/// Rounds of which not all is known yet, and what was read before them.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    open: VecDeque<(Arc<Round>, Offsets)>,
}

impl Rounds {
    /// A round was sent, of all that was read until then.
    pub(crate) fn begin(&mut self, round: Arc<Round>, read: Offsets) {
        self.open.push_back((round, read));
    }

    /// What counts as read by now. What was lost is handed to `again`, and what was read before it
    /// goes back to `read`: it belongs to the next round.
    pub(crate) fn end(&mut self, read: &mut Offsets, mut again: impl FnMut(SlotId)) -> Offsets {
        let mut ended = Offsets::new();
        while let Some((round, offsets)) = self.open.front_mut() {
            // Nobody else holds it any more.
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

    /// Sends a round of so many messages.
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
    fn what_was_read_counts_when_all_results_have_arrived() {
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
    fn what_is_lost_is_sent_again_and_nothing_after_it_counts_before() {
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
