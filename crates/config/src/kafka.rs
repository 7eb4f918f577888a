//! `[kafka]`: the log through which limits with `store = "kafka"` are counted.
//!
//! Nothing here connects: brokers are names. Only the client library knows the valid properties.

use std::collections::BTreeMap;
use std::fmt;

use toml::de::DeValue;

use crate::address::host::HostPort;

use super::kind::{InvalidValue, Kind, ServerAddress};
use super::notes::Located;
use super::problem::{Finding, quoted};
use super::reader::{Key, Table};

use super::store::PREFIX;

/// `[kafka]`: the log through which limits may be counted.
#[derive(Clone, Eq, PartialEq)]
pub struct KafkaConfig {
    /// Some of the brokers; at least one.
    pub brokers: Vec<HostPort>,
    /// Prefix of the names of topics and groups.
    pub prefix: String,
    /// Further properties of the client library; some are secret.
    pub properties: BTreeMap<String, String>,
}

impl fmt::Debug for KafkaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KafkaConfig({:?}, {})", self.brokers, self.prefix)
    }
}

/// Most brokers, and most properties: the library has some 150, of which few matter.
const LISTED_MAX: usize = 64;
const USUAL_PORT: u16 = 9_092;
/// Longest property, in bytes; longer than any password or list of mechanisms.
const PROPERTY_BYTES_MAX: usize = 4_096;

const BROKERS: Key<ServerAddress> = Key {
    name: "brokers",
    kind: ServerAddress {
        allowed: "a broker such as \"127.0.0.1:9092\"",
        usual_port: Some(USUAL_PORT),
    },
    default: None,
};
const PROPERTIES: Key<Property> = Key {
    name: "properties",
    kind: Property,
    default: None,
};

/// Property and its value, which may be a password.
struct Property;

impl Kind for Property {
    type Value = (String, String);

    fn allowed(&self) -> String {
        "a text such as \"security.protocol=sasl_plaintext\"".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<(String, String), InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        let is_short = text.len() <= PROPERTY_BYTES_MAX && !text.contains('\0');
        let pair = text.split_once('=').filter(|_| is_short);
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_');
        match pair {
            Some((name, value)) if !name.is_empty() && name.bytes().all(is_name) => {
                Ok((name.to_owned(), value.to_owned()))
            }
            _ => Err(InvalidValue {
                found: Some("a text (not shown, it may hold a password)".to_owned()),
                hint: None,
            }),
        }
    }

    fn is_secret(&self) -> bool {
        true
    }
}

/// Reads the table; `None` if it has a mistake.
pub(super) fn read(mut table: Table<'_>) -> Option<KafkaConfig> {
    let mistakes = table.notes.count();
    let brokers = table.list(&BROKERS);
    let is_right = table.notes.count() == mistakes;
    let is_left_out = brokers.is_none();
    let brokers = brokers.unwrap_or_default();
    if is_right && !(1..=LISTED_MAX).contains(&brokers.len()) {
        let finding = match is_left_out {
            true => Finding::Missing,
            false => Finding::Value(format!("{} brokers", brokers.len())),
        };
        let each = BROKERS.kind.allowed();
        let allowed = format!("a list of 1 to {LISTED_MAX}, each {each}");
        let location = table.location(BROKERS.name);
        table.notes.report(&location, finding, allowed, None);
    }
    let prefix = table.defaulted(&PREFIX);
    let properties = table.list(&PROPERTIES).unwrap_or_default();
    for (at, Located { value, location }) in properties.iter().enumerate() {
        let (name, _) = value;
        let earlier = &properties[..at];
        if at >= LISTED_MAX || earlier.iter().any(|earlier| earlier.value.0 == *name) {
            let finding = format!("{} a second time, or one too many", quoted(name));
            let allowed = format!("each property once, at most {LISTED_MAX}");
            table
                .notes
                .report(location, Finding::Value(finding), allowed, None);
        }
    }
    let is_right = table.notes.count() == mistakes;
    table.finish();
    is_right.then(|| KafkaConfig {
        brokers: brokers.into_iter().map(|placed| placed.value).collect(),
        prefix,
        properties: properties.into_iter().map(|placed| placed.value).collect(),
    })
}
