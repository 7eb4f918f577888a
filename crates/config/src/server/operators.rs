//! Host names that operators may use for the admin address.

use crate::kind::{InvalidValue, Text};
use crate::problem::Finding;
use crate::reader::{Key, Table};

/// Longest host name, as DNS has it.
const NAME_BYTES_MAX: usize = 253;
/// Most names: each is compared with the `Host` of every request of operators.
const NAMES_MAX: usize = 64;
const ADMIN_HOSTS: Key<Text<String>> = Key {
    name: "admin_hosts",
    kind: Text {
        allowed: "a host name without a port, such as \"ops.example.com\"",
        read: host_name,
    },
    default: Some("[]"),
};

/// Reads the names, in lower case.
pub(super) fn read_admin_hosts(table: &mut Table<'_>) -> Vec<String> {
    let names = table.list(&ADMIN_HOSTS).unwrap_or_default();
    if let Some(too_many) = names.get(NAMES_MAX) {
        let found = Finding::Value(format!("{} names", names.len()));
        let allowed = format!("at most {NAMES_MAX}");
        table.notes.report(&too_many.location, found, allowed, None);
    }
    names.into_iter().map(|name| name.value).collect()
}

fn host_name(text: &str) -> Result<String, InvalidValue> {
    let name = text.to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.len() > NAME_BYTES_MAX || name.split('.').any(str::is_empty) {
        return Err(InvalidValue::PLAIN);
    }
    if !name.bytes().all(is_plain) {
        return Err(InvalidValue::PLAIN);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_has_no_port_and_no_empty_part() {
        assert_eq!(
            host_name("Ops-1.Example.com"),
            Ok("ops-1.example.com".to_owned())
        );
        for wrong in [
            "",
            ".",
            "a..b",
            "a.",
            "ops.example.com:8081",
            "http://ops.example.com",
            "*.example.com",
            "a b",
            "[::1]",
        ] {
            assert!(host_name(wrong).is_err(), "{wrong}");
        }
        assert!(host_name(&"a".repeat(254)).is_err());
    }
}
