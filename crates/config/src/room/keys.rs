//! The keys of `[[room]]`, each declared once: its name, what it may hold, its default.
//!
//! What they mean together is judged where they are read.

use anteroom_room::rules::{AllocationKind, OnStoreFailure, QueueingMethod, SeatNeedsCookie};
use anteroom_room::time::Span;

use crate::address::host::HostError;
use crate::kind::{Choice, Duration, Exponent, Moment, OneNumber, Refusal, Switch, Text, Whole};
use crate::language::{LANGUAGES, Language};
use crate::model::{Host, RoomName, SameSite, Secure};
use crate::path::{self, PathError};
use crate::reader::Key;
use crate::words::{ALLOCATIONS, ON_STORE_FAILURE, QUEUEING_METHODS, SEAT_NEEDS_COOKIE};

pub(crate) const NAME: Key<Text<RoomName>> = Key {
    name: "name",
    kind: Text {
        allowed: "1 to 64 of A-Z a-z 0-9 - _",
        read: |text| RoomName::new(text).ok_or(Refusal::PLAIN),
    },
    default: None,
};
pub(crate) const HOST: Key<Text<Host>> = Key {
    name: "host",
    kind: Text {
        allowed: "a host name such as \"shop.example.com\"",
        read: host,
    },
    default: None,
};
pub(crate) const PATH: Key<Text<String>> = Key {
    name: "path",
    kind: Text {
        allowed: "a path that begins with /, without *, ? and #",
        read: room_path,
    },
    default: Some("\"/\""),
};
const fn limit(name: &'static str) -> Key<Whole<u32>> {
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

pub(crate) const TOTAL_ACTIVE_USERS: Key<Whole<u32>> = limit("total_active_users");
pub(crate) const NEW_USERS_PER_MINUTE: Key<Whole<u32>> = limit("new_users_per_minute");

const fn minutes(name: &'static str, min: Span, default: &'static str) -> Key<Duration> {
    Key {
        name,
        kind: Duration {
            min,
            max: Span::from_secs(86_400),
            bare_unit: "m",
        },
        default: Some(default),
    }
}

pub(crate) const SESSION_DURATION: Key<Duration> =
    minutes("session_duration", Span::from_secs(1), "\"5m\"");
pub(crate) const PLACE_GRACE: Key<Duration> = minutes("place_grace", Span::from_secs(10), "\"5m\"");
pub(crate) const ASK_AGAIN: Key<Duration> = Key {
    name: "ask_again",
    kind: Duration {
        min: Span::from_secs(1),
        max: Span::from_secs(60),
        bare_unit: "s",
    },
    default: None,
};

const fn switch(name: &'static str, default: &'static str) -> Key<Switch> {
    Key {
        name,
        kind: Switch,
        default: Some(default),
    }
}

pub(crate) const DISABLE_SESSION_RENEWAL: Key<Switch> = switch("disable_session_renewal", "false");
pub(crate) const QUEUE_ALL: Key<Switch> = switch("queue_all", "false");
pub(crate) const DRAW: Key<Switch> = switch("draw", "false");
pub(crate) const SUSPENDED: Key<Switch> = switch("suspended", "false");
pub(crate) const PACING: Key<Switch> = switch("pacing", "true");
pub(crate) const JSON_RESPONSE_ENABLED: Key<Switch> = switch("json_response_enabled", "false");

pub(crate) const QUEUEING_METHOD: Key<Choice<QueueingMethod>> = Key {
    name: "queueing_method",
    kind: Choice(QUEUEING_METHODS),
    default: Some("\"fifo\""),
};
pub(crate) const OPENS_AT: Key<Moment> = Key {
    name: "opens_at",
    kind: Moment,
    default: None,
};
pub(crate) const ALLOCATION: Key<Choice<AllocationKind>> = Key {
    name: "allocation",
    kind: Choice(ALLOCATIONS),
    default: Some("\"leases\""),
};
pub(crate) const CURVE_FACTOR: Key<Exponent> = Key {
    name: "curve_factor",
    kind: Exponent { max: 4.0 },
    default: Some("1.0"),
};
pub(crate) const SEAT: Key<Choice<SeatNeedsCookie>> = Key {
    name: "seat_needs_cookie",
    kind: Choice(SEAT_NEEDS_COOKIE),
    default: Some("\"near_limit\""),
};
pub(crate) const STORE_FAILURE: Key<Choice<OnStoreFailure>> = Key {
    name: "on_store_failure",
    kind: Choice(ON_STORE_FAILURE),
    default: Some("\"bounded\""),
};
pub(crate) const MAX_ADDRESSES_PER_TICKET: Key<Whole<u32>> = Key {
    name: "max_addresses_per_ticket",
    // Fewer than two, and a phone that leaves the house starts anew; a node remembers 16.
    kind: Whole {
        min: 2,
        max: 16,
        note: "",
    },
    default: None,
};
pub(crate) const QUEUEING_STATUS_CODE: Key<OneNumber> = Key {
    name: "queueing_status_code",
    kind: OneNumber(&[200, 202, 429, 503]),
    default: Some("200"),
};
pub(crate) const NON_NAVIGATION_STATUS_CODE: Key<OneNumber> = Key {
    name: "non_navigation_status_code",
    kind: OneNumber(&[429, 503]),
    default: Some("429"),
};
pub(super) const DEFAULT_TEMPLATE_LANGUAGE: Key<Choice<Language>> = Key {
    name: "default_template_language",
    kind: Choice(LANGUAGES),
    default: Some("\"en\""),
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
pub(crate) const COOKIE_SUFFIX: Key<Text<String>> = Key {
    name: "cookie_suffix",
    kind: Text {
        allowed: "1 to 32 of A-Z a-z 0-9 - _",
        read: |text| {
            if !(1..=32).contains(&text.len()) || !RoomName::is_name(text) {
                return Err(Refusal::PLAIN);
            }
            Ok(text.to_owned())
        },
    },
    default: None,
};
pub(crate) const SAME_SITE: Key<Choice<SameSite>> = Key {
    name: "samesite",
    kind: Choice(&[
        ("auto", SameSite::Auto),
        ("lax", SameSite::Lax),
        ("none", SameSite::None),
        ("strict", SameSite::Strict),
    ]),
    default: Some("\"auto\""),
};
pub(crate) const SECURE: Key<Choice<Secure>> = Key {
    name: "secure",
    kind: Choice(&[
        ("auto", Secure::Auto),
        ("always", Secure::Always),
        ("never", Secure::Never),
    ]),
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
                return Err(Refusal {
                    found: Some(format!("{} bytes", text.len())),
                    hint: None,
                });
            }
            if text.trim().is_empty() {
                return Err(Refusal::PLAIN);
            }
            Ok(text.to_owned())
        },
    },
    default: None,
};

fn host(text: &str) -> Result<Host, Refusal> {
    Host::normalise(text)
        .map(Host::Name)
        .map_err(|error| match error {
            HostError::Empty | HostError::Wildcard => {
                Refusal::hint("leave host out to cover every host")
            }
            HostError::Scheme => Refusal::hint("leave the scheme out"),
            HostError::Path => Refusal::hint("write the path into path"),
            HostError::NotAscii => Refusal::hint("write the name as DNS has it: xn--..."),
            HostError::Port | HostError::Name => Refusal::PLAIN,
        })
}

fn room_path(text: &str) -> Result<String, Refusal> {
    path::normalise(text).map_err(|error| match error {
        PathError::Relative => Refusal::PLAIN,
        PathError::Escape => Refusal::hint("two hex digits follow a %; the % itself is %25"),
        PathError::Wildcard => Refusal::hint("every path below is covered anyway; leave the * out"),
        PathError::Query => Refusal::hint("queries take no part; a bypass rule can use query"),
        PathError::Character => Refusal::hint("escape it: a space is %20"),
        PathError::Ambiguous => {
            Refusal::hint("origins do not agree on what an escaped / or \\ means")
        }
    })
}

/// Any text but none.
fn not_empty(text: &str) -> Result<String, Refusal> {
    if text.is_empty() {
        return Err(Refusal::PLAIN);
    }
    Ok(text.to_owned())
}
