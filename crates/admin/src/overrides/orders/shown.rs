//! What holds for the clients of each limit, and which of it comes from the file? The body of
//! `GET /limits`.

use std::collections::BTreeSet;

use anteroom_config::{Client, LimitConfig, LiveValues, policy_values};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::{Fits, LimitOverrides};

/// What an answer may take at most, about: the file may have ten thousand clients for each of two
/// hundred limits.
const BYTES_MAX: usize = 2 << 20;
/// What one client takes beside its name, about.
const ROW_BYTES: usize = 300;

const OPERATOR: &str = "operator";
const FILE: &str = "file";

/// What holds in all limits that were asked about.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownLimits {
    /// How often an operator said something about a client of any limit.
    pub version: u64,
    /// The limits in the order of the file, then those that only operators know.
    pub limits: Vec<ShownLimit>,
    /// Clients of the file's that are left off here, because there are too many.
    pub left_off: usize,
}

/// One limit.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownLimit {
    /// Its name.
    pub limit: String,
    /// What holds for whoever has no settings of its own; `null`: the file has no such limit.
    pub values: Option<LiveValues>,
    /// Clients with settings of their own; first those of operators.
    pub overrides: Vec<ShownOverride>,
}

/// One client with settings of its own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownOverride {
    /// Who, part by part.
    pub client: Client,
    /// What holds; `null` if the file has no such limit.
    pub values: Option<LiveValues>,
    /// `operator` or `file`: who said so.
    pub from: String,
    /// What the file says about this client alone.
    pub file: Option<LiveValues>,
    /// Why what an operator said does not hold; nothing if it does.
    pub problems: Vec<String>,
}

impl ShownOverride {
    /// Whether an operator set it.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.from == OPERATOR
    }
}

impl ShownLimits {
    /// What holds where the file says `file` and stores can count what `fits`, in one limit or in
    /// all.
    pub(crate) fn of(
        orders: &LimitOverrides,
        file: &[LimitConfig],
        fits: Fits<'_>,
        only: Option<&str>,
    ) -> Self {
        let is_asked = |name: &str| only.is_none_or(|only| only == name);
        let mut shown = Self {
            version: orders.version,
            ..Self::default()
        };
        let mut bytes_left = BYTES_MAX;
        for limit in file.iter().filter(|limit| is_asked(limit.name.as_str())) {
            let (mut overrides, live) = live_of(orders, limit, fits);
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
        let said = orders.overrides.iter().map(|said| said.limit.as_str());
        let gone: BTreeSet<&str> = said
            .filter(|name| is_asked(name) && !file.iter().any(|it| it.name.as_str() == *name))
            .collect();
        shown
            .limits
            .extend(gone.into_iter().map(|name| gone_limit(orders, name)));
        shown
    }
}

/// What operators said about clients of a limit, and of which of them it holds.
fn live_of(
    orders: &LimitOverrides,
    limit: &LimitConfig,
    fits: Fits<'_>,
) -> (Vec<ShownOverride>, BTreeSet<Client>) {
    let mut live = BTreeSet::new();
    let said = orders.overrides.iter();
    let said = said.filter(|said| said.limit == limit.name.as_str());
    let shown = said.map(|said| {
        let read = said.read(limit, fits);
        let problems = read.as_ref().err().map(|problems| &problems.0[..]);
        let problems = problems.unwrap_or_default().iter();
        let named = limit.client_named(&said.client.0).ok();
        let in_file = named
            .as_ref()
            .and_then(|client| limit.overrides.get(client));
        let held = read.as_ref().ok().map(|(_, policy)| policy);
        if let Ok((client, _)) = &read {
            live.insert(client.clone());
        }
        ShownOverride {
            client: said.client.clone(),
            values: Some(policy_values(held.or(in_file).unwrap_or(&limit.policy))),
            from: OPERATOR.to_owned(),
            file: in_file.map(policy_values),
            problems: problems.map(ToString::to_string).collect(),
        }
    });
    (shown.collect(), live)
}

fn gone_limit(orders: &LimitOverrides, name: &str) -> ShownLimit {
    let said = orders.overrides.iter().filter(|said| said.limit == name);
    let overrides = said.map(|said| ShownOverride {
        client: said.client.clone(),
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

/// Values as a command would have them: `limit=500/m burst=20`.
#[must_use]
pub fn in_words(values: &LiveValues) -> String {
    let word = |(key, value): (&String, &Value)| match value {
        Value::String(text) => format!("{key}={text}"),
        other => format!("{key}={other}"),
    };
    let words: Vec<String> = values.iter().map(word).collect();
    words.join(" ")
}
