//! Record of overrides, and the limits after they apply.

use anteroom_config::overrides::{Entry, Record};
use anteroom_config::{Client, LimitConfig, LiveValues, Owner, Problem, Problems};
use anteroom_limit::policy::Policy;
use serde::{Deserialize, Serialize};

/// Check of whether the store of a limit can count by a policy; the error is the store's text.
/// Every override is checked like the file at start, because one that the store cannot count would
/// keep all others from applying.
pub type Fits<'f> = &'f (dyn Fn(&LimitConfig, &Policy) -> Result<(), String> + Send + Sync);

/// Key of a client in an override.
pub(super) const KEY: &str = "key";
/// Key of the rate in an override.
const LIMIT: &str = "limit";

/// Overrides of clients of limits.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitOverrides {
    /// Number of changes so far.
    pub version: u64,
    /// Overrides, by limit and client.
    #[serde(default)]
    pub overrides: Vec<LiveOverride>,
    /// Newest change.
    #[serde(default)]
    pub newest: Option<Entry>,
}

/// Override of one client of one limit.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveOverride {
    /// Name of the limit, which may be gone from the file.
    pub limit: String,
    /// Client, part by part.
    pub client: Client,
    /// Settings: `limit` and the other keys of the algorithm, as in the file.
    pub values: LiveValues,
}

/// Result of applying overrides to the limits of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    /// Limits of the file, with the overrides that fit.
    pub(crate) limits: Vec<LimitConfig>,
    /// Problems of overrides that do not fit.
    pub(crate) misfits: Vec<Problem>,
}

impl LiveOverride {
    /// Returns the client and its policy under `limit`; or the reasons why the override no longer
    /// fits the file or the limit's store.
    pub(super) fn read(
        &self,
        limit: &LimitConfig,
        fits: Fits<'_>,
    ) -> Result<(Client, Policy), Problems> {
        let mut typed = self.values.clone();
        let texts = self.client.0.clone();
        typed.insert(KEY.to_owned(), texts.into());
        read_fitting(limit, &typed, fits)
    }
}

/// Parses an override, if the limit's store can count it.
pub(super) fn read_fitting(
    limit: &LimitConfig,
    typed: &LiveValues,
    fits: Fits<'_>,
) -> Result<(Client, Policy), Problems> {
    let (client, policy) = limit.read_override(typed)?;
    fits(limit, &policy).map_err(|text| {
        let owner = Owner::Limit(limit.name.to_string());
        Problems(vec![Problem::remark(owner, LIMIT, &text)])
    })?;
    Ok((client, policy))
}

impl LimitOverrides {
    /// Applies the overrides to the limits of a file. An override of a limit that does not exist is
    /// ignored and no error: the limit may come back.
    #[must_use]
    pub(crate) fn applied_to(&self, file: &[LimitConfig], fits: Fits<'_>) -> Applied {
        let mut applied = Applied {
            limits: file.to_vec(),
            misfits: Vec::new(),
        };
        for entry in &self.overrides {
            let mut limits = applied.limits.iter_mut();
            let Some(limit) = limits.find(|limit| limit.name.as_str() == entry.limit) else {
                continue;
            };
            match entry.read(limit, fits) {
                Ok((client, policy)) => {
                    limit.overrides.insert(client, policy);
                }
                Err(problems) => applied.misfits.extend(problems.0),
            }
        }
        applied
    }
}

impl Record for LimitOverrides {
    fn version(&self) -> u64 {
        self.version
    }

    fn newest(&self) -> Option<&Entry> {
        self.newest.as_ref()
    }
}
