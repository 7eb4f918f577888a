//! Reader of the origins of a site or a room, their protocol and their health checks.

use std::path::PathBuf;

use anteroom_room::time::DurationMs;

use crate::host::OriginError;
use crate::keys::{A_FILE, path_key, time_key};
use crate::kind::{Choice, Duration, InvalidValue, Text, Whole};
use crate::model::{HealthCheck, Http2, Origin, OriginGroup, Statuses};
use crate::notes::Located;
use crate::path::{self, PathError};
use crate::problem::Finding;
use crate::reader::{Key, Table};

/// Most origins of a site or a room. Each is monitored, and has metrics of its own.
const ORIGINS_MAX: usize = 100;

const fn origin(name: &'static str) -> Key<Text<Origin>> {
    Key {
        name,
        kind: Text {
            allowed: "\"http://host\", \"https://host\", or either with a port, as in \
                      \"http://host:port\"",
            read: read_origin,
        },
        default: None,
    }
}

const ORIGIN: Key<Text<Origin>> = origin("origin");
const ORIGINS: Key<Text<Origin>> = origin("origins");
const ORIGIN_HTTP2: Key<Choice<Http2>> = Key {
    name: "origin_http2",
    kind: Choice(&[
        ("never", Http2::Never),
        ("auto", Http2::Auto),
        ("always", Http2::Always),
    ]),
    default: Some("\"never\""),
};
const ORIGIN_CA_FILE: Key<Text<PathBuf>> = path_key("origin_ca_file", A_FILE, None);

/// Table of health checks; without it, origins are not checked.
const HEALTH_CHECK: &str = "health_check";
const CHECK_PATH: Key<Text<String>> = Key {
    name: "path",
    kind: Text {
        allowed: "a path that begins with /, with a query or without",
        read: check_path,
    },
    default: Some("\"/\""),
};
const INTERVAL: Key<Duration> = time_key("interval", 100, DurationMs::from_secs(3_600), "\"5s\"");
const TIMEOUT: Key<Duration> = time_key("timeout", 10, DurationMs::from_secs(300), "\"2s\"");
const HEALTHY_AFTER: Key<Whole<u32>> = times("healthy_after", "2");
const UNHEALTHY_AFTER: Key<Whole<u32>> = times("unhealthy_after", "3");
const EXPECTED_STATUS: Key<Text<Statuses>> = Key {
    name: "expected_status",
    kind: Text {
        allowed: "a status or a range of them in quotes, such as \"200\" or \"200-399\"",
        read: statuses,
    },
    default: Some("\"200-399\""),
};

const fn times(name: &'static str, default: &'static str) -> Key<Whole<u32>> {
    Key {
        name,
        kind: Whole {
            min: 1,
            max: 100,
            note: "",
        },
        default: Some(default),
    }
}

/// Whether the table names an origin.
pub(crate) fn are_in(table: &Table<'_>) -> bool {
    table.has(ORIGIN.name) || table.has(ORIGINS.name)
}

/// Reads the keys of a table that names no origin, and reports them.
pub(crate) fn leave_out(table: &mut Table<'_>) {
    // So that the keys are known.
    table.optional(&ORIGIN);
    table.list(&ORIGINS);
    table.optional(&ORIGIN_HTTP2);
    table.optional(&ORIGIN_CA_FILE);
    read_health_check(table);
    for key in [ORIGIN_HTTP2.name, ORIGIN_CA_FILE.name, HEALTH_CHECK] {
        if table.has(key) {
            let location = table.location(key);
            let finding = Finding::Remark("found without an origin of the room's own".to_owned());
            let hint = "write it in the [[site]] that the room belongs to".to_owned();
            table.notes.report(&location, finding, "", Some(hint));
        }
    }
}

/// Reads all keys; `None` if no origin could be read.
pub(crate) fn read(table: &mut Table<'_>) -> Option<OriginGroup> {
    let list = read_list(table);
    let http2 = table.defaulted(&ORIGIN_HTTP2);
    let ca_file = table.optional(&ORIGIN_CA_FILE);
    let health_check = read_health_check(table);
    let list = list?;
    if ca_file.is_some() && !list.iter().any(Origin::has_tls) {
        let location = table.location(ORIGIN_CA_FILE.name);
        let finding = Finding::Remark("no origin here has TLS".to_owned());
        let hint = "write https:// in front of one, or leave it out".to_owned();
        table.notes.report(&location, finding, "", Some(hint));
    }
    Some(OriginGroup {
        list,
        http2,
        ca_file,
        health_check,
    })
}

/// Reads one origin under `origin`, or several under `origins`.
fn read_list(table: &mut Table<'_>) -> Option<Vec<Origin>> {
    if !table.has(ORIGINS.name) {
        // So that the key is known.
        table.list(&ORIGINS);
        return table.required(&ORIGIN).map(|origin| vec![origin]);
    }
    let alone = table.optional(&ORIGIN);
    let several = table.list(&ORIGINS)?;
    let location = table.location(ORIGINS.name);
    if alone.is_some() {
        let finding = Finding::Remark("found together with origin".to_owned());
        table
            .notes
            .report(&location, finding, "one of the two", None);
    }
    if several.is_empty() || several.len() > ORIGINS_MAX {
        let found = Finding::Value(format!("{} origins", several.len()));
        let allowed = format!("1 to {ORIGINS_MAX} origins");
        table.notes.report(&location, found, allowed, None);
    }
    let mut list: Vec<Origin> = Vec::with_capacity(several.len());
    for Located { value, location } in several {
        if let Some(first) = list.iter().position(|known| *known == value) {
            let finding = Finding::Remark(format!("the same origin as number {}", first + 1));
            table.notes.report(&location, finding, "", None);
        }
        list.push(value);
    }
    Some(list)
}

fn read_health_check(table: &mut Table<'_>) -> Option<HealthCheck> {
    let is_wanted = table.has(HEALTH_CHECK);
    let mut table = table.table(HEALTH_CHECK);
    let check = HealthCheck {
        path: table.defaulted(&CHECK_PATH),
        interval: table.defaulted(&INTERVAL),
        timeout: table.defaulted(&TIMEOUT),
        healthy_after: table.defaulted(&HEALTHY_AFTER),
        unhealthy_after: table.defaulted(&UNHEALTHY_AFTER),
        expected_status: table.defaulted(&EXPECTED_STATUS),
    };
    table.finish();
    is_wanted.then_some(check)
}

fn read_origin(text: &str) -> Result<Origin, InvalidValue> {
    Origin::parse(text).map_err(|error| match error {
        OriginError::Scheme => InvalidValue::hint("begin it with http:// or https://"),
        // It may contain a password.
        OriginError::UserInfo => InvalidValue {
            found: Some("a URL with a user name".to_owned()),
            hint: Some("leave everything up to the @ out".to_owned()),
        },
        OriginError::Path => InvalidValue::hint(
            "leave out what follows the host, even a single /: requests keep their path",
        ),
        OriginError::PortZero | OriginError::Host(_) => InvalidValue::PLAIN,
    })
}

/// Checks a path that is sent as it was typed: a request line must be able to contain it.
fn check_path(text: &str) -> Result<String, InvalidValue> {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#')
    };
    if !is_plain(query) || text.len() > 1_000 {
        return Err(InvalidValue::PLAIN);
    }
    match path::normalise(path) {
        Ok(_) | Err(PathError::Wildcard) if is_plain(path) => Ok(text.to_owned()),
        Err(PathError::Escape) => Err(InvalidValue::hint(
            "write two hex digits after a %, and %25 for % itself",
        )),
        _ => Err(InvalidValue::PLAIN),
    }
}

fn statuses(text: &str) -> Result<Statuses, InvalidValue> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let read = |text: &str| {
        let status: Option<u16> = text.trim().parse().ok();
        status.filter(|status| (200..=599).contains(status))
    };
    match (read(first), read(last)) {
        (Some(first), Some(last)) if first <= last => Ok(Statuses { first, last }),
        _ => Err(InvalidValue::hint("statuses go from 200 to 599")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_statuses_are_one_or_a_range() {
        let check = |text: &str, expected: Option<(u16, u16)>| {
            let read = statuses(text).ok().map(|range| (range.first, range.last));
            assert_eq!(read, expected, "{text}");
        };
        check("200", Some((200, 200)));
        check("200-399", Some((200, 399)));
        check("200 - 204", Some((200, 204)));
        for wrong in [
            "",
            "2xx",
            "199",
            "600",
            "399-200",
            "200-",
            "-200",
            "200-300-400",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_health_checks_path_may_have_a_query_but_no_line_break() {
        for right in ["/", "/healthz", "/healthz?deep=1", "/a%20b"] {
            assert_eq!(check_path(right).ok().as_deref(), Some(right));
        }
        for wrong in [
            "", "healthz", "/a b", "/a\r\nx", "/?a b", "/#a", "/%zz", "/é",
        ] {
            assert!(check_path(wrong).is_err(), "{wrong}");
        }
    }
}
