//! Independent requests: a Poisson process for each client.

use super::poisson::{self, Apart};
use super::{BEGIN, Demand, TooManyRequestsError, Traffic};
use crate::lab::rng::{LabRng, Purpose};

/// Generates requests at random, evenly on average.
///
/// # Errors
///
/// Returns [`TooManyRequestsError`].
pub fn random(demand: &Demand) -> Result<Traffic, TooManyRequestsError> {
    demand.check()?;
    let mut rng = LabRng::new(demand.seed, Purpose::Traffic);
    let mut requests = Vec::new();
    if let Some(apart) = Apart::of(demand.rate) {
        for client in 0..demand.clients {
            poisson::push(
                &mut requests,
                &mut rng,
                client,
                apart,
                (BEGIN, demand.end()),
            );
        }
    }
    Ok(demand.made("random", requests))
}
