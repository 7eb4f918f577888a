//! How large is a small world, and how long does a session last in it?

use anteroom_room::rules::{Limits, Rules};
use anteroom_room::time::Span;

use crate::dice::{Dice, Draw};

/// How many of what there is.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) world_lease: Span,
    pub(super) data_centers: usize,
    pub(super) nodes: usize,
    pub(super) has_world: bool,
    pub(super) pace: Pace,
}

/// How fast things happen: faults of a world with long sessions last longer and are further apart.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Pace {
    Short,
    Long,
}

impl Pace {
    pub(super) fn of(session: Span) -> Self {
        if session <= Span::from_secs(20) {
            Self::Short
        } else {
            Self::Long
        }
    }
}

pub(super) fn limits(dice: &mut Dice) -> Limits {
    if dice.chance(0.1) {
        return Limits {
            total_active_users: 20 + dice.below(181),
            new_users_per_minute: 20 + dice.below(400),
        };
    }
    Limits {
        total_active_users: 1 + dice.below(12),
        new_users_per_minute: 1 + dice.below(60),
    }
}

pub(super) fn short_session(dice: &mut Dice) -> Span {
    Span::from_secs(u64::from(1 + dice.below(20)))
}

/// Another length of the session: anything short, or up to a hundred times as long or as short.
pub(super) fn new_session(dice: &mut Dice, rules: Rules) -> Span {
    if dice.chance(0.5) {
        return short_session(dice);
    }
    let factor = u64::from(2 + dice.below(99));
    let session = if dice.chance(0.6) {
        rules.session_duration.times(factor)
    } else {
        Span(rules.session_duration.0 / factor)
    };
    session.clamp(Span::from_secs(1), Span::from_secs(3_600))
}
