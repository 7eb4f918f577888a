//! Requests in bursts: each client is loud for a while, then quiet for a while.

use anteroom_limit::time::DurationUs;

use super::poisson::{self, Apart};
use super::{BEGIN, Demand, TooManyRequestsError, Traffic};
use crate::lab::rng::{LabRng, Purpose};

/// Tenths of the mean rate in a loud phase; a quiet one has the rest of twenty.
const LOUD_TENTHS: u64 = 19;
/// Mean number of phases in a window: long enough to fill a part of it, short enough that both
/// kinds meet in one window.
const PHASES: u64 = 3;

/// Generates requests in bursts.
///
/// # Errors
///
/// Returns [`TooManyRequestsError`].
pub fn bursty(demand: &Demand) -> Result<Traffic, TooManyRequestsError> {
    demand.check()?;
    let mut rng = LabRng::new(demand.seed, Purpose::Traffic);
    let phase = DurationUs(demand.rate.window().0 / PHASES);
    let mut requests = Vec::new();
    if let Some(apart) = Apart::of(demand.rate) {
        for client in 0..demand.clients {
            let (mut from, mut is_loud) = (BEGIN, false);
            while from < demand.end() {
                let to = (from + rng.exponential(phase)).min(demand.end());
                let tenths = if is_loud {
                    LOUD_TENTHS
                } else {
                    20 - LOUD_TENTHS
                };
                let apart = apart.at_tenths(tenths);
                poisson::push(&mut requests, &mut rng, client, apart, (from, to));
                from = to + DurationUs(1);
                is_loud = !is_loud;
            }
        }
    }
    Ok(demand.made("bursty", requests))
}
