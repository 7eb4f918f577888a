//! Comparison of algorithms over stores: its inputs, its runs, and the pairs left out.

use anteroom_limit::policy::Policy;
use anteroom_limit::registry::AlgorithmKind;

use crate::lab::input::Input;
use crate::lab::outcome::Outcome;
use crate::lab::run::StoreKind;
use crate::lab::traffic::Traffic;

/// Run of one algorithm over one store.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) algorithm: AlgorithmKind,
    pub(crate) store: StoreKind,
    pub(crate) policy: Policy,
    /// Most requests that this algorithm over this store allows in any window.
    pub(crate) most: u64,
    pub(crate) outcome: Outcome,
}

/// Inputs and results of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) input: Input,
    pub(crate) traffic: Traffic,
    pub(crate) runs: Vec<Run>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// Algorithm that no flag names and that cannot be compared over a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LeftOut {
    pub(crate) algorithm: AlgorithmKind,
    pub(crate) store: StoreKind,
    pub(crate) reason: String,
}
