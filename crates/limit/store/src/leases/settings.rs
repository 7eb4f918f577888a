//! Settings of counts by leases.

use std::time::Duration;

use anteroom_limit::leases::widened::PART_OF_WINDOW;

/// Settings of [`crate::leases::LeasedCounts`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Clients for which this node keeps leases, at most. They are spread over 64 shards by chance,
    /// so the limit is approximate. A client takes about half a kilobyte. Clients beyond ask the
    /// store for each request, and lose the rest of each lease.
    pub keys_max: usize,
    /// Divisor of the window that gives the length of a lease: 20 for a twentieth. That part of the
    /// limit is not admitted at saturation. Longer leases (a smaller number) tolerate slower
    /// stores.
    pub lease_part: u64,
    /// Longest round trip to the store. A request needs one where the store grants in one step;
    /// otherwise two, and one more for each node that writes first.
    pub round_trip_max: Duration,
    /// Longest time that a client request waits for the store; then it fails.
    pub timeout: Duration,
    /// Lease requests in flight at once. A quarter is reserved for clients that were granted a
    /// lease before. Beyond it, requests fail as if the store were overloaded.
    pub requests_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // 50 MB.
            keys_max: 100_000,
            lease_part: PART_OF_WINDOW,
            // Three round trips across an ocean.
            round_trip_max: Duration::from_millis(500),
            timeout: Duration::from_secs(1),
            // At 10 ms each that is 100,000 a second, more than one server can handle.
            requests_max: 1_024,
        }
    }
}
