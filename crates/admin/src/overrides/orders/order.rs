//! What may an operator say about a client of a limit, and what becomes of what was said before?
//!
//! A pure function: what was said, what the file says, what is said now. All mistakes are told at
//! once, and nothing is changed then.

use anteroom_config::overrides::{Actor, Change, Entry};
use anteroom_config::{
    Client, LimitConfig, LimitName, LimitStore, LiveValues, Owner, Problem, Problems, policy_values,
};
use anteroom_room::time::Timestamp;
use serde_json::Value;

use super::record::{Fits, KEY, LimitOverrides, LiveOverride, read_fitting};
use super::shown::in_words;

/// Most clients with live settings, in all limits together. Each node reads the record every few
/// seconds; whoever has more writes them into the file, which takes ten thousand for each limit.
pub(super) const LIVE_MAX: usize = 1_000;
/// Most bytes of them: four times as many as a thousand clients with names of usual length take.
const BYTES_MAX: usize = 256 * 1_024;

/// What an operator says about one client, or about all that are lent calls.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LimitCommand {
    /// This holds for it, instead of what the file says and of what was said before.
    Set {
        /// Which limit.
        limit: LimitName,
        /// Who, and what: as one of the file's `overrides`.
        typed: LiveValues,
    },
    /// As the file says.
    Unset {
        /// Which limit.
        limit: LimitName,
        /// Who.
        client: Client,
    },
    /// Nobody has spent anything of what is lent; changes nothing here, and is written down.
    AssumeEmpty,
}

/// Why something that is said about a limit is not done.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectedCommand {
    /// There is no such limit; these there are.
    #[error("no limit has this name")]
    NoLimit {
        /// Their names.
        limits: Vec<String>,
    },
    /// It is not allowed.
    #[error("that cannot be done")]
    NotAllowed(#[source] Problems),
    /// No limit is lent, so there is nothing to be forgotten.
    #[error(
        "no limit has store = \"leases\"; limits that are counted have forgotten nothing that a \
         command could say"
    )]
    NothingIsLent,
    /// Where the limit is counted, nobody answers.
    #[error("the store that counts this limit is away")]
    StoreAway,
}

impl LimitCommand {
    /// Which limit is meant; `None` if all that are lent.
    #[must_use]
    pub fn limit(&self) -> Option<&LimitName> {
        match self {
            Self::Set { limit, .. } | Self::Unset { limit, .. } => Some(limit),
            Self::AssumeEmpty => None,
        }
    }
}

impl LimitOverrides {
    /// What holds after `order`, where the file says `file` and stores can count what `fits`. `now`
    /// is the wall clock.
    ///
    /// # Errors
    ///
    /// [`RejectedCommand`] with every mistake; nothing is changed then.
    pub fn after(
        &self,
        order: &LimitCommand,
        file: &[LimitConfig],
        fits: Fits<'_>,
        who: &Actor,
        now: Timestamp,
    ) -> Result<Self, RejectedCommand> {
        let mut next = self.clone();
        let limit_of = |name: &LimitName| file.iter().find(|limit| limit.name == *name);
        let (name, limit, client, said) = match order {
            LimitCommand::Set { limit: name, typed } => {
                let limit = limit_of(name).ok_or_else(|| no_limit(file))?;
                let (client, said) = next.set(limit, typed, fits)?;
                (name, Some(limit), client, said)
            }
            LimitCommand::Unset {
                limit: name,
                client,
            } => {
                let limit = limit_of(name);
                (name, limit, next.unset(name, limit, client, file)?, None)
            }
            LimitCommand::AssumeEmpty => {
                if lent(file).next().is_none() {
                    return Err(RejectedCommand::NothingIsLent);
                }
                let what = "limits assume-empty".to_owned();
                next.note(Entry::following(self, who, now, what, Vec::new()));
                return Ok(next);
            }
        };
        let told = told(limit, &client);
        let verb = if said.is_some() { "set" } else { "unset" };
        let values = said.map(|values| format!(" {}", in_words(&values)));
        let change = Change {
            key: format!("{name} {told}"),
            before: self.held(limit, &client, fits),
            after: next.held(limit, &client, fits),
        };
        let what = format!("limits {verb} {name} {told}{}", values.unwrap_or_default());
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
        self.take(limit.name.as_str(), Some(limit), &client);
        self.overrides.push(LiveOverride {
            limit: limit.name.to_string(),
            client: client.clone(),
            values: values.clone(),
        });
        // In one order, so that what was said twice is the same record.
        self.overrides
            .sort_by(|one, other| (&one.limit, &one.client).cmp(&(&other.limit, &other.client)));
        let refused = |text: String| {
            let problems = vec![remark(limit.name.as_str(), &text)];
            Err(RejectedCommand::NotAllowed(Problems(problems)))
        };
        if self.overrides.len() > LIVE_MAX {
            return refused(format!(
                "{LIVE_MAX} clients have live settings already, which is as many as may; unset \
                 some, or write \
                 them into the file"
            ));
        }
        let bytes = serde_json::to_vec(&self.overrides).map_or(0, |text| text.len());
        if bytes > BYTES_MAX {
            return refused(format!(
                "{bytes} bytes of live settings, where {BYTES_MAX} may be; unset some, or write \
                 them into the \
                 file"
            ));
        }
        Ok((client, Some(values)))
    }

    /// Also where the limit is gone from the file: then the client is as it was written down.
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
            .any(|said| said.limit == name.as_str());
        if limit.is_none() && !is_known {
            return Err(no_limit(file));
        }
        if self.take(name.as_str(), limit, client) {
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
            "this client has no settings of its own; `anteroom limits list` shows who has"
        };
        let problems = vec![remark(name.as_str(), text)];
        Err(RejectedCommand::NotAllowed(Problems(problems)))
    }

    /// Forgets what was said about a client, in whatever spelling; returns whether there was
    /// anything.
    fn take(&mut self, name: &str, limit: Option<&LimitConfig>, client: &Client) -> bool {
        let named = limit.and_then(|limit| limit.client_named(&client.0).ok());
        let count = self.overrides.len();
        self.overrides.retain(|said| {
            // The file may have had another key, or another prefix, when it was written down.
            let was = limit.and_then(|limit| limit.client_named(&said.client.0).ok());
            let is_same = said.client == *client || (was.is_some() && was == named);
            said.limit != name || !is_same
        });
        self.overrides.len() < count
    }

    /// What holds for a client, in words; `null` where its limit is not there.
    fn held(&self, limit: Option<&LimitConfig>, client: &Client, fits: Fits<'_>) -> Value {
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

/// One thing to say about who is meant.
fn remark(limit: &str, text: &str) -> Problem {
    Problem::remark(Owner::Limit(limit.to_owned()), KEY, text)
}

/// The limits whose calls are lent.
pub(crate) fn lent(file: &[LimitConfig]) -> impl Iterator<Item = &LimitConfig> {
    let is_lent = |limit: &&LimitConfig| limit.store == LimitStore::Leases;
    file.iter().filter(is_lent)
}

fn no_limit(file: &[LimitConfig]) -> RejectedCommand {
    RejectedCommand::NoLimit {
        limits: file.iter().map(|limit| limit.name.to_string()).collect(),
    }
}

/// A client as logs may name it.
fn told(limit: Option<&LimitConfig>, client: &Client) -> String {
    // What a limit that is gone told clients apart by, nobody knows.
    if limit.is_none_or(LimitConfig::has_secret_clients) {
        let chars: usize = client.0.iter().map(|part| part.chars().count()).sum();
        return format!("({chars} characters that are not shown)");
    }
    let parts: Vec<String> = client.0.iter().map(|part| format!("{part:?}")).collect();
    parts.join(" ")
}
