//! Calls that know nothing of each other: a Poisson process for each client.

use super::poisson::{self, Apart};
use super::{BEGIN, Demand, TooManyCallsError, Traffic};
use crate::lab::rng::{Dice, Purpose};

/// Calls at random, evenly on average.
///
/// # Errors
///
/// [`TooManyCallsError`].
pub fn random(demand: &Demand) -> Result<Traffic, TooManyCallsError> {
    demand.check()?;
    let mut rng = Dice::new(demand.seed, Purpose::Traffic);
    let mut calls = Vec::new();
    if let Some(apart) = Apart::of(demand.rate) {
        for client in 0..demand.clients {
            poisson::push(&mut calls, &mut rng, client, apart, (BEGIN, demand.end()));
        }
    }
    Ok(demand.made("random", calls))
}
