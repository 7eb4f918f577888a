//! Checker of invariant 11: the draw of an event happens once. It draws those who came between
//! prequeue and start; those who waited before are ahead of them, and those who came later behind.

use std::collections::BTreeMap;

use anteroom_room::event::EventPhase;
use anteroom_room::id::VisitorId;
use anteroom_room::time::Timestamp;

use super::{EDGE, EventKey, ScheduledNode, key_of, timetable};
use crate::checkers::Checkers;
use crate::outcome::Invariant;

/// Number of drawn visitors that are surely not all in the order of arrival.
const ENOUGH: usize = 12;

/// Waiting visitor with its rank at a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    pub(crate) visitor: VisitorId,
    /// Second of arrival, as its ticket has it.
    pub(crate) arrived_in: Timestamp,
    pub(crate) rank: Timestamp,
}

/// Ranks of visitors who took part in draws.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    by_event: BTreeMap<EventKey, BTreeMap<VisitorId, Ranked>>,
}

/// Whether the ranks of these visitors follow their arrivals.
fn are_in_order<'a>(drawn: impl Iterator<Item = &'a Ranked>) -> bool {
    let mut pairs: Vec<_> = drawn.map(|one| (one.arrived_in, one.rank)).collect();
    pairs.sort_unstable();
    pairs.dedup_by_key(|(arrived_in, _)| *arrived_in);
    pairs.len() >= ENOUGH && pairs.is_sorted_by_key(|(_, rank)| *rank)
}

impl Checkers {
    /// Checks the rank of a waiting visitor at a node where the event has started.
    pub(crate) fn check_draw(&mut self, node: &ScheduledNode<'_>, ranked: Ranked, now: Timestamp) {
        // A ticket has room time. A clock that was stepped moves the edges of the draw.
        if !node.is_steady || node.stepped_at > Timestamp::ZERO || self.have_walls_stepped {
            return;
        }
        let last = timetable::planned(node.file)
            .filter(|event| self.events.phases(node, event).0 >= EventPhase::Running)
            .max_by_key(|event| event.times.starts_at);
        let Some(event) = last.filter(|event| event.is_shuffled) else {
            return;
        };
        let margin = EDGE + self.tolerance.times(2);
        let [from, until] = [event.times.prequeue_at, event.times.starts_at];
        let (arrived_in, rank) = (ranked.arrived_in, ranked.rank);
        let is_drawn = from + margin <= arrived_in && arrived_in + margin < until;
        let wrong = if arrived_in + margin < from && rank >= from + margin {
            Some("waited before a prequeue, and was drawn")
        } else if is_drawn && !(from <= rank + margin && rank < until + margin) {
            Some("came in a prequeue, and was not drawn")
        } else if arrived_in >= until + margin && rank + margin < until {
            Some("came after a start, and was drawn")
        } else {
            None
        };
        let key = key_of(event);
        let known = self.events.drawn.by_event.entry(key).or_default();
        let before = is_drawn
            .then(|| known.insert(ranked.visitor, ranked))
            .flatten();
        let is_drawn_again = before.is_some_and(|before| before.rank != rank);
        let is_new = is_drawn && before.is_none();
        let is_undrawn = is_new && known.len() >= ENOUGH && are_in_order(known.values());
        if let Some(wrong) = wrong {
            self.report(Invariant::Draw, now, || format!("a visitor {wrong}"));
        } else if is_drawn_again {
            self.report(Invariant::Draw, now, || {
                "a visitor was drawn twice".to_owned()
            });
        } else if is_undrawn {
            self.report(Invariant::Draw, now, || {
                "all who came in a prequeue are in the order of their arrival".to_owned()
            });
        }
    }
}
