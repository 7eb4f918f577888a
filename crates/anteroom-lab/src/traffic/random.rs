//! Calls that know nothing of each other: a Poisson process for each client.

use super::{BEGIN, Call, Demand, TooManyCallsError, Traffic};
use crate::dice::{Dice, Purpose};

/// Calls at random, evenly on average.
///
/// # Errors
///
/// [`TooManyCallsError`].
pub fn random(demand: &Demand) -> Result<Traffic, TooManyCallsError> {
    demand.check()?;
    let mut dice = Dice::new(demand.seed, Purpose::Traffic);
    let mut calls = Vec::new();
    if let Some(apart) = demand.apart() {
        for client in 0..demand.clients {
            let mut at = BEGIN + dice.exponential(apart);
            while at < demand.end() {
                calls.push(Call { at, client });
                at = at + dice.exponential(apart).max(super::MicroSpan(1));
            }
        }
    }
    Ok(demand.made("random", calls))
}
