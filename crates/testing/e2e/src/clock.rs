//! What time is it, for judge and crowd? The machine's wall clock, which the nodes go by as well.

use std::time::{SystemTime, UNIX_EPOCH};

use anteroom_room::time::Timestamp;

/// The time now, in whole milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the one reader of the wall clock here; judge and crowd take what it read"
)]
pub fn now() -> Timestamp {
    // A wall clock before 1970 is as good as one at 1970: both are wrong.
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}
