//! Phase of a scheduled event, which only moves forward.
//!
//! A clock may step back. A started event then goes on, and its doors do not close again: the
//! phase is the later one of the clock and of a latch that nodes keep and share.
//!
//! Which clock the times are by is up to the caller; people write wall-clock time.

use crate::time::Timestamp;

/// Times of an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EventTimes {
    /// Time from which new visitors are queued for the start; the start itself if they are not.
    pub prequeue_at: Timestamp,
    /// Start; not before `prequeue_at`.
    pub starts_at: Timestamp,
    /// End, after the start; `None` if there is none.
    pub ends_at: Option<Timestamp>,
}

/// Phase of an event, in order.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum EventPhase {
    /// Time before the prequeue.
    #[default]
    Upcoming,
    /// Time before the start, in which new visitors are queued for it.
    Prequeue,
    /// Time from the start to the end.
    Running,
    /// Time after the end.
    Over,
}

impl EventPhase {
    /// Returns the name in the interface.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Upcoming => "upcoming",
            Self::Prequeue => "prequeue",
            Self::Running => "running",
            Self::Over => "over",
        }
    }

    /// Whether the event's values hold.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Prequeue | Self::Running)
    }
}

impl EventTimes {
    /// Returns the phase at `now`. It is never before `latched`, the latest one known so far.
    #[must_use]
    pub fn phase(&self, latched: EventPhase, now: Timestamp) -> EventPhase {
        let by_clock = if self.ends_at.is_some_and(|ends_at| ends_at <= now) {
            EventPhase::Over
        } else if self.starts_at <= now {
            EventPhase::Running
        } else if self.prequeue_at <= now {
            EventPhase::Prequeue
        } else {
            EventPhase::Upcoming
        };
        by_clock.max(latched)
    }

    /// Returns the time at which this phase ends by the clock; `None` if it never does.
    #[must_use]
    pub fn phase_ends_at(&self, phase: EventPhase) -> Option<Timestamp> {
        match phase {
            EventPhase::Upcoming => Some(self.prequeue_at),
            EventPhase::Prequeue => Some(self.starts_at),
            EventPhase::Running => self.ends_at,
            EventPhase::Over => None,
        }
    }

    /// Whether both take place at some moment, their prequeues included.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let ends_by = |one: &Self, at| one.ends_at.is_some_and(|ends_at| ends_at <= at);
        !ends_by(self, other.prequeue_at) && !ends_by(other, self.prequeue_at)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::split_mix::SplitMix;

    const fn times(prequeue_at: u64, starts_at: u64, ends_at: Option<u64>) -> EventTimes {
        EventTimes {
            prequeue_at: Timestamp(prequeue_at),
            starts_at: Timestamp(starts_at),
            ends_at: match ends_at {
                Some(at) => Some(Timestamp(at)),
                None => None,
            },
        }
    }

    #[test]
    fn phases_begin_at_their_times() {
        let event = times(10, 20, Some(30));
        for (now, expected) in [
            (9, EventPhase::Upcoming),
            (10, EventPhase::Prequeue),
            (19, EventPhase::Prequeue),
            (20, EventPhase::Running),
            (29, EventPhase::Running),
            (30, EventPhase::Over),
        ] {
            let phase = event.phase(EventPhase::Upcoming, Timestamp(now));
            assert_eq!(phase, expected, "{now}");
        }
        let without_prequeue = times(20, 20, None);
        let phase = |now| without_prequeue.phase(EventPhase::Upcoming, Timestamp(now));
        assert_eq!(
            (phase(19), phase(20)),
            (EventPhase::Upcoming, EventPhase::Running)
        );
        assert_eq!(phase(u64::MAX), EventPhase::Running);
    }

    /// The definition: an event has been in each phase whose beginning some clock has shown.
    fn naive(event: &EventTimes, clocks: &[u64]) -> EventPhase {
        let begins = [
            (EventPhase::Prequeue, Some(event.prequeue_at)),
            (EventPhase::Running, Some(event.starts_at)),
            (EventPhase::Over, event.ends_at),
        ];
        let latest = clocks.iter().max().copied().unwrap_or(0);
        let mut begun = begins
            .iter()
            .filter(|(_, at)| at.is_some_and(|at| at.0 <= latest));
        begun
            .next_back()
            .map_or(EventPhase::Upcoming, |(phase, _)| *phase)
    }

    #[test]
    fn on_clocks_that_jump_phases_follow_the_latest_time_shown_and_never_fall() {
        let mut random = SplitMix(17);
        let mut below = |end: u64| random.next_u64() % end;
        for _ in 0..10_000 {
            let prequeue_at = below(50);
            let starts_at = prequeue_at + below(50);
            let ends_at = (below(3) > 0).then(|| starts_at + 1 + below(50));
            let event = times(prequeue_at, starts_at, ends_at);
            let clocks: Vec<u64> = (0..below(12)).map(|_| below(200)).collect();
            let mut phase = EventPhase::Upcoming;
            for (count, now) in clocks.iter().enumerate() {
                let next = event.phase(phase, Timestamp(*now));
                assert!(next >= phase);
                assert_eq!(
                    next,
                    naive(&event, &clocks[..=count]),
                    "{event:?} {clocks:?}"
                );
                // A node that sleeps until then misses nothing, unless its clock is stepped.
                if let Some(end) = event.phase_ends_at(next) {
                    assert!(event.phase(next, end.max(Timestamp(*now))) > next);
                }
                phase = next;
            }
        }
    }

    #[test]
    fn events_that_follow_each_other_do_not_overlap() {
        let first = times(10, 20, Some(30));
        for (second, overlaps) in [
            (times(30, 40, None), false),
            (times(29, 40, None), true),
            (times(0, 5, Some(10)), false),
            (times(0, 5, None), true),
            (times(0, 5, Some(11)), true),
        ] {
            assert_eq!(first.overlaps(&second), overlaps, "{second:?}");
            assert_eq!(second.overlaps(&first), overlaps, "{second:?}");
        }
    }
}
