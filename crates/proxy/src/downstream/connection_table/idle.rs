//! Queue that finds the longest idle connection; requests never touch it.
//!
//! Each entry holds a time that is not later than the start of the connection's idle time. The
//! search corrects the first entry until it is exact. So a request costs one atomic store, and a
//! search costs as much as happened since the last one.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;
use std::time::Duration;

use super::counts::millis;
use super::entry::Entry;

/// Maximum number of entries that one search corrects. Without a limit, a search visits all
/// connections while all are busy. With fewer, it misses an idle one more often.
const LOOKS_MAX: usize = 64;
/// Number of entries of closed connections, beyond the number of open ones, before they are
/// removed.
const GONE_MAX: usize = 64;

/// Kind of connection; each kind has a queue.
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
    /// Earliest start of the idle time, in milliseconds on the table's clock.
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
    /// Adds a connection that is idle from now on. `open` is the number of connections of this
    /// class.
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

    /// Removes and returns the connection of a class that is idle for longest, and at least for
    /// `least`.
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
            // A busy connection moves behind all that are idle.
            first.0.since = since.unwrap_or(now + 1);
        }
        None
    }

    /// Removes entries of closed connections once they are the majority.
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
