//! Commands on the clients of a limit, and their effect on the record.
//!
//! A pure function of the record, the file and the command. All mistakes are reported together, and
//! nothing is changed then.

use anteroom_config::overrides::{Actor, Change, Entry};
use anteroom_config::{
    Client, LimitConfig, LimitName, LimitStore, LiveValues, Owner, Problem, Problems, policy_values,
};
use anteroom_room::time::Timestamp;
use serde_json::Value;

use super::record::{Fits, KEY, LimitOverrides, LiveOverride, read_fitting};
use super::shown::in_words;

/// Maximum number of overrides, in all limits together. Each node reads the record every few
/// seconds. More overrides belong in the file, which takes ten thousand per limit.
pub(super) const LIVE_MAX: usize = 1_000;
/// Maximum bytes of the overrides: four times as many as a thousand clients with names of usual
/// length take.
const BYTES_MAX: usize = 256 * 1_024;

/// Command on one client, or on all clients of limits with leases.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LimitCommand {
    /// Sets an override, in place of the file's settings and of an earlier override.
    Set {
        /// Name of the limit.
        limit: LimitName,
        /// Client and settings, as one of the file's `overrides`.
        typed: LiveValues,
    },
    /// Removes an override.
    Unset {
        /// Name of the limit.
        limit: LimitName,
        /// Client of the override.
        client: Client,
    },
    /// Assumes that no client has used leased requests. The record changes only by the audit entry.
    AssumeEmpty,
}

/// Error of a command on a limit.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectedCommand {
    /// Unknown limit.
    #[error("no limit has this name")]
    NoLimit {
        /// Names of the existing limits.
        limits: Vec<String>,
    },
    /// The command is not allowed.
    #[error("command not allowed")]
    NotAllowed(#[source] Problems),
    /// Reset of leases where no limit has any.
    #[error("no limit has store = \"leases\"; the command has no effect on limits of other stores")]
    NoLeases,
    /// The store of the limit is unavailable.
    #[error("the store of this limit is unavailable")]
    StoreUnavailable,
}

impl LimitCommand {
    /// Returns the limit of the command; `None` if all with leases.
    #[must_use]
    pub fn limit(&self) -> Option<&LimitName> {
        match self {
            Self::Set { limit, .. } | Self::Unset { limit, .. } => Some(limit),
            Self::AssumeEmpty => None,
        }
    }
}

impl LimitOverrides {
    /// Returns the record after `command`. `file` has the limits of the file, `fits` checks the
    /// stores, and `now` is the wall clock.
    ///
    /// # Errors
    ///
    /// [`RejectedCommand`] with every mistake; nothing is changed then.
    pub fn after(
        &self,
        command: &LimitCommand,
        file: &[LimitConfig],
        fits: Fits<'_>,
        who: &Actor,
        now: Timestamp,
    ) -> Result<Self, RejectedCommand> {
        let mut next = self.clone();
        let limit_of = |name: &LimitName| file.iter().find(|limit| limit.name == *name);
        let (name, limit, client, new_values) = match command {
            LimitCommand::Set { limit: name, typed } => {
                let limit = limit_of(name).ok_or_else(|| no_limit(file))?;
                let (client, new_values) = next.set(limit, typed, fits)?;
                (name, Some(limit), client, new_values)
            }
            LimitCommand::Unset {
                limit: name,
                client,
            } => {
                let limit = limit_of(name);
                (name, limit, next.unset(name, limit, client, file)?, None)
            }
            LimitCommand::AssumeEmpty => {
                if leased(file).next().is_none() {
                    return Err(RejectedCommand::NoLeases);
                }
                let what = "limits assume-empty".to_owned();
                next.note(Entry::following(self, who, now, what, Vec::new()));
                return Ok(next);
            }
        };
        let shown = redacted(limit, &client);
        let verb = if new_values.is_some() { "set" } else { "unset" };
        let values = new_values.map(|values| format!(" {}", in_words(&values)));
        let change = Change::new(
            format!("{name} {shown}"),
            self.in_force(limit, &client, fits),
            next.in_force(limit, &client, fits),
        );
        let what = format!("limits {verb} {name} {shown}{}", values.unwrap_or_default());
        next.note(Entry::following(self, who, now, what, vec![change]));
        Ok(next)
    }

    fn note(&mut self, entry: Entry) {
        self.version = entry.version;
        self.newest = Some(entry);
    }

    fn set(
        &mut self,
        limit: &LimitConfig,
        typed: &LiveValues,
        fits: Fits<'_>,
    ) -> Result<(Client, Option<LiveValues>), RejectedCommand> {
        let (client, _) = read_fitting(limit, typed, fits).map_err(RejectedCommand::NotAllowed)?;
        let mut values = typed.clone();
        values.remove(KEY);
        self.remove(limit.name.as_str(), Some(limit), &client);
        self.overrides.push(LiveOverride {
            limit: limit.name.to_string(),
            client: client.clone(),
            values: values.clone(),
        });
        // Sorted, so that equal overrides give equal records.
        self.overrides
            .sort_by(|one, other| (&one.limit, &one.client).cmp(&(&other.limit, &other.client)));
        let rejected = |text: String| {
            let problems = vec![key_problem(limit.name.as_str(), &text)];
            Err(RejectedCommand::NotAllowed(Problems(problems)))
        };
        if self.overrides.len() > LIVE_MAX {
            return rejected(format!(
                "{LIVE_MAX} clients have overrides already, which is the maximum; unset some, or \
                 write them into the file"
            ));
        }
        let bytes = serde_json::to_vec(&self.overrides).map_or(0, |text| text.len());
        if bytes > BYTES_MAX {
            return rejected(format!(
                "{bytes} bytes of overrides, where {BYTES_MAX} are allowed; unset some, or write \
                 them into the file"
            ));
        }
        Ok((client, Some(values)))
    }

    /// Removes an override, even of a limit that is no longer in the file: then the client is the
    /// one in the record.
    fn unset(
        &mut self,
        name: &LimitName,
        limit: Option<&LimitConfig>,
        client: &Client,
        file: &[LimitConfig],
    ) -> Result<Client, RejectedCommand> {
        let is_known = self
            .overrides
            .iter()
            .any(|known| known.limit == name.as_str());
        if limit.is_none() && !is_known {
            return Err(no_limit(file));
        }
        if self.remove(name.as_str(), limit, client) {
            return Ok(client.clone());
        }
        let named = limit.map(|limit| limit.client_named(&client.0));
        let named = named.transpose().map_err(RejectedCommand::NotAllowed)?;
        let is_in_file = limit.zip(named.as_ref());
        let is_in_file =
            is_in_file.is_some_and(|(limit, named)| limit.overrides.contains_key(named));
        let text = if is_in_file {
            "only the file has settings of this client; change them there and send SIGHUP"
        } else {
            "this client has no settings of its own; `anteroom limits list` shows those that have"
        };
        let problems = vec![key_problem(name.as_str(), text)];
        Err(RejectedCommand::NotAllowed(Problems(problems)))
    }

    /// Removes the override of a client in any spelling. Returns whether there was one.
    fn remove(&mut self, name: &str, limit: Option<&LimitConfig>, client: &Client) -> bool {
        let named = limit.and_then(|limit| limit.client_named(&client.0).ok());
        let count = self.overrides.len();
        self.overrides.retain(|known| {
            // The file may have had another key, or another prefix, when the override was set.
            let was = limit.and_then(|limit| limit.client_named(&known.client.0).ok());
            let is_same = known.client == *client || (was.is_some() && was == named);
            known.limit != name || !is_same
        });
        self.overrides.len() < count
    }

    /// Returns the values in force for a client as text; `null` if its limit does not exist.
    fn in_force(&self, limit: Option<&LimitConfig>, client: &Client, fits: Fits<'_>) -> Value {
        let Some(limit) = limit else {
            return Value::Null;
        };
        let client = limit
            .client_named(&client.0)
            .unwrap_or_else(|_| client.clone());
        let applied = self.applied_to(std::slice::from_ref(limit), fits);
        let own = applied.limits[0].overrides.get(&client);
        Value::from(in_words(&policy_values(own.unwrap_or(&limit.policy))))
    }
}

/// Builds a problem of the client's key.
fn key_problem(limit: &str, text: &str) -> Problem {
    Problem::remark(Owner::Limit(limit.to_owned()), KEY, text)
}

/// Returns the limits with leases.
pub(crate) fn leased(file: &[LimitConfig]) -> impl Iterator<Item = &LimitConfig> {
    let is_leased = |limit: &&LimitConfig| limit.store == LimitStore::Leases;
    file.iter().filter(is_leased)
}

fn no_limit(file: &[LimitConfig]) -> RejectedCommand {
    RejectedCommand::NoLimit {
        limits: file.iter().map(|limit| limit.name.to_string()).collect(),
    }
}

/// Formats a client for logs, without secrets.
fn redacted(limit: Option<&LimitConfig>, client: &Client) -> String {
    // The key of a limit that is gone is unknown, so its clients may be secrets.
    if limit.is_none_or(LimitConfig::has_secret_clients) {
        let chars: usize = client.0.iter().map(|part| part.chars().count()).sum();
        return format!("({chars} characters that are not shown)");
    }
    let parts: Vec<String> = client.0.iter().map(|part| format!("{part:?}")).collect();
    parts.join(" ")
}
