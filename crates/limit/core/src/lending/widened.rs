//! By which limit is lent, so that what is spent keeps the one that was promised?
//!
//! A call that was lent at `g` is spent in `[g, g + ttl)`. So what is spent in a window comes from
//! what was lent in a stretch as long as the window and a lease together, and the widened limit
//! must admit in that stretch no more than the promise does in a window.
//!
//! - Windows, logs and sub-windows: the same calls in a window that is longer by a lease.
//! - Token bucket and generic cell rate: the same rate with a burst that is smaller by what the
//!   rate gives during a lease. A call that counts more than that burst is never admitted any more.
//! - Fixed windows: the same. A lease ends with its window, so each window keeps what is its.
//! - Leaky bucket: cannot be lent, for each call needs its own place in one line.

use crate::exact::{calls, div_ceil, product};
use crate::policy::Policy;
use crate::rate::Rate;
use crate::registry::LeaseRule;
use crate::settings::SettingsError;
use crate::time::{DurationUs, TimestampUs};

/// The shortest lease. Shorter ones would be over before the answer has come from a store that is
/// not next door.
pub const TTL_SHORTEST: DurationUs = DurationUs(200_000);

/// The longest lease. It is how long a limit that was lowered is still exceeded, and how long a
/// store that was found empty waits for somebody who remembers.
pub const TTL_LONGEST: DurationUs = DurationUs::from_secs(5);

/// A lease is usually such a part of the window: that much of what was promised is not admitted at
/// saturation.
pub const PART_OF_WINDOW: u64 = 20;

/// A limit that is lent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeasedLimit {
    promised: Policy,
    widened: Policy,
    ttl: DurationUs,
}

/// Why a limit cannot be lent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotLeasableError {
    /// Every call needs its own place in one line, which only one place can give.
    #[error("leases cannot keep a leaky-bucket: its calls stand in one line")]
    LeakyBucket,
    /// Leases are too short or too long.
    #[error("leases of {ttl} are not from {shortest} to {longest}")]
    TtlOutOfRange {
        /// The length that was asked for.
        ttl: DurationUs,
        /// The shortest one.
        shortest: DurationUs,
        /// The longest one; never longer than the window.
        longest: DurationUs,
    },
    /// While a lease runs the rate gives as much as the burst allows, and nothing would be left to
    /// lend.
    #[error("burst of {burst} is not above the {during_lease} calls of a lease of {ttl}")]
    BurstTooSmall {
        /// The burst, or the capacity of the bucket.
        burst: u32,
        /// What the rate gives during a lease.
        during_lease: u32,
        /// The length of the leases.
        ttl: DurationUs,
    },
    /// The widened limit breaks a rule of its algorithm.
    #[error("the limit cannot be widened by a lease")]
    Widened(#[source] SettingsError),
}

impl LeasedLimit {
    /// With leases of the usual length: a twentieth of the window, from [`TTL_SHORTEST`] to
    /// [`TTL_LONGEST`], and no longer than half of a burst takes to come back.
    ///
    /// # Errors
    ///
    /// [`NotLeasableError::LeakyBucket`], [`NotLeasableError::BurstTooSmall`].
    pub fn new(policy: Policy) -> Result<Self, NotLeasableError> {
        Self::with_part(policy, PART_OF_WINDOW)
    }

    /// The same with leases that are such a part of the window: 20 for a twentieth.
    ///
    /// # Errors
    ///
    /// Those of [`Self::new`].
    pub fn with_part(policy: Policy, part: u64) -> Result<Self, NotLeasableError> {
        let rate = policy.rate();
        let mut ttl = rate.window().0 / part.max(1);
        // Where it is a setting of its own.
        if let Some(burst) = policy.settings().burst {
            let calls = u64::from(rate.calls()).max(1);
            let takes = product(u64::from(burst / 2), rate.window().0) / u128::from(calls);
            ttl = ttl.min(u64::try_from(takes).unwrap_or(u64::MAX));
        }
        Self::with_ttl(policy, DurationUs(ttl.clamp(TTL_SHORTEST.0, TTL_LONGEST.0)))
    }

    /// With leases that run for `ttl`. Longer ones bear slower stores, and cost more: see the
    /// module.
    ///
    /// # Errors
    ///
    /// [`NotLeasableError`].
    pub fn with_ttl(policy: Policy, ttl: DurationUs) -> Result<Self, NotLeasableError> {
        let (shortest, longest) = (TTL_SHORTEST, TTL_LONGEST.min(policy.rate().window()));
        if ttl < shortest || ttl > longest {
            return Err(NotLeasableError::TtlOutOfRange {
                ttl,
                shortest,
                longest,
            });
        }
        let widened = widen(policy, ttl)?;
        Ok(Self {
            promised: policy,
            widened,
            ttl,
        })
    }

    /// What is promised of all that is spent.
    #[must_use]
    pub fn promised(&self) -> &Policy {
        &self.promised
    }

    /// By what is lent.
    #[must_use]
    pub fn widened(&self) -> &Policy {
        &self.widened
    }

    /// How long a lease runs.
    #[must_use]
    pub fn ttl(&self) -> DurationUs {
        self.ttl
    }

    /// For how long a record is kept at least after the last charge: a window and a lease, even if
    /// the limit is wholly free by then. A node that goes by another limit would find nothing, and
    /// lend as to one who never called.
    #[must_use]
    pub fn kept_for(&self) -> DurationUs {
        let kept = self.promised.rate().window() + self.ttl;
        kept.max(self.widened.newcomer_after())
    }

    /// How long a lease runs that is given at `at`.
    pub(super) fn ttl_at(&self, at: TimestampUs) -> DurationUs {
        match self.promised.begins_anew_after(at) {
            Some(left) => self.ttl.min(left),
            None => self.ttl,
        }
    }
}

fn widen(policy: Policy, ttl: DurationUs) -> Result<Policy, NotLeasableError> {
    let (mut rate, mut settings) = (policy.rate(), policy.settings());
    match policy.row().lent {
        LeaseRule::Never => return Err(NotLeasableError::LeakyBucket),
        LeaseRule::EndsWithWindow => return Ok(policy),
        LeaseRule::LongerWindow => {
            rate = rate.with_longer_window(ttl, settings.sub_windows.unwrap_or(1));
        }
        LeaseRule::SmallerBurst => {
            for (setting, burst) in policy.each_setting() {
                settings.set(setting, smaller_burst(rate, burst, ttl)?);
            }
        }
    }
    let widened = policy.kind().build(rate, &settings);
    widened.map_err(NotLeasableError::Widened)
}

fn smaller_burst(rate: Rate, burst: u32, ttl: DurationUs) -> Result<u32, NotLeasableError> {
    let parts = product(u64::from(rate.calls()), ttl.0);
    let during_lease = calls(div_ceil(parts, rate.window().0));
    let left = burst.checked_sub(during_lease).filter(|left| *left > 0);
    left.ok_or(NotLeasableError::BurstTooSmall {
        burst,
        during_lease,
        ttl,
    })
}

#[cfg(test)]
mod tests;
