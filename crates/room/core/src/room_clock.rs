//! Room time: the boot clock plus an offset that follows the wall clock slowly.
//!
//! The wall clock may be stepped by an hour; the boot clock may not. Seats, tickets and minutes
//! follow room time, which runs on through such a step and approaches the wall clock again by at
//! most [`SLEW_PER_MILLION`]. The caller reads the clocks.

use crate::time::{DurationMs, Timestamp};

/// Fastest approach to the wall clock, in parts per million: the limit of NTP, and a tenth of what
/// a lease's drift margin covers.
pub const SLEW_PER_MILLION: u64 = 500;

/// Room time minus boot time, in microseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Offset {
    /// May be negative only on a machine whose wall clock stands before its boot.
    pub micros: i64,
}

/// Offset that an earlier process saved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SavedOffset<'a> {
    /// Boot during which it was saved.
    pub boot_id: &'a str,
    /// The offset.
    pub offset: Offset,
}

impl Offset {
    /// Returns the offset at which room time is `room` when the boot clock shows `boot`.
    #[must_use]
    pub fn between(boot: DurationMs, room: Timestamp) -> Self {
        let micros = (i128::from(room.0) - i128::from(boot.0)) * 1_000;
        Self {
            micros: i64::try_from(micros).unwrap_or(i64::MAX),
        }
    }

    /// Returns the offset of a process that starts. In the same boot, room time continues even if
    /// the wall clock was stepped; after a reboot it starts at the wall clock.
    #[must_use]
    pub fn at_start(
        saved: Option<SavedOffset<'_>>,
        boot_id: &str,
        boot: DurationMs,
        wall: Timestamp,
    ) -> Self {
        match saved {
            Some(saved) if saved.boot_id == boot_id => saved.offset,
            _ => Self::between(boot, wall),
        }
    }

    /// Returns room time when the boot clock shows `boot`.
    #[must_use]
    pub fn room_time(self, boot: DurationMs) -> Timestamp {
        let micros = i128::from(boot.0) * 1_000 + i128::from(self.micros);
        Timestamp(u64::try_from(micros.max(0) / 1_000).unwrap_or(u64::MAX))
    }

    /// Returns the offset after a move towards the wall clock, `elapsed` after the last move.
    #[must_use]
    pub fn slewed(self, boot: DurationMs, wall: Timestamp, elapsed: DurationMs) -> Self {
        let wanted = Self::between(boot, wall).micros.saturating_sub(self.micros);
        // One part per million of a millisecond is a nanosecond; a microsecond is a thousand of
        // those.
        let most = elapsed.0.saturating_mul(SLEW_PER_MILLION) / 1_000;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        Self {
            micros: self.micros.saturating_add(wanted.clamp(-most, most)),
        }
    }

    /// Returns this offset, or the one that puts room time at `at` if that is later.
    #[must_use]
    pub fn never_before(self, boot: DurationMs, at: Timestamp) -> Self {
        if self.room_time(boot) < at {
            Self::between(boot, at)
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: Timestamp = Timestamp(1_694_432_754_000);
    const HOUR: DurationMs = DurationMs(3_600_000);

    #[test]
    fn a_wall_clock_step_moves_room_time_within_the_slew() {
        let boot = DurationMs(1_000_000);
        let offset = Offset::between(boot, WALL);
        let second = DurationMs(1_000);
        let later = boot + second;
        for wall in [WALL + HOUR, WALL - HOUR] {
            let slewed = offset.slewed(later, wall, second).room_time(later);
            let moved = slewed.0.abs_diff((WALL + second).0);
            assert!(moved <= 1, "moved {moved} ms");
        }
    }

    #[test]
    fn small_differences_are_made_good() {
        let boot = DurationMs(1_000_000);
        let mut offset = Offset::between(boot, WALL);
        for n in 1..=100 {
            let now = boot + DurationMs(n * 1_000);
            offset = offset.slewed(now, WALL + DurationMs(n * 1_000 + 40), DurationMs(1_000));
        }
        let end = boot + DurationMs(100_000);
        assert_eq!(offset.room_time(end), WALL + DurationMs(100_040));
    }

    #[test]
    fn a_restart_continues_room_time_and_a_reboot_begins_anew() {
        let offset = Offset::between(DurationMs(5_000), WALL);
        let saved = Some(SavedOffset {
            boot_id: "a",
            offset,
        });
        let stepped = WALL + HOUR;
        let at_start = |boot_id| Offset::at_start(saved, boot_id, DurationMs(6_000), stepped);
        assert_eq!(
            at_start("a").room_time(DurationMs(6_000)),
            WALL + DurationMs(1_000)
        );
        assert_eq!(at_start("b").room_time(DurationMs(6_000)), stepped);
    }

    #[test]
    fn room_time_never_falls_behind_what_a_journal_has_seen() {
        let offset = Offset::between(DurationMs(0), WALL - HOUR);
        let offset = offset.never_before(DurationMs(10), WALL);
        assert_eq!(offset.room_time(DurationMs(10)), WALL);
        let before = offset.never_before(DurationMs(10), WALL - HOUR);
        assert_eq!(before, offset);
    }
}
