//! Conversion between wall-clock time, which people write and read, and room time.
//!
//! No decision is made here. Seats and leases have room time only.

use anteroom_config::schedule::converted;
use anteroom_room::queue_position::{Loss, QueuePosition, QueueReason};
use anteroom_room::time::Timestamp;

use crate::clock::NodeClock;

/// Converts the times that visitors read to wall-clock time.
pub(super) fn in_wall_time(mut position: QueuePosition, clock: &dyn NodeClock) -> QueuePosition {
    let (wall, room) = (clock.wall(), clock.now());
    let convert = |at: &mut Timestamp| *at = converted(*at, room, wall);
    convert(&mut position.arrived_at);
    match &mut position.reason {
        QueueReason::NotOpenYet { opens_at: at } | QueueReason::Recovering { reopens_at: at } => {
            convert(at);
        }
        _ => {}
    }
    match &mut position.loss {
        Some(Loss::Session { ended_at, .. } | Loss::Turn { ended_at, .. }) => convert(ended_at),
        Some(Loss::Position {
            last_request_at,
            ended_at,
        }) => {
            convert(last_request_at);
            convert(ended_at);
        }
        Some(Loss::Revoked) | None => {}
    }
    position
}
