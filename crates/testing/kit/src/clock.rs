//! Wall clock of the machine, for the origin and the load generator; the nodes use it as well.

use std::time::{SystemTime, UNIX_EPOCH};

use anteroom_room::time::Timestamp;

/// Returns the time now, in whole milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the one reader of the wall clock here; checkers and visitors take its value"
)]
pub fn now() -> Timestamp {
    // A clock before 1970 counts as 1970: both are wrong.
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}
