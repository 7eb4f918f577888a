//! Clocks. No other module reads one.
//!
//! Room time is the boot clock plus an offset that approaches the wall clock slowly
//! ([`anteroom_room::room_clock`]). A file keeps the offset, so that room time continues over a
//! restart even if the wall clock was stepped.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anteroom_room::room_clock::{Offset, SavedOffset};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::Clock;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

/// Interval at which the clock is slewed.
pub(crate) const SLEW_PERIOD: DurationMs = DurationMs(1_000);

/// Change of the offset after which it is saved again, in microseconds.
const SAVE_AFTER_MICROS: u64 = 50_000;

/// Room time and the wall clock.
pub trait NodeClock: Clock {
    /// Returns the wall-clock time.
    fn wall(&self) -> Timestamp;

    /// Moves room time towards the wall clock; called once a second.
    fn slew(&self);
}

/// Source of wall-clock time. Tests replace it by a stepped clock.
pub trait WallClock: Send + Sync + 'static {
    /// Returns the milliseconds since the Unix epoch, by the machine's clock.
    fn read(&self) -> Timestamp;
}

/// Wall clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWallClock;

impl WallClock for SystemWallClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the wall clock"
    )]
    fn read(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.unwrap_or_default().as_millis();
        Timestamp(u64::try_from(since).unwrap_or(u64::MAX))
    }
}

/// Clock of a running node.
pub struct RoomClock {
    offset_micros: AtomicI64,
    /// Saved offset. Locked while the offset changes, so that changes are serialised.
    saved_micros: Mutex<Option<i64>>,
    boot_id: String,
    file: PathBuf,
    wall: Box<dyn WallClock>,
}

impl std::fmt::Debug for RoomClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RoomClock({})", self.now().0)
    }
}

impl RoomClock {
    /// Returns a clock that continues with the saved offset, or starts at the wall clock.
    #[must_use]
    pub fn start(file: PathBuf) -> Self {
        Self::with_wall_clock(file, SystemWallClock)
    }

    /// Variant of [`start`](Self::start) with another wall clock.
    #[must_use]
    pub fn with_wall_clock(file: PathBuf, wall: impl WallClock) -> Self {
        let boot_id = boot_id();
        let text = fs::read_to_string(&file).unwrap_or_default();
        let offset = Offset::at_start(parse(&text), &boot_id, boot_time(), wall.read());
        let clock = Self {
            offset_micros: AtomicI64::new(offset.micros),
            saved_micros: Mutex::new(None),
            boot_id,
            file,
            wall: Box::new(wall),
        };
        clock.change(|offset| offset);
        clock
    }

    fn offset(&self) -> Offset {
        Offset {
            micros: self.offset_micros.load(Ordering::Relaxed),
        }
    }

    /// Changes the offset, and saves it when it has moved enough. If the disk fails, a restart
    /// loses at most what was slewed since the last save; the journal bounds that as well.
    fn change(&self, change: impl FnOnce(Offset) -> Offset) {
        let mut saved = self.saved_micros.lock();
        let micros = change(self.offset()).micros;
        self.offset_micros.store(micros, Ordering::Relaxed);
        let moved = saved.map_or(u64::MAX, |saved| micros.abs_diff(saved));
        if moved < SAVE_AFTER_MICROS {
            return;
        }
        let draft = self.file.with_extension("new");
        let text = format!("{} {micros}\n", self.boot_id);
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &self.file));
        match written {
            Ok(()) => *saved = Some(micros),
            Err(error) => tracing::debug!(%error, "cannot save the clock offset"),
        }
    }
}

impl Clock for RoomClock {
    fn now(&self) -> Timestamp {
        self.offset().room_time(boot_time())
    }

    fn never_before(&self, at: Timestamp) {
        self.change(|offset| offset.never_before(boot_time(), at));
    }
}

impl NodeClock for RoomClock {
    fn wall(&self) -> Timestamp {
        self.wall.read()
    }

    fn slew(&self) {
        self.change(|offset| offset.slewed(boot_time(), self.wall.read(), SLEW_PERIOD));
    }
}

/// Clock that stands until a test advances it.
#[derive(Debug)]
pub struct HandClock {
    now: AtomicU64,
}

impl HandClock {
    /// Returns a clock that stands at `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self {
            now: AtomicU64::new(now.0),
        }
    }

    /// Advances the clock.
    pub fn advance(&self, by: DurationMs) {
        self.now.fetch_add(by.0, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    fn never_before(&self, at: Timestamp) {
        self.now.fetch_max(at.0, Ordering::SeqCst);
    }
}

impl NodeClock for HandClock {
    fn wall(&self) -> Timestamp {
        self.now()
    }

    fn slew(&self) {}
}

/// Returns the time since the machine started, sleep included.
fn boot_time() -> DurationMs {
    let time = clock_gettime(ClockId::Boottime);
    let millis = i128::from(time.tv_sec) * 1_000 + i128::from(time.tv_nsec) / 1_000_000;
    DurationMs(u64::try_from(millis).unwrap_or(0))
}

/// Returns an id of this boot of the machine. If the system has none, every start counts as a
/// reboot.
fn boot_id() -> String {
    match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(id) => id.trim().to_owned(),
        Err(_) => format!("unknown-{}", std::process::id()),
    }
}

fn parse(text: &str) -> Option<SavedOffset<'_>> {
    let (boot_id, micros) = text.trim().split_once(' ')?;
    let offset = Offset {
        micros: micros.parse().ok()?,
    };
    Some(SavedOffset { boot_id, offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    struct Stepped(Arc<AtomicU64>);

    impl WallClock for Stepped {
        fn read(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::SeqCst))
        }
    }

    #[test]
    fn a_stepped_wall_clock_moves_room_time_slowly_even_over_restarts() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("clock");
        let wall = Arc::new(AtomicU64::new(1_694_432_754_000));
        let start = || RoomClock::with_wall_clock(file.clone(), Stepped(Arc::clone(&wall)));
        let clock = start();
        let before = clock.now();
        for step in [3_600_000, u64::MAX - 7_199_999] {
            wall.fetch_add(step, Ordering::SeqCst);
            clock.slew();
            assert!(clock.now().since(before) < DurationMs(60_000));
            assert!(start().now().since(before) < DurationMs(60_000));
            assert!(
                clock.now() >= before - DurationMs(1) && start().now() >= before - DurationMs(1)
            );
        }
    }

    #[test]
    fn a_damaged_file_is_a_first_start() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("clock");
        fs::write(&file, "nonsense").unwrap();
        let wall = Arc::new(AtomicU64::new(1_694_432_754_000));
        let clock = RoomClock::with_wall_clock(file, Stepped(wall));
        assert!(clock.now().since(Timestamp(1_694_432_754_000)) < DurationMs(60_000));
    }

    #[test]
    fn room_time_never_falls_behind_the_journal() {
        let dir = tempfile::tempdir().unwrap();
        let clock = RoomClock::start(dir.path().join("clock"));
        let later = clock.now() + DurationMs(3_600_000);
        clock.never_before(later);
        assert!(clock.now() >= later);
    }
}
