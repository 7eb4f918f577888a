//! What is true of every ledger between two transitions, asserted after each of them in debug
//! builds.

use super::{Child, Ledger};

/// Sums are compared with the records up to so many children: that costs a walk over all of them.
const CHILDREN_COMPARED: usize = 32;

impl Ledger {
    /// Panics in a debug build if the record is one that no sequence of transitions makes.
    pub(super) fn assert_sound(&self) {
        if cfg!(debug_assertions) {
            for child in self.children.values() {
                self.assert_child(child);
            }
            for gone in &self.departed {
                assert!(
                    !self.children.contains_key(&gone.node),
                    "a child that is here is not gone"
                );
                assert!(
                    gone.generation <= self.generation,
                    "a lease that was given up was given"
                );
            }
            if let Some(upstream) = &self.upstream {
                assert!(
                    self.reserve.is_none(),
                    "only the root holds a reserve: below it all is lent by somebody who remembers"
                );
                upstream.lease.assert_sound();
                assert!(
                    upstream.answered <= upstream.lease.to_parts().newest,
                    "nobody answers what was not asked"
                );
            } else {
                for group in self.groups.values() {
                    assert!(
                        group.closed_through <= group.ready_through.max(self.agreed_now()),
                        "an interval gives its seats back when all children treat it as over"
                    );
                }
            }
            assert!(
                self.began_at <= self.heard_at,
                "it began when the first child spoke"
            );
            if self.children.len() <= CHILDREN_COMPARED {
                self.assert_sums();
            }
        }
    }

    fn assert_child(&self, child: &Child) {
        assert!(
            (1..=self.generation).contains(&child.generation),
            "a lease has a number that was given"
        );
        assert!(
            child.longest_seat <= self.longest_seat,
            "a child gives no longer seat than this ledger knows of"
        );
    }

    fn assert_sums(&self) {
        let mut rebuilt = self.clone();
        rebuilt.rebuild_sums();
        let oldest = self.oldest_minute();
        self.sums.assert_same(&rebuilt.sums, oldest);
    }
}
