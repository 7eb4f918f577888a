//! Reader of `overrides`: limits of single clients.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anteroom_limit::policy::Policy;
use toml::de::DeValue;

use super::policy::{self, Settings};
use super::store;
use crate::kind::{InvalidValue, Kind};
use crate::limit_stores::LimitStore;
use crate::model::{Client, ClientKey, KeyPart};
use crate::notes::{Located, Location};
use crate::problem::{Finding, hidden, quoted};
use crate::reader::{Key, Table};

/// Most clients with a limit of their own; more belong in another kind of file.
const OVERRIDES_MAX: usize = 10_000;
/// Longest text of one part, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

const OVERRIDES: &str = "overrides";

pub(super) const CLIENT: Key<ClientText> = Key {
    name: "key",
    kind: ClientText { is_secret: true },
    default: None,
};

/// Value of one part of the key for one client.
pub(super) struct ClientText {
    is_secret: bool,
}

impl Kind for ClientText {
    type Value = String;

    fn allowed(&self) -> String {
        format!(
            "a text of 1 to {TEXT_BYTES_MAX} bytes, or a list of them, one for each part of key"
        )
    }

    fn read(&self, value: &DeValue<'_>) -> Result<String, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        if !(1..=TEXT_BYTES_MAX).contains(&text.len()) {
            return Err(InvalidValue::PLAIN);
        }
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err(InvalidValue::hint(
                "without line ends, and without spaces around it",
            ));
        }
        Ok(text.to_owned())
    }

    fn is_secret(&self) -> bool {
        self.is_secret
    }
}

/// Reads the overrides of a limit; `key` is `None` after a mistake in it.
pub(super) fn read(
    table: &mut Table<'_>,
    key: Option<&ClientKey>,
    limit: Settings,
    store: LimitStore,
) -> BTreeMap<Client, Policy> {
    let elements = table.elements(
        OVERRIDES,
        "a list of tables, such as [{ key = \"203.0.113.7\", limit = \"500/min\" }]",
    );
    let count = elements.len();
    if count > OVERRIDES_MAX {
        let location = table.location(OVERRIDES);
        let found = Finding::Value(format!("{count} overrides"));
        let allowed = format!("at most {OVERRIDES_MAX}");
        table.notes.report(&location, found, allowed, None);
    }
    if let Some(key) = key.filter(|_| count > 0) {
        refuse_nameless(table, key);
    }
    let mut lines: BTreeMap<Client, usize> = BTreeMap::new();
    let mut overrides = BTreeMap::new();
    for element in elements.iter().take(OVERRIDES_MAX) {
        let mut inner = table.enter(element);
        let (client, policy) = read_one(&mut inner, key, limit, store);
        if let Some(Located { value, location }) = client {
            if let Some(line) = lines.get(&value) {
                let finding = format!("line {line} is about the same client");
                inner
                    .notes
                    .report(&location, Finding::Remark(finding), "", None);
            } else {
                lines.insert(value.clone(), location.line);
            }
            overrides.extend(policy.map(|policy| (value, policy)));
        }
        inner.finish();
    }
    overrides
}

/// Reads the client and its policy; each is `None` after a mistake in it.
pub(super) fn read_one(
    table: &mut Table<'_>,
    key: Option<&ClientKey>,
    limit: Settings,
    store: LimitStore,
) -> (Option<Located<Client>>, Option<Policy>) {
    let client = read_client(table, key);
    let policy = policy::read_own(table, limit);
    if let Some(policy) = &policy {
        store::check(table, store, policy);
    }
    (client, policy)
}

/// Reports that clients of this limit cannot be named.
fn refuse_nameless(table: &mut Table<'_>, key: &ClientKey) {
    let Some(why) = why_nameless(key) else {
        return;
    };
    let location = table.location(OVERRIDES);
    let finding = Finding::Remark(why.to_owned());
    let allowed = "only with other keys";
    table.notes.report(&location, finding, allowed, None);
}

/// Returns the reason why clients of a limit cannot be named; `None` if they can.
pub(super) fn why_nameless(key: &ClientKey) -> Option<&'static str> {
    if key.parts.is_empty() {
        Some("has no effect with key \"everybody\": all clients share one count")
    } else if key.parts.contains(&KeyPart::Ticket) {
        Some("has no effect with key \"ticket\": tickets are not known in advance")
    } else {
        None
    }
}

/// Whether clients must not be shown: headers and cookies contain keys.
pub(super) fn is_secret(key: &ClientKey) -> bool {
    let is_shown =
        |part: &KeyPart| matches!(part, KeyPart::ClientAddress | KeyPart::PathSegment(_));
    !key.parts.iter().all(is_shown)
}

/// Reads the client; `None` after a mistake.
pub(super) fn read_client(
    table: &mut Table<'_>,
    key: Option<&ClientKey>,
) -> Option<Located<Client>> {
    let is_secret = key.is_none_or(is_secret);
    let kind = ClientText { is_secret };
    let mistakes = table.notes.count();
    let typed = table.one_or_list(&Key { kind, ..CLIENT });
    let location = table.location(CLIENT.name);
    let Some(typed) = typed else {
        if table.notes.count() == mistakes {
            let allowed = CLIENT.kind.allowed();
            table
                .notes
                .report(&location, Finding::Missing, allowed, None);
        }
        return None;
    };
    if table.notes.count() > mistakes {
        return None;
    }
    let key = key?;
    if typed.len() != key.parts.len() {
        // A key without parts was reported before.
        if !key.parts.is_empty() {
            let found = Finding::Value(match typed.len() {
                1 => "1 text".to_owned(),
                count => format!("{count} texts"),
            });
            let allowed = format!("{}, one for each part of key", key.parts.len());
            table.notes.report(&location, found, allowed, None);
        }
        return None;
    }
    let mut texts = Vec::with_capacity(typed.len());
    for (part, Located { value, location }) in key.parts.iter().zip(typed) {
        texts.push(part_text(table, key, part, &value, &location)?);
    }
    Some(Located {
        value: Client(texts),
        location,
    })
}

/// Returns a part in the one spelling that is compared; `None` after reporting a mistake.
fn part_text(
    table: &mut Table<'_>,
    key: &ClientKey,
    part: &KeyPart,
    text: &str,
    location: &Location,
) -> Option<String> {
    let (read, allowed) = match part {
        KeyPart::ClientAddress => {
            let address: Option<IpAddr> = text.parse().ok();
            let read = address.map(|address| key.address_text(address));
            (read, "an IP address for the part \"client_address\"")
        }
        KeyPart::PathSegment(_) => (
            (!text.contains('/')).then(|| text.to_owned()),
            "a segment without / for the part \"path_segment\"",
        ),
        KeyPart::Header(_) | KeyPart::Cookie(_) | KeyPart::JwtClaim(_) | KeyPart::Ticket => {
            (Some(text.to_owned()), "")
        }
    };
    if read.is_none() {
        let found = if is_secret(key) {
            hidden(text)
        } else {
            quoted(text)
        };
        table
            .notes
            .report(location, Finding::Value(found), allowed, None);
    }
    read
}
