//! What whoever runs a node may want otherwise.

use std::time::Duration;

use anteroom_limit::lending::widened::PART_OF_WINDOW;

/// Settings of [`crate::lending::LeasedCounts`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// For at most so many clients at once leases are held here (about: they are spread over 64
    /// parts, by chance). A client takes about half a kilobyte. Those beyond ask the store for each
    /// call, and what is left of what they were lent is lost.
    pub keys_max: usize,
    /// A lease is such a part of the window: 20 for a twentieth. So much is not admitted at
    /// saturation. Longer leases (a smaller number) bear slower stores.
    pub lease_part: u64,
    /// How long a round trip to the store may take. A request needs one where the store lends in
    /// one step; otherwise two, and one more for each node that was quicker.
    pub round_trip_max: Duration,
    /// How long a call waits for an answer at most; then nobody knows what would become of it.
    pub patience: Duration,
    /// So many requests are on their way to the store at once, a quarter of them of clients to whom
    /// something was lent before. What would need one more is told that the store has no time.
    pub requests_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // 50 MB.
            keys_max: 100_000,
            lease_part: PART_OF_WINDOW,
            // Across an ocean and back, three times over.
            round_trip_max: Duration::from_millis(500),
            patience: Duration::from_secs(1),
            // At 10 ms each that is 100,000 a second, more than one server answers.
            requests_max: 1_024,
        }
    }
}
