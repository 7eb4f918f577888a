//! Were the limits kept? The origin that judges, by the machine's wall clock.

use std::time::Duration;

pub use anteroom_demo::judging::{JUDGE_SEAT_ENDS, JUDGE_VISITOR, JudgingOrigin, LOGOUT, VIA};
use anteroom_demo::judging::{JudgedRoom, JudgesClock};
use anteroom_room::rules::Limits;
use anteroom_room::time::Span;

use crate::clock::now;

/// Name of the one room.
pub const ROOM: &str = "shop";

/// Starts an origin for the one room. `session` is for the judge's second measure only.
///
/// # Panics
///
/// If this machine has no free port.
pub async fn start(limits: Limits, session: Duration) -> JudgingOrigin {
    let session = u64::try_from(session.as_millis()).unwrap_or(u64::MAX);
    let room = JudgedRoom {
        name: ROOM.to_owned(),
        limits,
        session: Span(session),
        clock: JudgesClock::new(now),
    };
    JudgingOrigin::start(room).await
}
