//! Colour and mark of each allocation, equal in all charts.

use crate::chart::palette::{BLUE, GREEN, Look, Mark, ORANGE, PURPLE};
use anteroom_room::rules::AllocationKind;

/// Returns the looks of an allocation.
pub(crate) const fn look(kind: AllocationKind) -> Look {
    let (colour, mark) = match kind {
        AllocationKind::Even => (ORANGE, Mark::Triangle),
        AllocationKind::Curve => (PURPLE, Mark::Cross),
        AllocationKind::Counters => (GREEN, Mark::Dot),
        AllocationKind::Leases => (BLUE, Mark::None),
    };
    Look {
        colour,
        mark,
        is_dashed: false,
    }
}
