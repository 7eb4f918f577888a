//! Whose turn is it? Calls of one node for one client that swap its state do so one after the
//! other.

use std::collections::{BTreeMap, VecDeque};

use anteroom_limit::swapping::WAITING_MAX;

/// A client at a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Place {
    pub(crate) node: u32,
    pub(crate) client: u32,
}

/// Who waits, behind one whose turn it is.
pub(crate) struct Turns<T>(BTreeMap<Place, VecDeque<T>>);

/// When it is a call's turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    Now,
    Later,
    /// Never: too many wait.
    Crowded,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Turns<T> {
    /// A call comes.
    pub(crate) fn stand(&mut self, place: Place, call: T) -> Turn {
        let Some(line) = self.0.get_mut(&place) else {
            self.0.insert(place, VecDeque::new());
            return Turn::Now;
        };
        // One has the turn.
        if line.len() + 1 >= WAITING_MAX {
            return Turn::Crowded;
        }
        line.push_back(call);
        Turn::Later
    }

    /// The first that waits, if it is one of these: it waits no more.
    pub(crate) fn take_first_if(&mut self, place: Place, is_one: impl Fn(&T) -> bool) -> Option<T> {
        let line = self.0.get_mut(&place)?;
        line.pop_front_if(|first| is_one(first))
    }

    /// Whoever had the turn has it no more: who has it now, if anybody waits.
    pub(crate) fn next(&mut self, place: Place) -> Option<T> {
        let next = self.0.get_mut(&place)?.pop_front();
        if next.is_none() {
            self.0.remove(&place);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_and_never_too_many() {
        let (here, there) = (Place { node: 0, client: 0 }, Place { node: 1, client: 0 });
        let mut turns = Turns::default();
        assert_eq!(turns.stand(here, 0), Turn::Now);
        for call in 1..WAITING_MAX {
            assert_eq!(turns.stand(here, call), Turn::Later);
        }
        assert_eq!(turns.stand(here, 999), Turn::Crowded);
        assert_eq!(turns.stand(there, 0), Turn::Now);
        assert_eq!(turns.take_first_if(here, |call| *call == 2), None);
        assert_eq!(turns.take_first_if(here, |call| *call == 1), Some(1));
        assert_eq!(turns.next(here), Some(2));
        assert_eq!(turns.next(there), None);
        assert_eq!(turns.stand(there, 0), Turn::Now);
    }
}
