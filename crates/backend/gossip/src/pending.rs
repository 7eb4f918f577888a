//! Order in which a node reports its own changes.
//!
//! The other nodes can admit too much by as much as a node has not reported. So the counters with
//! the most unreported requests go first. They wait in classes, each of which begins at twice the
//! count of the one below; within a class the newest go first. So a busy counter never waits for
//! long behind many quiet ones. A quiet one waits until it has counted as much as the others, or
//! for the repetition.
//!
//! A reported change is sent again only when no unreported one is left.

use std::collections::VecDeque;

use crate::cell::CounterId;

/// Most pending changes. Beyond that, the least important are left to the repetition.
pub(crate) const NEWS_MAX: usize = 65_536;
/// Number of classes; the last one begins at 32,768 requests.
const CLASSES: usize = 16;

/// Order of magnitude of a number of unreported requests.
pub(crate) type Class = usize;

/// Returns the class of this many unreported requests; `None` for zero.
pub(crate) fn class(unreported: u32) -> Option<Class> {
    let log = unreported.checked_ilog2()?;
    Some(usize::try_from(log).map_or(CLASSES - 1, |log| log.min(CLASSES - 1)))
}

/// Pending reports. An entry may be outdated: its counter was reported since, or waits in a higher
/// class by now. The caller of `pop` checks that.
#[derive(Debug, Default)]
pub(crate) struct PendingReports {
    /// Unreported changes by class, oldest first.
    classes: [VecDeque<CounterId>; CLASSES],
    /// Changes to send again, with the round in which they were first sent.
    again: VecDeque<(u64, CounterId)>,
}

/// Report that was dropped because too many are pending.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Deferred {
    Unreported(Class, CounterId),
    Again(u64, CounterId),
}

impl PendingReports {
    /// Adds a counter whose unreported changes have reached this class.
    pub(crate) fn push(&mut self, class: Class, id: CounterId) {
        self.classes[class].push_back(id);
    }

    /// Takes the most important unreported change.
    pub(crate) fn pop(&mut self) -> Option<(Class, CounterId)> {
        let classes = self.classes.iter_mut().enumerate().rev();
        classes
            .filter_map(|(class, waiting)| Some((class, waiting.pop_back()?)))
            .next()
    }

    /// Adds a reported change that is to be sent again.
    pub(crate) fn push_again(&mut self, reported_in: u64, id: CounterId) {
        self.again.push_back((reported_in, id));
    }

    /// Takes the oldest change that is to be sent again.
    pub(crate) fn pop_again(&mut self) -> Option<(u64, CounterId)> {
        self.again.pop_front()
    }

    /// Puts a change back that did not fit; it is the next one to be sent again.
    pub(crate) fn unpop_again(&mut self, reported_in: u64, id: CounterId) {
        self.again.push_front((reported_in, id));
    }

    /// Returns the number of changes to be sent again.
    pub(crate) fn again(&self) -> usize {
        self.again.len()
    }

    /// Drops and returns the least important change, if too many are pending.
    pub(crate) fn defer(&mut self) -> Option<Deferred> {
        let unreported: usize = self.classes.iter().map(VecDeque::len).sum();
        if unreported + self.again.len() <= NEWS_MAX {
            return None;
        }
        if let Some((reported_in, id)) = self.again.pop_front() {
            return Some(Deferred::Again(reported_in, id));
        }
        let mut classes = self.classes.iter_mut().enumerate();
        classes.find_map(|(class, waiting)| Some(Deferred::Unreported(class, waiting.pop_front()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u64) -> CounterId {
        CounterId {
            name: 1,
            width: 1,
            index,
        }
    }

    #[test]
    fn a_class_begins_at_twice_as_much_as_the_one_below() {
        let cases = [0, 1, 2, 3, 4, 7, 8, 32_767, 32_768, u32::MAX].map(class);
        let classes = [0, 1, 1, 2, 2, 3, 14, 15, 15].map(Some);
        assert_eq!(cases[0], None);
        assert_eq!(cases[1..], classes);
    }

    #[test]
    fn the_highest_class_goes_first_and_within_it_the_newest() {
        let mut pending = PendingReports::default();
        for (class, index) in [(0, 1), (3, 2), (0, 3), (3, 4)] {
            pending.push(class, id(index));
        }
        pending.push_again(1, id(5));
        let order: Vec<u64> = std::iter::from_fn(|| pending.pop())
            .map(|(_, id)| id.index)
            .collect();
        assert_eq!(order, [4, 2, 3, 1]);
        assert_eq!(pending.pop_again(), Some((1, id(5))));
    }

    #[test]
    fn the_least_important_change_is_dropped_only_when_full() {
        let mut pending = PendingReports::default();
        pending.push(2, id(0));
        for index in 1..NEWS_MAX as u64 - 1 {
            pending.push(1, id(index));
        }
        pending.push_again(7, id(9));
        assert_eq!(pending.defer(), None);
        pending.push(2, id(0));
        pending.push(2, id(0));
        assert_eq!(pending.defer(), Some(Deferred::Again(7, id(9))));
        assert_eq!(pending.defer(), Some(Deferred::Unreported(1, id(1))));
        assert_eq!(pending.defer(), None);
    }
}
