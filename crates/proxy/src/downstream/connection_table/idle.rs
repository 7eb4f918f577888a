//! Which connection is idle for longest? A queue that requests never touch.
//!
//! A position holds a time since when its connection may be idle, which is never too late. Whoever
//! looks for the longest idle one corrects the first position until it is true. So a request costs
//! a store to an atomic, and looking costs as much as happened since the last look.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;
use std::time::Duration;

use super::counts::millis;
use super::entry::Entry;

/// Positions that are corrected in one look. Where all connections are busy, a look would go
/// through all of them each time; fewer, and an idle one is overlooked more often among many that
/// are not.
const LOOKS_MAX: usize = 64;
/// Positions of connections that have ended, beside as many as are open, before they are cleared.
const GONE_MAX: usize = 64;

/// Which of the two queues.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    Ordinary,
    WithTicket,
}

#[derive(Default)]
pub(super) struct Idle {
    ordinary: Queue,
    with_ticket: Queue,
}

type Queue = BinaryHeap<Reverse<Position>>;

struct Position {
    /// Milliseconds on the table's clock.
    since: u64,
    entry: Arc<Entry>,
}

impl Class {
    fn of(entry: &Entry) -> Self {
        if entry.has_ticket() {
            Self::WithTicket
        } else {
            Self::Ordinary
        }
    }
}

impl Idle {
    /// Adds a connection that is idle since now. `open` is how many connections belong here.
    pub(super) fn add(&mut self, entry: &Arc<Entry>, now: Duration, open: usize) {
        self.clear(open);
        self.push(Position {
            since: millis(now),
            entry: Arc::clone(entry),
        });
    }

    fn push(&mut self, position: Position) {
        let queue = match Class::of(&position.entry) {
            Class::Ordinary => &mut self.ordinary,
            Class::WithTicket => &mut self.with_ticket,
        };
        queue.push(Reverse(position));
    }

    /// Takes out the connection of a class that is idle for longest, and at least for so long.
    pub(super) fn longest(
        &mut self,
        class: Class,
        now: Duration,
        least: Duration,
    ) -> Option<Arc<Entry>> {
        let now = millis(now);
        let mut looks = 0;
        while looks < LOOKS_MAX {
            let queue = match class {
                Class::Ordinary => &mut self.ordinary,
                Class::WithTicket => &mut self.with_ticket,
            };
            let mut first = queue.peek_mut()?;
            if first.0.entry.is_gone() {
                PeekMut::pop(first);
                continue;
            }
            looks += 1;
            if Class::of(&first.0.entry) != class {
                let Reverse(position) = PeekMut::pop(first);
                self.push(position);
                continue;
            }
            let since = first.0.entry.idle_since();
            if since == Some(first.0.since) {
                let is_due = now.saturating_sub(first.0.since) >= millis(least);
                return is_due.then(|| PeekMut::pop(first).0.entry);
            }
            // A busy one is idle later than now, and stands behind all that are idle.
            first.0.since = since.unwrap_or(now + 1);
        }
        None
    }

    /// Forgets connections that have ended, once they are the most.
    fn clear(&mut self, open: usize) {
        let most = open.saturating_mul(2).saturating_add(GONE_MAX);
        if self.ordinary.len() + self.with_ticket.len() <= most {
            return;
        }
        for queue in [&mut self.ordinary, &mut self.with_ticket] {
            queue.retain(|position| !position.0.entry.is_gone());
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.ordinary.len() + self.with_ticket.len()
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        self.since.cmp(&other.since)
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Position {
    fn eq(&self, other: &Self) -> bool {
        self.since == other.since
    }
}

impl Eq for Position {}
