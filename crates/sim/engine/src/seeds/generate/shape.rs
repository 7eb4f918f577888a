//! Size of a seed's deployment, and length of its sessions.

use anteroom_room::rules::{Limits, Rules};
use anteroom_room::time::DurationMs;

use crate::rng::{Draw, SimRng};

/// Numbers of data centers, nodes and seats.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) global_lease: DurationMs,
    pub(super) data_centers: usize,
    pub(super) nodes: usize,
    pub(super) has_global_store: bool,
    pub(super) pace: Pace,
}

/// Pace of a run: with long sessions, faults last longer and are further apart.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Pace {
    Short,
    Long,
}

impl Pace {
    pub(super) fn of(session: DurationMs) -> Self {
        if session <= DurationMs::from_secs(20) {
            Self::Short
        } else {
            Self::Long
        }
    }
}

pub(super) fn limits(rng: &mut SimRng) -> Limits {
    if rng.chance(0.1) {
        return Limits {
            total_active_users: 20 + rng.below(181),
            new_users_per_minute: 20 + rng.below(400),
        };
    }
    Limits {
        total_active_users: 1 + rng.below(12),
        new_users_per_minute: 1 + rng.below(60),
    }
}

pub(super) fn short_session(rng: &mut SimRng) -> DurationMs {
    DurationMs::from_secs(u64::from(1 + rng.below(20)))
}

/// Returns another length of the session: anything short, or up to a hundred times as long or as
/// short.
pub(super) fn new_session(rng: &mut SimRng, rules: Rules) -> DurationMs {
    if rng.chance(0.5) {
        return short_session(rng);
    }
    let factor = u64::from(2 + rng.below(99));
    let session = if rng.chance(0.6) {
        rules.session_duration.times(factor)
    } else {
        DurationMs(rules.session_duration.0 / factor)
    };
    session.clamp(DurationMs::from_secs(1), DurationMs::from_secs(3_600))
}
