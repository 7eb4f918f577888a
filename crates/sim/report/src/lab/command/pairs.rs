//! Pairs of algorithms and stores that are compared, and the reasons of those that are left out.

use anteroom_limit::policy::Policy;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::Setting;
use anyhow::Context as _;

use super::LimitsOptions;
use crate::lab::algorithm::{Settings, all};
use crate::lab::comparison::LeftOut;
use crate::lab::run::StoreKind;

/// Pairs that are compared, and those that cannot be.
pub(super) struct Pairs {
    pub(super) fit: Vec<(AlgorithmKind, StoreKind, Policy)>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Pairs each algorithm with each store. What a flag names must fit, settings included; of the rest
/// the fitting ones are taken.
pub(super) fn pairs(options: &LimitsOptions, settings: &Settings) -> anyhow::Result<Pairs> {
    let named: Vec<AlgorithmKind> = options
        .algorithm
        .iter()
        .filter_map(|word| AlgorithmKind::named(word))
        .collect();
    let wanted = if named.is_empty() {
        all()
    } else {
        named.clone()
    };
    let (mut fit, mut left_out) = (Vec::new(), Vec::new());
    for word in &options.store {
        let store = StoreKind::of_word(word).context("the flag takes no other word")?;
        for algorithm in wanted.iter().copied() {
            let is_named = !named.is_empty();
            let reason = match settings.policy(algorithm) {
                Ok(policy) => match store.check(&policy) {
                    Ok(()) => {
                        fit.push((algorithm, store, policy));
                        continue;
                    }
                    Err(error) if is_named => {
                        return Err(error).with_context(|| unfit_message(algorithm, store));
                    }
                    Err(error) => error.to_string(),
                },
                Err(error) if is_named || has_named_setting(options, algorithm) => {
                    return Err(error).with_context(|| format!("--algorithm {}", algorithm.name()));
                }
                Err(error) => error.to_string(),
            };
            left_out.push(LeftOut {
                algorithm,
                store,
                reason,
            });
        }
    }
    anyhow::ensure!(
        !fit.is_empty(),
        "no algorithm fits these stores and this limit"
    );
    Ok(Pairs { fit, left_out })
}

/// Whether a flag sets a setting of this algorithm. If that setting is wrong, the command fails
/// rather than leaving the algorithm out.
fn has_named_setting(options: &LimitsOptions, algorithm: AlgorithmKind) -> bool {
    let mut settings = algorithm.row().settings.iter();
    settings.any(|setting| match setting {
        Setting::SubWindows => options.sub_windows.is_some(),
        Setting::Burst => options.burst.is_some(),
        // There is always a queue, and never an initial burst.
        Setting::InitialBurst | Setting::Queue => false,
    })
}

pub(super) fn unfit_message(algorithm: AlgorithmKind, store: StoreKind) -> String {
    format!(
        "--store {} cannot keep {}; choose another store or algorithm",
        store.word(),
        algorithm.name()
    )
}
