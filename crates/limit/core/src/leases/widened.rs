//! Widened limit: leases are granted by it, so that what nodes spend keeps the promised limit.
//!
//! A request leased at `g` is spent in `[g, g + ttl)`. So whatever is spent in one window was
//! leased in an interval as long as a window and a lease. In that interval the widened limit must
//! allow no more than the promised limit does in a window.
//!
//! - Windows, logs and sub-windows: the same requests in a window that is longer by one lease.
//! - Token bucket and generic cell rate: the same rate with a burst that is smaller by what the
//!   rate gives during a lease. A request that costs more than that burst is never allowed.
//! - Fixed windows: unchanged. A lease ends with its window, so each window keeps its own requests.
//! - Leaky bucket: no leases, as all requests need positions in one queue.

use crate::exact::{div_ceil, product, saturate_u32};
use crate::policy::Policy;
use crate::rate::Rate;
use crate::registry::LeaseRule;
use crate::settings::SettingsError;
use crate::time::{DurationUs, TimestampUs};

/// Shortest lease. A shorter one would end before the reply of a store that is not nearby.
pub const TTL_SHORTEST: DurationUs = DurationUs(200_000);

/// Longest lease. For this long, nodes may exceed a limit that was lowered, and a store that was
/// found empty waits for nodes that know an older epoch.
pub const TTL_LONGEST: DurationUs = DurationUs::from_secs(5);

/// Default part of the window that a lease lasts: one twentieth. At saturation, that part of the
/// promised requests is not allowed.
pub const PART_OF_WINDOW: u64 = 20;

/// Limit with leases.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeasedLimit {
    promised: Policy,
    widened: Policy,
    ttl: DurationUs,
}

/// Error of a limit that cannot have leases.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotLeasableError {
    /// All requests need positions in one queue, which only one node can assign.
    #[error("leases cannot keep a leaky-bucket: its requests share one queue")]
    LeakyBucket,
    /// Leases are too short or too long.
    #[error("leases of {ttl} are outside {shortest} to {longest}")]
    TtlOutOfRange {
        /// Requested length.
        ttl: DurationUs,
        /// Shortest length.
        shortest: DurationUs,
        /// Longest length; never longer than the window.
        longest: DurationUs,
    },
    /// During a lease the rate gives as much as the burst allows, so that nothing is left to grant.
    #[error("burst of {burst} is not above the {during_lease} requests of a lease of {ttl}")]
    BurstTooSmall {
        /// Burst, or the capacity of the bucket.
        burst: u32,
        /// Requests that the rate gives during a lease.
        during_lease: u32,
        /// Length of the leases.
        ttl: DurationUs,
    },
    /// The widened limit breaks a rule of its algorithm.
    #[error("the limit cannot be widened by a lease")]
    Widened(#[source] SettingsError),
}

impl LeasedLimit {
    /// Creates a limit with leases of the default length: a twentieth of the window, from
    /// [`TTL_SHORTEST`] to [`TTL_LONGEST`], and no longer than half a burst takes to refill.
    ///
    /// # Errors
    ///
    /// [`NotLeasableError::LeakyBucket`], [`NotLeasableError::BurstTooSmall`].
    pub fn new(policy: Policy) -> Result<Self, NotLeasableError> {
        Self::with_part(policy, PART_OF_WINDOW)
    }

    /// Creates a limit like [`new`](Self::new), with leases of one `part`-th of the window.
    ///
    /// # Errors
    ///
    /// Those of [`Self::new`].
    pub fn with_part(policy: Policy, part: u64) -> Result<Self, NotLeasableError> {
        let rate = policy.rate();
        let mut ttl = rate.window().0 / part.max(1);
        // Only for algorithms with a burst as a setting.
        if let Some(burst) = policy.settings().burst {
            let calls = u64::from(rate.requests()).max(1);
            let takes = product(u64::from(burst / 2), rate.window().0) / u128::from(calls);
            ttl = ttl.min(u64::try_from(takes).unwrap_or(u64::MAX));
        }
        Self::with_ttl(policy, DurationUs(ttl.clamp(TTL_SHORTEST.0, TTL_LONGEST.0)))
    }

    /// Creates a limit with leases of `ttl`. Longer leases tolerate slower stores, but more of the
    /// limit stays unused: see the module.
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

    /// Returns the limit that everything spent keeps.
    #[must_use]
    pub fn promised(&self) -> &Policy {
        &self.promised
    }

    /// Returns the widened limit, by which leases are granted.
    #[must_use]
    pub fn widened(&self) -> &Policy {
        &self.widened
    }

    /// Returns the length of a lease.
    #[must_use]
    pub fn ttl(&self) -> DurationUs {
        self.ttl
    }

    /// Returns the least time for which a record is kept after the last grant: a window and a
    /// lease, even if the limit is fully free earlier. A node with another limit would otherwise
    /// find no record, and grant as to a new client.
    #[must_use]
    pub fn kept_for(&self) -> DurationUs {
        let kept = self.promised.rate().window() + self.ttl;
        kept.max(self.widened.newcomer_after())
    }

    /// Returns the length of a lease that is granted at `at`.
    pub(super) fn ttl_at(&self, at: TimestampUs) -> DurationUs {
        match self.promised.resets_after(at) {
            Some(left) => self.ttl.min(left),
            None => self.ttl,
        }
    }
}

fn widen(policy: Policy, ttl: DurationUs) -> Result<Policy, NotLeasableError> {
    let (mut rate, mut settings) = (policy.rate(), policy.settings());
    match policy.row().lease_rule {
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
    let parts = product(u64::from(rate.requests()), ttl.0);
    let during_lease = saturate_u32(div_ceil(parts, rate.window().0));
    let left = burst.checked_sub(during_lease).filter(|left| *left > 0);
    left.ok_or(NotLeasableError::BurstTooSmall {
        burst,
        during_lease,
        ttl,
    })
}

#[cfg(test)]
mod tests;
