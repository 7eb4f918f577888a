//! Were the limits kept? The origin that judges, by the machine's wall clock.

use std::time::Duration;

use anteroom_demo::judging::{CheckedRoom, CheckerClock};
pub use anteroom_demo::judging::{CheckingOrigin, JUDGE_SEAT_ENDS, JUDGE_VISITOR, LOGOUT, VIA};
use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;

use crate::clock::now;

/// Name of the one room.
pub const ROOM: &str = "shop";

/// Starts an origin for the one room. `session` is for the judge's second measure only.
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
