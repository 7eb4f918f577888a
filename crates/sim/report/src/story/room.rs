//! Room of the article's example: its data centers, nodes and rules.

use anteroom_room::id::DataCenterId;
use anteroom_room::rules::{CurveFactor, Limits, Rules};
use anteroom_room::time::Timestamp;
/// San Jose, with 20 admissions in the minute before.
pub(super) const SAN_JOSE: DataCenterId = DataCenterId(1);
/// London, with 30 admissions.
pub(super) const LONDON: DataCenterId = DataCenterId(2);
/// Delhi, without admissions.
pub(super) const DELHI: DataCenterId = DataCenterId(3);
/// 2023-09-11T11:45:54Z.
pub(super) const AT: Timestamp = Timestamp(1_694_432_754_000);
/// Limits of the article.
pub(super) const LIMITS: Limits = Limits {
    total_active_users: 200,
    new_users_per_minute: 200,
};
/// Nodes in all, in San Jose, in Delhi.
pub(super) const NODES: [u32; 3] = [10, 3, 1];
/// Returns the article's rules, with an exponent for `curve`.
pub(super) fn rules(exponent_millionths: u32) -> Rules {
    Rules {
        limits: LIMITS,
        curve_factor: CurveFactor {
            millionths: exponent_millionths,
        },
        ..Rules::default()
    }
}

/// The exponent with which 2 nodes get 8 of 10 slots each at 10 %, in millionths: the article gives
/// the 8 and not the exponent.
pub(super) fn exponent_millionths() -> u32 {
    // 10 / (2 x 0.1^factor) = 8, so 0.1^factor = 10 / (2 x 8).
    let exponent = libm::log(10.0 / (2.0 * 8.0)) / libm::log(0.1);
    u32::try_from(crate::chart::number::rounded(exponent * 1e6)).unwrap_or(0)
}
