//! The record: what operators said about clients of limits, and what holds by it.

use anteroom_config::overrides::{Entry, Record};
use anteroom_config::{Client, LimitConfig, LiveValues, Owner, Problem, Problems};
use anteroom_limit::policy::Policy;
use serde::{Deserialize, Serialize};

/// Says why a limit cannot be counted by these settings where it is counted, in the store's words.
/// What a store is asked at the start it must be asked of each order too: one that it cannot count
/// would keep all others from holding.
pub type Fits<'f> = &'f (dyn Fn(&LimitConfig, &Policy) -> Result<(), String> + Send + Sync);

/// What a client is called in an override.
pub(super) const KEY: &str = "key";
/// How much it may call, in an override.
const LIMIT: &str = "limit";

/// What operators said about clients of limits.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitOverrides {
    /// How often something was said.
    pub version: u64,
    /// Settings that win over the file, by limit and client.
    #[serde(default)]
    pub overrides: Vec<LiveOverride>,
    /// The newest change.
    #[serde(default)]
    pub newest: Option<Entry>,
}

/// What holds for one client of one limit.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveOverride {
    /// Name of the limit, which may be gone from the file.
    pub limit: String,
    /// Who.
    pub client: Client,
    /// What was said: `limit` and what else the algorithm has, as in the file.
    pub values: LiveValues,
}

/// What holds, and what does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    /// The file's limits, with what operators said.
    pub(crate) limits: Vec<LimitConfig>,
    /// Why some of it does not.
    pub(crate) misfits: Vec<Problem>,
}

impl LiveOverride {
    /// Who is meant and what holds, where the file says `limit`; or why it does not fit the file or
    /// the limit's store any more.
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

/// What is typed about a client, if the limit's store can count it.
pub(super) fn read_fitting(
    limit: &LimitConfig,
    typed: &LiveValues,
    fits: Fits<'_>,
) -> Result<(Client, Policy), Problems> {
    let (client, policy) = limit.read_override(typed)?;
    fits(limit, &policy).map_err(|words| {
        let owner = Owner::Limit(limit.name.to_string());
        Problems(vec![Problem::remark(owner, LIMIT, &words)])
    })?;
    Ok((client, policy))
}

impl LimitOverrides {
    /// What holds, where the file says `file`. What is said about a limit that is not there is
    /// neither used nor wrong: it may come back.
    #[must_use]
    pub(crate) fn applied_to(&self, file: &[LimitConfig], fits: Fits<'_>) -> Applied {
        let mut applied = Applied {
            limits: file.to_vec(),
            misfits: Vec::new(),
        };
        for said in &self.overrides {
            let mut limits = applied.limits.iter_mut();
            let Some(limit) = limits.find(|limit| limit.name.as_str() == said.limit) else {
                continue;
            };
            match said.read(limit, fits) {
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
