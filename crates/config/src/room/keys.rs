//! Keys of `[[room]]`, each declared once: its name, its range, its default, and the field that it
//! sets. A registry: it grows with every setting.
//!
//! [`LIMITS`], [`RULES`] and [`ANSWERS`] may be changed while the gateway runs; the keys below them
//! come from the file only. The reader checks what keys mean together.

use anteroom_room::time::DurationMs;

use super::accent::{Accent, AccentError};
use super::row::{FileRow, LiveRow, Row, always, or_none};
use crate::address::host::HostError;
use crate::kind::{
    Choice, Duration, Exponent, InvalidValue, Moment, OffSwitch, OneNumber, Switch, Text, Whole,
};
use crate::language::{LANGUAGES, Language};
use crate::model::{Host, RoomId, RoomName, SameSite, Secure};
use crate::path::{self, PathError};
use crate::reader::Key;
use crate::words::{
    ALLOCATIONS, NEW_USERS_WINDOWS, ON_STORE_FAILURE, QUEUEING_METHODS, SAME_SITES,
    SEAT_NEEDS_COOKIE, SECURES,
};

pub(super) const fn limit(name: &'static str) -> Key<Whole<u32>> {
    Key {
        name,
        kind: Whole {
            min: 1,
            max: i32::MAX.unsigned_abs(),
            note: "",
        },
        default: None,
    }
}

const fn minutes(name: &'static str, min: DurationMs, default: &'static str) -> Key<Duration> {
    Key {
        name,
        kind: Duration {
            min,
            max: DurationMs::from_secs(86_400),
            bare_unit: "m",
        },
        default: Some(default),
    }
}

pub(super) const fn switch(name: &'static str, default: &'static str) -> Key<Switch> {
    Key {
        name,
        kind: Switch,
        default: Some(default),
    }
}

const fn choice<T>(
    name: &'static str,
    words: &'static [(&'static str, T)],
    default: &'static str,
) -> Key<Choice<T>> {
    Key {
        name,
        kind: Choice(words),
        default: Some(default),
    }
}

const fn status(
    name: &'static str,
    allowed: &'static [u16],
    default: &'static str,
) -> Key<OneNumber> {
    Key {
        name,
        kind: OneNumber(allowed),
        default: Some(default),
    }
}

/// Returns the keys that operators may change while the gateway runs.
pub(crate) fn live() -> impl Iterator<Item = &'static dyn LiveRow> {
    let tables = [LIMITS, RULES, ANSWERS].into_iter();
    tables.flatten().copied()
}

/// The two limits of a room.
pub(crate) const LIMITS: &[&dyn LiveRow] = &[
    &Row {
        key: limit("total_active_users"),
        field: always!(rules.limits.total_active_users),
    },
    &Row {
        key: limit("new_users_per_minute"),
        field: always!(rules.limits.new_users_per_minute),
    },
];

pub(crate) const OPENS_AT: &str = "opens_at";
pub(crate) const DRAW: &str = "draw";
pub(crate) const NEW_USERS_WINDOW: &str = "new_users_window";
pub(crate) const POSITION_GRACE: &str = "position_grace";
pub(crate) const SESSION_DURATION: &str = "session_duration";
/// Length of a session.
pub(super) const A_SESSION: Duration = Duration {
    min: DurationMs::from_secs(1),
    max: DurationMs::from_secs(86_400),
    bare_unit: "m",
};

/// Rules of admission and of the queue, besides the limits.
pub(crate) const RULES: &[&dyn LiveRow] = &[
    &Row {
        key: choice(NEW_USERS_WINDOW, NEW_USERS_WINDOWS, "\"minute\""),
        field: always!(rules.new_users_window),
    },
    &Row {
        key: Key {
            name: SESSION_DURATION,
            kind: A_SESSION,
            default: Some("\"5m\""),
        },
        field: always!(rules.session_duration),
    },
    &Row {
        key: Key {
            name: "disable_session_renewal",
            kind: OffSwitch,
            default: Some("false"),
        },
        field: always!(rules.session_renewal),
    },
    &Row {
        key: choice("queueing_method", QUEUEING_METHODS, "\"fifo\""),
        field: always!(rules.queueing_method),
    },
    &Row {
        key: switch("queue_all", "false"),
        field: always!(rules.queue_all),
    },
    &Row {
        key: Key {
            name: OPENS_AT,
            kind: Moment,
            default: None,
        },
        field: or_none!(rules.opens_at),
    },
    &Row {
        key: switch(DRAW, "false"),
        field: always!(rules.draw),
    },
    &Row {
        key: choice("allocation", ALLOCATIONS, "\"leases\""),
        field: always!(rules.allocation),
    },
    &Row {
        key: Key {
            name: "curve_factor",
            kind: Exponent { max: 4.0 },
            default: Some("1.0"),
        },
        field: always!(rules.curve_factor),
    },
    &Row {
        key: switch("pacing", "true"),
        field: always!(rules.pacing),
    },
    &Row {
        key: choice("seat_needs_cookie", SEAT_NEEDS_COOKIE, "\"near_limit\""),
        field: always!(rules.seat_needs_cookie),
    },
    &Row {
        key: minutes(POSITION_GRACE, DurationMs::from_secs(10), "\"5m\""),
        field: always!(rules.position_grace),
    },
    &Row {
        key: Key {
            name: "turn_held_for",
            kind: Duration {
                min: DurationMs::from_secs(20),
                max: DurationMs::from_secs(600),
                bare_unit: "s",
            },
            default: Some("\"1m\""),
        },
        field: always!(rules.turn_held_for),
    },
    &Row {
        key: Key {
            name: "refresh_interval",
            kind: Duration {
                min: DurationMs::from_secs(1),
                max: DurationMs::from_secs(60),
                bare_unit: "s",
            },
            default: None,
        },
        field: or_none!(rules.refresh_interval),
    },
    &Row {
        key: choice("on_store_failure", ON_STORE_FAILURE, "\"bounded\""),
        field: always!(rules.on_store_failure),
    },
];

/// Settings of responses.
pub(crate) const ANSWERS: &[&dyn LiveRow] = &[
    &Row {
        key: switch("suspended", "false"),
        field: always!(suspended),
    },
    &Row {
        key: switch("json_response_enabled", "false"),
        field: always!(json_response_enabled),
    },
    &Row {
        key: status("queueing_status_code", &[200, 202, 429, 503], "200"),
        field: always!(queueing_status_code),
    },
    &Row {
        key: status("non_navigation_status_code", &[429, 503], "429"),
        field: always!(non_navigation_status_code),
    },
    &Row {
        key: Key {
            name: "max_addresses_per_ticket",
            // With fewer than two, a phone that leaves the house starts again; a node remembers 16.
            kind: Whole {
                min: 2,
                max: 16,
                note: "",
            },
            default: None,
        },
        field: or_none!(max_addresses_per_ticket),
    },
];

/// Keys that only the file sets, and that do not depend on others.
pub(crate) const FIXED: &[&dyn FileRow] = &[&Row {
    key: choice("default_template_language", LANGUAGES, "\"en\""),
    field: always!(page.language),
}];

// Keys that only the file sets, and that are checked with others or come more than once.

pub(crate) const NAME: Key<Text<RoomName>> = Key {
    name: "name",
    kind: Text {
        allowed: "1 to 64 of A-Z a-z 0-9 - _",
        read: |text| RoomName::new(text).ok_or(InvalidValue::PLAIN),
    },
    default: None,
};
pub(crate) const ID: Key<Text<RoomId>> = Key {
    name: "id",
    kind: Text {
        allowed: "1 to 64 of A-Z a-z 0-9 - _",
        read: |text| RoomId::new(text).ok_or(InvalidValue::PLAIN),
    },
    default: None,
};
pub(crate) const HOST: Key<Text<Host>> = Key {
    name: "host",
    kind: Text {
        allowed: A_HOST,
        read: |text| host(text, "use the key path for the path"),
    },
    default: None,
};
/// Allowed values of a host.
pub(crate) const A_HOST: &str = "a host name such as \"shop.example.com\"";
pub(crate) const PATH: Key<Text<String>> = Key {
    name: "path",
    kind: Text {
        allowed: "a path that begins with /, without *, ? and #",
        read: room_path,
    },
    default: Some("\"/\""),
};
pub(super) const CUSTOM_PAGE_HTML: Key<Text<String>> = Key {
    name: "custom_page_html",
    kind: Text {
        allowed: "a Mustache template of 1 to 1048576 bytes",
        read: not_empty,
    },
    default: None,
};
pub(super) const CUSTOM_PAGE_FILE: Key<Text<String>> = Key {
    name: "custom_page_file",
    kind: Text {
        allowed: "the path of a file",
        read: not_empty,
    },
    default: None,
};
const fn page_text(name: &'static str, allowed: &'static str) -> Key<Text<String>> {
    Key {
        name,
        kind: Text {
            allowed,
            read: short_text,
        },
        default: None,
    }
}

const fn page_link(name: &'static str) -> Key<Text<String>> {
    Key {
        name,
        kind: Text {
            allowed: "a path that begins with /, or an address with https://, http:// or mailto:",
            read: link,
        },
        default: None,
    }
}

pub(super) const PAGE_TITLE: Key<Text<String>> = page_text("title", SHORT);
pub(super) const PAGE_LOGO: Key<Text<String>> = Key {
    name: "logo",
    kind: Text {
        allowed: "the path of a file that ends with .svg, .png, .webp or .jpg",
        read: logo,
    },
    default: None,
};
pub(super) const PAGE_ACCENT: Key<Text<Accent>> = Key {
    name: "accent",
    kind: Text {
        allowed: "a color such as \"#5a3fd6\", at least 4.5:1 against white",
        read: accent,
    },
    default: None,
};
pub(super) const PAGE_NOUN: Key<Text<String>> = page_text("noun", WORDS);
pub(super) const PAGE_NOUN_TEXT: Key<Text<String>> = page_text("text", WORDS);
pub(super) const PAGE_HELP: Key<Text<String>> = page_link("help");
pub(super) const PAGE_IMPRINT: Key<Text<String>> = page_link("imprint");
pub(super) const PAGE_FACTS: Key<Text<String>> = Key {
    name: "facts",
    kind: Text {
        allowed: LONG,
        read: long_text,
    },
    default: None,
};
pub(super) const PAGE_TEXT_LANGUAGE: Key<Choice<Language>> = Key {
    name: "language",
    kind: Choice(LANGUAGES),
    default: None,
};
pub(super) const PAGE_MESSAGE_TEXT: Key<Text<String>> = Key {
    name: "text",
    kind: Text {
        allowed: LONG,
        read: long_text,
    },
    default: None,
};

const WORDS: &str = "one to three words";
const SHORT: &str = "1 to 60 characters in one line";
pub(super) const LONG: &str = "1 to 500 characters in one line";

pub(crate) const COOKIE_SUFFIX: Key<Text<String>> = Key {
    name: "cookie_suffix",
    kind: Text {
        allowed: "1 to 32 of A-Z a-z 0-9 - _",
        read: |text| {
            if !(1..=32).contains(&text.len()) || !RoomName::is_name(text) {
                return Err(InvalidValue::PLAIN);
            }
            Ok(text.to_owned())
        },
    },
    default: None,
};
pub(crate) const SAME_SITE: Key<Choice<SameSite>> = Key {
    name: "samesite",
    kind: Choice(SAME_SITES),
    default: Some("\"auto\""),
};
pub(crate) const SECURE: Key<Choice<Secure>> = Key {
    name: "secure",
    kind: Choice(SECURES),
    default: Some("\"auto\""),
};
pub(crate) const ENABLED_ORIGIN_COMMANDS: Key<Choice<()>> = Key {
    name: "enabled_origin_commands",
    kind: Choice(&[("revoke", ())]),
    default: Some("[\"revoke\"]"),
};
pub(crate) const BYPASS: Key<Text<String>> = Key {
    name: "bypass",
    kind: Text {
        allowed: "an expression of 1 to 4096 bytes, such as 'path.startsWith(\"/webhooks/\")'",
        read: |text| {
            if text.len() > 4_096 {
                return Err(InvalidValue {
                    found: Some(format!("{} bytes", text.len())),
                    hint: None,
                });
            }
            if text.trim().is_empty() {
                return Err(InvalidValue::PLAIN);
            }
            Ok(text.to_owned())
        },
    },
    default: None,
};

/// Reads the name of a host. `of_path` is the hint for one with a path.
pub(crate) fn host(text: &str, of_path: &'static str) -> Result<Host, InvalidValue> {
    Host::normalise(text)
        .map(Host::Name)
        .map_err(|error| match error {
            HostError::Empty | HostError::Wildcard => {
                InvalidValue::hint("leave host out to cover every host")
            }
            HostError::Scheme => InvalidValue::hint("leave the scheme out"),
            HostError::Path => InvalidValue::hint(of_path),
            HostError::NotAscii => InvalidValue::hint("write the name as in DNS: xn--..."),
            HostError::Port | HostError::Name => InvalidValue::PLAIN,
        })
}

fn room_path(text: &str) -> Result<String, InvalidValue> {
    path::normalise(text).map_err(|error| match error {
        PathError::Relative => InvalidValue::PLAIN,
        PathError::Escape => {
            InvalidValue::hint("write two hex digits after a %, and %25 for % itself")
        }
        PathError::Wildcard => InvalidValue::hint("leave the * out: every path below is covered"),
        PathError::Query => InvalidValue::hint("routes ignore queries; use query in a bypass rule"),
        PathError::Character => InvalidValue::hint("escape it: a space is %20"),
        PathError::Ambiguous => {
            InvalidValue::hint("origins do not agree on what an escaped / or \\ means")
        }
    })
}

fn short_text(text: &str) -> Result<String, InvalidValue> {
    line_of_text(text, 60)
}

pub(super) fn long_text(text: &str) -> Result<String, InvalidValue> {
    line_of_text(text, 500)
}

/// Accepts a line of text for people.
fn line_of_text(text: &str, chars_max: usize) -> Result<String, InvalidValue> {
    let chars = text.chars().count();
    if chars > chars_max {
        return Err(InvalidValue {
            found: Some(format!("{chars} characters")),
            hint: None,
        });
    }
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(InvalidValue::PLAIN);
    }
    Ok(text.trim().to_owned())
}

/// Accepts addresses that a page may link: a script in one would run on the site.
fn link(text: &str) -> Result<String, InvalidValue> {
    let is_path = text.starts_with('/') && !text.starts_with("//");
    let schemes = ["https://", "http://", "mailto:"];
    let is_known = is_path || schemes.iter().any(|scheme| text.starts_with(scheme));
    if !is_known || text.len() > 500 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(InvalidValue::PLAIN);
    }
    Ok(text.to_owned())
}

fn logo(text: &str) -> Result<String, InvalidValue> {
    let ends = [".svg", ".png", ".webp", ".jpg"];
    if !ends.iter().any(|end| text.ends_with(end)) {
        return Err(InvalidValue::PLAIN);
    }
    Ok(text.to_owned())
}

fn accent(text: &str) -> Result<Accent, InvalidValue> {
    Accent::read(text).map_err(|error| match error {
        AccentError::Form => InvalidValue::PLAIN,
        AccentError::Pale { contrast, nearest } => InvalidValue::hint(format!(
            "it has {contrast}:1; the nearest color that passes is \"{nearest}\""
        )),
    })
}

/// Accepts any text that is not empty.
fn not_empty(text: &str) -> Result<String, InvalidValue> {
    if text.is_empty() {
        return Err(InvalidValue::PLAIN);
    }
    Ok(text.to_owned())
}
