//! Who may send one more request to the store?
//!
//! Whoever makes up keys is a new client each time, and each new client needs a request at once. So
//! a part of the requests is kept for clients to whom something was lent before, as long as they
//! are known here: while a lease of theirs lasts, or what the store said of it, which is some five
//! seconds at most. A flood of keys that come once takes nothing from them; who comes back after a
//! pause is as new as those. Somebody who calls with each of many keys until something was lent to
//! it is a known client by that, many times; nothing here can tell that from many clients.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One of so many requests is kept for those who are known. They ask seldom (a lease is for many
/// calls), and at 10 ms each the part of the 1,024 that may be on their way is 25,000 requests a
/// second.
const KEPT_PART: usize = 4;

/// The requests that may be on their way at once.
#[derive(Debug)]
pub(crate) struct Permits {
    all: Arc<Semaphore>,
    newcomers: Arc<Semaphore>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _of_all: OwnedSemaphorePermit,
    _of_newcomers: Option<OwnedSemaphorePermit>,
}

impl Permits {
    pub(crate) fn new(requests_max: usize) -> Self {
        let all = requests_max.clamp(1, 1 << 20);
        Self {
            all: Arc::new(Semaphore::new(all)),
            newcomers: Arc::new(Semaphore::new(all - all / KEPT_PART)),
        }
    }

    /// For a request of a client to whom something was lent before, or of another. `None` if there
    /// are too many.
    pub(crate) fn take(&self, is_known: bool) -> Option<Permit> {
        let take = |from: &Arc<Semaphore>| Arc::clone(from).try_acquire_owned().ok();
        let of_newcomers = match is_known {
            true => None,
            false => Some(take(&self.newcomers)?),
        };
        Some(Permit {
            _of_all: take(&self.all)?,
            _of_newcomers: of_newcomers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_clients_have_a_part_of_their_own_and_may_use_all() {
        let check = |requests_max: usize, newcomers: usize| {
            let permits = Permits::new(requests_max);
            let new: Vec<Permit> = std::iter::from_fn(|| permits.take(false)).collect();
            assert_eq!(new.len(), newcomers, "of {requests_max}");
            let known: Vec<Permit> = std::iter::from_fn(|| permits.take(true)).collect();
            assert_eq!(known.len(), requests_max - newcomers, "of {requests_max}");
            drop(new);
            let more: Vec<Permit> = std::iter::from_fn(|| permits.take(true)).collect();
            assert_eq!(more.len(), newcomers, "of {requests_max}");
        };
        check(1_024, 768);
        check(4, 3);
        check(1, 1);
    }
}
