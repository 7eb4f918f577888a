//! Limit on lease requests in flight.
//!
//! A client that makes up keys appears as a new client each time, and each new client needs a
//! request at once. So part of the requests is reserved for known clients: those that hold a lease,
//! or a reply of the last five seconds or so. A flood of one-time keys takes nothing from them. A
//! client that comes back after a pause counts as new. A client that holds a lease under each of
//! many keys counts as many known clients; the two cannot be distinguished.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Divisor for the share of requests that is reserved for known clients. They need few, as one
/// lease covers many client requests. At 10 ms each, this share of 1,024 in flight is 25,000
/// requests per second.
const KEPT_PART: usize = 4;

/// Permits for requests in flight.
#[derive(Debug)]
pub(crate) struct Permits {
    all: Arc<Semaphore>,
    newcomers: Arc<Semaphore>,
}

/// Permit for one request, returned on drop.
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

    /// Takes a permit. `is_known` means that the client was granted a lease before. Returns `None`
    /// if too many requests are in flight.
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
    fn known_clients_have_a_reserve_and_may_use_all() {
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
