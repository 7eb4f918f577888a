//! What is set beside the rate of a limit, and what is wrong with it?
//!
//! One list for all algorithms, because whoever reads a config asks the same of each.

use crate::time::DurationUs;

/// A number beside the rate of a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Setting {
    /// How many parts the window has.
    SubWindows,
    /// How many calls may come at once.
    Burst,
    /// How many calls may come at once the first time.
    InitialBurst,
    /// How many calls may wait.
    Queue,
}

/// Numbers beside the rate of a limit. What is left out follows from the rate, or is usual.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(missing_docs, reason = "each is said by its setting")]
pub struct Settings {
    pub sub_windows: Option<u32>,
    pub burst: Option<u32>,
    pub initial_burst: Option<u32>,
    pub queue: Option<u32>,
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::SubWindows,
        Self::Burst,
        Self::InitialBurst,
        Self::Queue,
    ];
}

impl Settings {
    /// The number, if it is set.
    #[must_use]
    pub const fn get(&self, setting: Setting) -> Option<u32> {
        match setting {
            Setting::SubWindows => self.sub_windows,
            Setting::Burst => self.burst,
            Setting::InitialBurst => self.initial_burst,
            Setting::Queue => self.queue,
        }
    }

    /// Sets the number.
    pub const fn set(&mut self, setting: Setting, value: u32) {
        let place = match setting {
            Setting::SubWindows => &mut self.sub_windows,
            Setting::Burst => &mut self.burst,
            Setting::InitialBurst => &mut self.initial_burst,
            Setting::Queue => &mut self.queue,
        };
        *place = Some(value);
    }
}

/// Why a limit cannot be made of these settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The window is shorter or longer than limits can have.
    #[error("window of {window} is not from {shortest} to {longest}")]
    WindowOutOfRange {
        /// The window that was asked for.
        window: DurationUs,
        /// The shortest one that can be had.
        shortest: DurationUs,
        /// The longest one that can be had.
        longest: DurationUs,
    },
    /// More calls than a log can hold. Any other algorithm can count them.
    #[error("log of {calls} calls is longer than {most}")]
    LogTooLong {
        /// The calls that were asked for.
        calls: u32,
        /// How many a log can hold.
        most: u32,
    },
    /// No parts of a window, or too many.
    #[error("{parts} sub-windows are not from 1 to {most}")]
    PartsOutOfRange {
        /// The number of parts that was asked for.
        parts: u32,
        /// The largest number of parts.
        most: u32,
    },
    /// The parts of the window would not be whole microseconds long.
    #[error("window of {window} has no {parts} equal parts of whole microseconds")]
    PartsUneven {
        /// The window that was asked for.
        window: DurationUs,
        /// The number of parts that was asked for.
        parts: u32,
    },
    /// A bucket or burst of nothing. To let nobody through, set the calls to zero.
    #[error("burst of zero calls never lets one through")]
    BurstZero,
    /// A bucket that starts with less than it can hold.
    #[error("initial burst of {initial_burst} is below the capacity of {capacity}")]
    InitialBurstBelowCapacity {
        /// The initial burst that was asked for.
        initial_burst: u32,
        /// The capacity beside it.
        capacity: u32,
    },
}
