//! Values in force for the clients of each limit, and their sources: the body of `GET
//! /api/v1/limits`.

use std::collections::BTreeSet;

use anteroom_config::{Client, LimitConfig, LiveValues, policy_values};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::{Fits, LimitOverrides};

/// Approximate maximum size of a response. The file may have ten thousand clients for each of two
/// hundred limits.
const BYTES_MAX: usize = 2 << 20;
/// Approximate size of one client without its name.
const ROW_BYTES: usize = 300;

const OPERATOR: &str = "operator";
const FILE: &str = "file";

/// Values in force in the requested limits.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownLimits {
    /// Number of changes by operators, in all limits.
    pub version: u64,
    /// Limits in the order of the file, then those with overrides only.
    pub limits: Vec<ShownLimit>,
    /// Number of clients of the file that are left off, because there are too many.
    pub left_off: usize,
}

/// Values in force in one limit.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownLimit {
    /// Name of the limit.
    pub limit: String,
    /// Values for clients without settings of their own; `null` if the file has no such limit.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub values: Option<LiveValues>,
    /// Clients with settings of their own; those of operators first.
    pub overrides: Vec<ShownOverride>,
}

/// Client with settings of its own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownOverride {
    /// Client, part by part.
    pub client: Client,
    /// Values in force; `null` if the file has no such limit.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub values: Option<LiveValues>,
    /// Source of the values: `operator` or `file`.
    pub from: String,
    /// Values that the file sets for this client alone.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub file: Option<LiveValues>,
    /// Reasons why the override does not apply; empty if it does.
    pub problems: Vec<String>,
}

impl ShownOverride {
    /// Whether an operator set the values.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.from == OPERATOR
    }
}

impl ShownLimits {
    /// Returns the values in force in one limit or in all, for the limits of `file` and stores that
    /// can count what `fits`.
    pub(crate) fn of(
        record: &LimitOverrides,
        file: &[LimitConfig],
        fits: Fits<'_>,
        only: Option<&str>,
    ) -> Self {
        let is_requested = |name: &str| only.is_none_or(|only| only == name);
        let mut shown = Self {
            version: record.version,
            ..Self::default()
        };
        let mut bytes_left = BYTES_MAX;
        for limit in file
            .iter()
            .filter(|limit| is_requested(limit.name.as_str()))
        {
            let (mut overrides, live) = live_of(record, limit, fits);
            for (client, policy) in &limit.overrides {
                if live.contains(client) {
                    continue;
                }
                let text: usize = client.0.iter().map(String::len).sum();
                let Some(left) = bytes_left.checked_sub(text + ROW_BYTES) else {
                    shown.left_off += 1;
                    continue;
                };
                bytes_left = left;
                overrides.push(ShownOverride {
                    client: client.clone(),
                    values: Some(policy_values(policy)),
                    from: FILE.to_owned(),
                    file: Some(policy_values(policy)),
                    problems: Vec::new(),
                });
            }
            shown.limits.push(ShownLimit {
                limit: limit.name.to_string(),
                values: Some(limit.values()),
                overrides,
            });
        }
        let names = record.overrides.iter().map(|entry| entry.limit.as_str());
        let is_in_file = |name: &str| file.iter().any(|limit| limit.name.as_str() == name);
        let gone: BTreeSet<&str> = names
            .filter(|name| is_requested(name) && !is_in_file(name))
            .collect();
        shown
            .limits
            .extend(gone.into_iter().map(|name| gone_limit(record, name)));
        shown
    }
}

/// Returns the overrides of a limit, and the clients of those that apply.
fn live_of(
    record: &LimitOverrides,
    limit: &LimitConfig,
    fits: Fits<'_>,
) -> (Vec<ShownOverride>, BTreeSet<Client>) {
    let mut live = BTreeSet::new();
    let entries = record.overrides.iter();
    let entries = entries.filter(|entry| entry.limit == limit.name.as_str());
    let shown = entries.map(|entry| {
        let read = entry.read(limit, fits);
        let problems = read.as_ref().err().map(|problems| &problems.0[..]);
        let problems = problems.unwrap_or_default().iter();
        let named = limit.client_named(&entry.client.0).ok();
        let in_file = named
            .as_ref()
            .and_then(|client| limit.overrides.get(client));
        let applied = read.as_ref().ok().map(|(_, policy)| policy);
        if let Ok((client, _)) = &read {
            live.insert(client.clone());
        }
        ShownOverride {
            client: entry.client.clone(),
            values: Some(policy_values(applied.or(in_file).unwrap_or(&limit.policy))),
            from: OPERATOR.to_owned(),
            file: in_file.map(policy_values),
            problems: problems.map(ToString::to_string).collect(),
        }
    });
    (shown.collect(), live)
}

fn gone_limit(record: &LimitOverrides, name: &str) -> ShownLimit {
    let entries = record.overrides.iter().filter(|entry| entry.limit == name);
    let overrides = entries.map(|entry| ShownOverride {
        client: entry.client.clone(),
        values: None,
        from: OPERATOR.to_owned(),
        file: None,
        problems: vec!["the file has no limit of this name".to_owned()],
    });
    ShownLimit {
        limit: name.to_owned(),
        values: None,
        overrides: overrides.collect(),
    }
}

/// Formats values as a command takes them: `limit=500/m burst=20`.
#[must_use]
pub fn in_words(values: &LiveValues) -> String {
    let word = |(key, value): (&String, &Value)| match value {
        Value::String(text) => format!("{key}={text}"),
        other => format!("{key}={other}"),
    };
    let words: Vec<String> = values.iter().map(word).collect();
    words.join(" ")
}
