//! Settings of a limit besides its rate, and their errors.
//!
//! One list for all algorithms, because code that reads a config treats them alike.

use crate::time::DurationUs;

/// Name of a setting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Setting {
    /// Number of parts of the window.
    SubWindows,
    /// Requests that may come at once.
    Burst,
    /// Requests that a new client may send at once.
    InitialBurst,
    /// Requests that may wait.
    Queue,
}

/// Settings besides the rate. Those left out follow from the rate or have a default.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(missing_docs, reason = "documented at its `Setting`")]
pub struct Settings {
    pub sub_windows: Option<u32>,
    pub burst: Option<u32>,
    pub initial_burst: Option<u32>,
    pub queue: Option<u32>,
}

impl Setting {
    /// All settings.
    pub const ALL: [Self; 4] = [
        Self::SubWindows,
        Self::Burst,
        Self::InitialBurst,
        Self::Queue,
    ];
}

impl Settings {
    /// Returns the value, if it is set.
    #[must_use]
    pub const fn get(&self, setting: Setting) -> Option<u32> {
        match setting {
            Setting::SubWindows => self.sub_windows,
            Setting::Burst => self.burst,
            Setting::InitialBurst => self.initial_burst,
            Setting::Queue => self.queue,
        }
    }

    /// Sets the value.
    pub const fn set(&mut self, setting: Setting, value: u32) {
        let field = match setting {
            Setting::SubWindows => &mut self.sub_windows,
            Setting::Burst => &mut self.burst,
            Setting::InitialBurst => &mut self.initial_burst,
            Setting::Queue => &mut self.queue,
        };
        *field = Some(value);
    }
}

/// Error of settings that make no limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The window is shorter or longer than limits can have.
    #[error("window of {window} is outside {shortest} to {longest}")]
    WindowOutOfRange {
        /// Requested window.
        window: DurationUs,
        /// Shortest window.
        shortest: DurationUs,
        /// Longest window.
        longest: DurationUs,
    },
    /// More requests than a log can hold. Any other algorithm can count them.
    #[error("log of {calls} requests exceeds the maximum of {most}")]
    LogTooLong {
        /// Requested limit.
        calls: u32,
        /// Largest limit of a log.
        most: u32,
    },
    /// Zero sub-windows, or too many.
    #[error("{parts} sub-windows are outside 1 to {most}")]
    PartsOutOfRange {
        /// Requested number of sub-windows.
        parts: u32,
        /// Largest number of sub-windows.
        most: u32,
    },
    /// The sub-windows would not last whole microseconds.
    #[error("window of {window} has no {parts} equal parts of whole microseconds")]
    PartsUneven {
        /// Requested window.
        window: DurationUs,
        /// Requested number of sub-windows.
        parts: u32,
    },
    /// A bucket or burst of zero. To reject every request, set the rate to zero.
    #[error("burst of zero rejects every request")]
    BurstZero,
    /// A bucket that starts with less than it can hold.
    #[error("initial burst of {initial_burst} is below the capacity of {capacity}")]
    InitialBurstBelowCapacity {
        /// Requested initial burst.
        initial_burst: u32,
        /// Capacity beside it.
        capacity: u32,
    },
}
