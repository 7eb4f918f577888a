//! Reader of an override for one client that an operator sets at run time. It uses the code that
//! reads the file's `overrides`.

use anteroom_limit::policy::Policy;
use serde_json::Value;

use super::keys::{LIMIT, of_setting};
use super::overrides;
use super::policy::OF_CLIENTS;
use crate::live::{LiveValues, read_typed};
use crate::model::{Client, LimitConfig};
use crate::notes::Located;
use crate::problem::{Owner, Problem, Problems};
use crate::rate_text::RateText;
use crate::reader::Table;

/// Key of the client in an override.
const KEY: &str = overrides::CLIENT.name;

impl LimitConfig {
    /// Reads an override as in the file: `key`, `limit`, and the other settings of the algorithm.
    ///
    /// # Errors
    ///
    /// [`Problems`] with every mistake.
    pub fn read_override(&self, typed: &LiveValues) -> Result<(Client, Policy), Problems> {
        self.reading(typed, |table| {
            let (client, policy) =
                overrides::read_one(table, Some(&self.key), self.settings, self.store);
            client.map(|client| client.value).zip(policy)
        })
    }

    /// Reads a client, in the one spelling that is compared.
    ///
    /// # Errors
    ///
    /// [`Problems`] if this limit has no such client.
    pub fn client_named(&self, texts: &[String]) -> Result<Client, Problems> {
        let typed = LiveValues::from([(KEY.to_owned(), Value::from(texts))]);
        self.reading(&typed, |table| {
            let client = overrides::read_client(table, Some(&self.key));
            client.map(|Located { value, .. }| value)
        })
    }

    fn reading<T>(
        &self,
        typed: &LiveValues,
        read: impl FnOnce(&mut Table<'_>) -> Option<T>,
    ) -> Result<T, Problems> {
        if let Some(why) = overrides::why_nameless(&self.key) {
            let owner = Owner::Limit(self.name.to_string());
            return Err(Problems(vec![Problem::remark(owner, KEY, why)]));
        }
        let owner = Owner::Limit(self.name.to_string());
        let (read, problems) = read_typed(owner, typed.iter(), read);
        match read {
            Some(read) if problems.is_empty() => Ok(read),
            _ => Err(Problems(problems)),
        }
    }

    /// Returns the settings of clients without an override, as they would be written.
    #[must_use]
    pub fn values(&self) -> LiveValues {
        policy_values(&self.policy)
    }

    /// Whether clients must not be shown.
    #[must_use]
    pub fn has_secret_clients(&self) -> bool {
        overrides::is_secret(&self.key)
    }
}

/// Returns the keys of an override that describe this policy, by their names.
#[must_use]
pub fn policy_values(policy: &Policy) -> LiveValues {
    let rate = RateText::of(policy.rate()).to_string();
    let mut values = LiveValues::from([(LIMIT.name.to_owned(), Value::from(rate))]);
    for setting in OF_CLIENTS {
        if let Some(value) = policy.settings().get(setting) {
            values.insert(of_setting(setting).name.to_owned(), Value::from(value));
        }
    }
    values
}
