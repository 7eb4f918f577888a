//! Addresses and passwords of stores as values of keys. Messages show no password, and nothing that
//! may contain one by mistake.

use toml::de::DeValue;

use crate::address::host::HostError;
use crate::address::password::{PASSWORD_BYTES_MAX, PasswordError};
use crate::address::store_address::{AddressError, SCHEMES};
use crate::address::valkey::ValkeyAddress;
use crate::problem::quoted;
use crate::toml_file::kind::{InvalidValue, Kind, nearest};

/// A password of a store.
pub(crate) struct Password;

impl Kind for Password {
    type Value = String;

    fn allowed(&self) -> String {
        format!("a text of 1 to {PASSWORD_BYTES_MAX} bytes on one line")
    }

    fn read(&self, value: &DeValue<'_>) -> Result<String, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        let Err(error) = PasswordError::check(text) else {
            return Ok(text.to_owned());
        };
        let found = match error {
            PasswordError::Empty => "an empty text".to_owned(),
            PasswordError::TooLong { bytes } => format!("{bytes} bytes"),
            PasswordError::Character => "a text with a line break or a NUL".to_owned(),
        };
        Err(InvalidValue {
            found: Some(found),
            hint: None,
        })
    }

    fn is_secret(&self) -> bool {
        true
    }
}

/// The address of a store.
pub(crate) struct StoreAddress;

impl Kind for StoreAddress {
    type Value = ValkeyAddress;

    fn allowed(&self) -> String {
        "an address such as \"redis://10.0.0.5:6379/0\", \"rediss://...\" for TLS, \
         \"redis+sentinel://host,host/service\" or \"redis+cluster://host,host\""
            .to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<ValkeyAddress, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        ValkeyAddress::parse(text).map_err(|error| InvalidValue {
            found: Some(found(text, error)),
            hint: Some(hint(text, error)),
        })
    }

    fn is_secret(&self) -> bool {
        true
    }
}

/// Returns as much of an address as certainly contains no password.
fn found(text: &str, error: AddressError) -> String {
    let is_read_past_the_servers = matches!(
        error,
        AddressError::SeveralServers
            | AddressError::Database
            | AddressError::DatabaseOfCluster
            | AddressError::Service
    );
    if text.is_empty() {
        return quoted(text);
    }
    // Some clients put passwords after a question mark.
    if is_read_past_the_servers && !text.contains(['@', '?', '#', '%']) {
        return quoted(text);
    }
    if error == AddressError::Scheme
        && let Some(scheme) = scheme(text)
    {
        return format!(
            "an address that begins with {}",
            quoted(&format!("{scheme}://"))
        );
    }
    "a text (not shown, it may hold a password)".to_owned()
}

/// Returns what precedes `://`, if it has the form of a scheme.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    let is_scheme = (1..=32).contains(&scheme.len()) && scheme.bytes().all(is_plain);
    is_scheme.then_some(scheme)
}

fn hint(text: &str, error: AddressError) -> String {
    let hint = match error {
        AddressError::TooLong => "it is longer than any address",
        AddressError::Scheme => {
            let meant = scheme(text).and_then(|scheme| nearest(scheme, SCHEMES.into_iter()));
            return meant.map_or_else(
                || {
                    "begin it with redis://, rediss://, redis+sentinel:// or redis+cluster://"
                        .to_owned()
                },
                |meant| format!("did you mean {meant}://?"),
            );
        }
        AddressError::UserInfo => {
            "it has one @ too many: write %40 for @ and %2F for / in a user name or password, and \
             give both once, before the first server"
        }
        AddressError::Escape => {
            "a % in its user name or password is not followed by two hex digits of UTF-8; write \
             %25 for % itself"
        }
        AddressError::Username => "its user name is too long or has spaces in it",
        AddressError::Password(PasswordError::Empty) => {
            "its password is empty; without one leave the colon out"
        }
        AddressError::Password(_) => "its password is too long or holds a line break or a NUL",
        AddressError::Host(HostError::Empty) => "a host is empty",
        AddressError::Host(_) => "a host is neither a name nor an IP address",
        AddressError::Port => {
            "a port is not a number from 1 to 65535; write IPv6 addresses in brackets"
        }
        AddressError::SeveralServers => {
            "for several servers begin it with redis+sentinel:// or redis+cluster://"
        }
        AddressError::Database => "the database is not a number from 0 to 2147483647",
        AddressError::DatabaseOfCluster => "a cluster has no databases; end with the last server",
        AddressError::Service => "name the sentinels' service after them, with A-Z a-z 0-9 - _ .",
        AddressError::Options => {
            "options after ? or # are not read; use the keys of [store] instead"
        }
    };
    hint.to_owned()
}
