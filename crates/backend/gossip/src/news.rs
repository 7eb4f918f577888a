//! Which of its own changes does a node tell first?
//!
//! What a node has not told is what others may let through too much, so the counters with the most
//! untold calls go first. They wait by classes, of which each begins at twice as much as the one
//! below; of one class the newest go first. So however many clients call, none keeps for long a
//! place in line that a busier one needs, and whoever calls little waits until it has called as
//! much as the others, or for the repetition.
//!
//! What was told is told again only when nothing is left that was not.

use std::collections::VecDeque;

use crate::cell::CounterId;

/// News that wait at most. Beyond, those that matter least are left to the repetition.
pub(crate) const NEWS_MAX: usize = 65_536;
/// The last one begins at 32,768 calls.
const CLASSES: usize = 16;

/// How much is untold, by its order of magnitude.
pub(crate) type Class = usize;

/// In which class so much that is untold waits; `None` if nothing is.
pub(crate) fn class(untold: u32) -> Option<Class> {
    let log = untold.checked_ilog2()?;
    Some(usize::try_from(log).map_or(CLASSES - 1, |log| log.min(CLASSES - 1)))
}

/// What waits to be told. A counter that was told since, or waits in a higher class by now, may
/// stand here all the same: who takes it out looks.
#[derive(Debug, Default)]
pub(crate) struct PendingReports {
    /// The oldest first.
    classes: [VecDeque<CounterId>; CLASSES],
    /// With the round in which they were told.
    again: VecDeque<(u64, CounterId)>,
}

/// What there is no place for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Deferred {
    Untold(Class, CounterId),
    Again(u64, CounterId),
}

impl PendingReports {
    /// It was not told, or more of it is untold now than this class has.
    pub(crate) fn push(&mut self, class: Class, id: CounterId) {
        self.classes[class].push_back(id);
    }

    /// What matters most.
    pub(crate) fn pop(&mut self) -> Option<(Class, CounterId)> {
        let classes = self.classes.iter_mut().enumerate().rev();
        classes
            .filter_map(|(class, waiting)| Some((class, waiting.pop_back()?)))
            .next()
    }

    /// It was told, and is to be told again.
    pub(crate) fn push_again(&mut self, told_in: u64, id: CounterId) {
        self.again.push_back((told_in, id));
    }

    /// What was told before all else that is to be told again.
    pub(crate) fn pop_again(&mut self) -> Option<(u64, CounterId)> {
        self.again.pop_front()
    }

    /// It is told again next: there was no room.
    pub(crate) fn unpop_again(&mut self, told_in: u64, id: CounterId) {
        self.again.push_front((told_in, id));
    }

    /// How many are to be told again.
    pub(crate) fn again(&self) -> usize {
        self.again.len()
    }

    /// What matters least, if there is too much.
    pub(crate) fn put_off(&mut self) -> Option<Deferred> {
        let untold: usize = self.classes.iter().map(VecDeque::len).sum();
        if untold + self.again.len() <= NEWS_MAX {
            return None;
        }
        if let Some((told_in, id)) = self.again.pop_front() {
            return Some(Deferred::Again(told_in, id));
        }
        let mut classes = self.classes.iter_mut().enumerate();
        classes.find_map(|(class, waiting)| Some(Deferred::Untold(class, waiting.pop_front()?)))
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
    fn the_most_goes_first_and_of_as_much_the_newest() {
        let mut news = PendingReports::default();
        for (class, index) in [(0, 1), (3, 2), (0, 3), (3, 4)] {
            news.push(class, id(index));
        }
        news.push_again(1, id(5));
        let order: Vec<u64> = std::iter::from_fn(|| news.pop())
            .map(|(_, id)| id.index)
            .collect();
        assert_eq!(order, [4, 2, 3, 1]);
        assert_eq!(news.pop_again(), Some((1, id(5))));
    }

    #[test]
    fn what_matters_least_is_put_off_and_only_under_pressure() {
        let mut news = PendingReports::default();
        news.push(2, id(0));
        for index in 1..NEWS_MAX as u64 - 1 {
            news.push(1, id(index));
        }
        news.push_again(7, id(9));
        assert_eq!(news.put_off(), None);
        news.push(2, id(0));
        news.push(2, id(0));
        assert_eq!(news.put_off(), Some(Deferred::Again(7, id(9))));
        assert_eq!(news.put_off(), Some(Deferred::Untold(1, id(1))));
        assert_eq!(news.put_off(), None);
    }
}
