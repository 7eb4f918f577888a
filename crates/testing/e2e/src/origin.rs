//! Origin that checks the limits, by the machine's wall clock.

use std::time::Duration;

pub use anteroom_demo::checking_origin::CheckingOrigin;
use anteroom_demo::checking_origin::{CheckedRoom, CheckerClock};
use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;

use anteroom_testkit::clock::now;

/// Name of the one room.
pub const ROOM: &str = "shop";

/// Starts an origin for the one room. `session` is for its second measure only.
///
/// # Panics
///
/// If this machine has no free port.
pub async fn start(limits: Limits, session: Duration) -> CheckingOrigin {
    let session = u64::try_from(session.as_millis()).unwrap_or(u64::MAX);
    let room = CheckedRoom {
        name: ROOM.to_owned(),
        limits,
        session: DurationMs(session),
        clock: CheckerClock::new(now),
    };
    CheckingOrigin::start(room).await
}
