//! Allocation like [`super::even`], over-provisioned far from the limit: slots are divided by nodes
//! x utilization^factor instead of by nodes. It overshoots when a spike comes from low utilization
//! and spreads evenly.

use crate::rules::Rules;
use crate::statistics::Utilization;

/// Returns how many of `slots` one node may use: slots / (nodes x utilization^factor). The divisor
/// is at least 1, so no node gets more than all slots.
#[must_use]
#[expect(
    clippy::float_arithmetic,
    reason = "the one power function; libm computes it alike on all platforms"
)]
pub fn per_node(slots: u32, nodes: u32, utilization: Utilization, rules: &Rules) -> u32 {
    let used = f64::from(utilization.used) / f64::from(utilization.limit.max(1));
    let factor = f64::from(rules.curve_factor.millionths) / 1e6;
    let divisor = (f64::from(nodes.max(1)) * libm::pow(used, factor)).max(1.0);
    let part = libm::floor(f64::from(slots) / divisor);
    // In range: the divisor is at least 1, so that 0 <= part <= slots.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 <= part <= slots, and slots is a u32"
    )]
    let part = part as u32;
    part
}
