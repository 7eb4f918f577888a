//! Fields of rooms and events on the wire, each declared once: what it is in the file, and its
//! default.
//!
//! Clients send more than they mean: read-only fields, numbers as text, words in capitals. All of
//! that is read, and written in one form.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use anteroom_config::toml_file::problem::key_name;
use anteroom_config::{Config, duration};
use anteroom_room::time::DurationMs;
use serde_json::{Map, Value};

use super::envelope::Mistakes;

/// Field on the wire.
pub(super) struct Field {
    name: &'static str,
    meaning: Meaning,
    /// Default, as JSON.
    default: &'static str,
}

/// Counterpart of a field in the file.
enum Meaning {
    /// Key of the same name.
    Same,
    /// Key of the same name: a word whose case does not matter.
    Word,
    /// Key of the same name; an empty text is none.
    Text,
    /// Key of the same name: a number that may be a text.
    Number,
    /// Object of the same name, with words whose case does not matter.
    Words,
    /// `session_duration`, in minutes.
    Minutes,
    /// `session_duration`, in seconds.
    Seconds,
    /// The language; those without a page of ours are kept without an effect.
    Language,
    /// Kept without an effect. Only these words are allowed, because others would promise one.
    Kept(&'static [&'static str]),
    /// The server's: ignored where a client sends it.
    ReadOnly,
}

use Meaning::{Kept, Language, Minutes, Number, ReadOnly, Same, Seconds, Text, Word, Words};

const fn field(name: &'static str, meaning: Meaning, default: &'static str) -> Field {
    Field {
        name,
        meaning,
        default,
    }
}

/// Most messages about one body.
const MESSAGES_MAX: usize = 100;
/// Field with the length of a session in seconds.
const SECONDS: &str = "session_duration_seconds";
/// Key of the length of a session in the file.
const SESSION_DURATION: &str = "session_duration";
/// Words of bot challenges that change nothing.
const NO_CHALLENGE: Meaning = Kept(&["off", "invisible"]);
const ONLY_LOGGED: Meaning = Kept(&["log"]);

/// Fields of a room, in the order of responses.
pub(super) const ROOM: &[Field] = &[
    field("id", ReadOnly, "null"),
    field("created_on", ReadOnly, "null"),
    field("modified_on", ReadOnly, "null"),
    field("name", Same, "\"\""),
    field("description", Text, "\"\""),
    field("suspended", Same, "false"),
    field("host", Same, "\"\""),
    field("path", Same, "\"/\""),
    field("additional_routes", Same, "[]"),
    field("queue_all", Same, "false"),
    field("new_users_per_minute", Number, "0"),
    field("total_active_users", Number, "0"),
    field(SESSION_DURATION, Minutes, "5"),
    field(SECONDS, Seconds, "300"),
    field("disable_session_renewal", Same, "false"),
    field("json_response_enabled", Same, "false"),
    field("queueing_method", Word, "\"fifo\""),
    field("queueing_status_code", Number, "200"),
    field("cookie_suffix", Text, "\"\""),
    field(
        "cookie_attributes",
        Words,
        r#"{"samesite": "auto", "secure": "auto"}"#,
    ),
    field("custom_page_html", Text, "\"\""),
    field("default_template_language", Language, "\"en-US\""),
    // Rooms that were made here have their own value, also if none was sent.
    field("enabled_origin_commands", Same, "[\"revoke\"]"),
    field("turnstile_mode", NO_CHALLENGE, "\"off\""),
    field("turnstile_action", ONLY_LOGGED, "\"log\""),
    field("next_event_prequeue_start_time", ReadOnly, "null"),
    field("next_event_start_time", ReadOnly, "null"),
];

/// Fields of an event, in the order of responses. A value that is `null` is the room's.
pub(super) const EVENT: &[Field] = &[
    field("id", ReadOnly, "null"),
    field("created_on", ReadOnly, "null"),
    field("modified_on", ReadOnly, "null"),
    field("name", Same, "\"\""),
    field("description", Text, "\"\""),
    field("suspended", Same, "false"),
    field("event_start_time", Same, "null"),
    field("event_end_time", Same, "null"),
    field("prequeue_start_time", Same, "null"),
    field("shuffle_at_event_start", Same, "false"),
    field("new_users_per_minute", Number, "null"),
    field("total_active_users", Number, "null"),
    field(SESSION_DURATION, Minutes, "null"),
    field(SECONDS, Seconds, "null"),
    field("disable_session_renewal", Same, "null"),
    field("queueing_method", Word, "null"),
    field("custom_page_html", Text, "null"),
    field("turnstile_mode", NO_CHALLENGE, "null"),
    field("turnstile_action", ONLY_LOGGED, "null"),
];

/// Languages of a page that clients may name, and we have no texts for.
const OTHER_LANGUAGES: [&str; 21] = [
    "id-ID", "fa-IR", "bg-BG", "hr-HR", "cs-CZ", "da-DK", "fi-FI", "lt-LT", "lv-LV", "ms-MY",
    "nb-NO", "ro-RO", "el-GR", "hi-IN", "hu-HU", "sr-BA", "sk-SK", "sl-SI", "tl-PH", "th-TH",
    "vi-VN",
];

/// Values of a room or an event that a body changes.
pub(super) struct Values<'a> {
    /// Keys of the file.
    pub(super) file: &'a mut Map<String, Value>,
    /// Fields without an effect.
    pub(super) sent: &'a mut Map<String, Value>,
}

/// Findings in a body.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) mistakes: Mistakes,
    pub(super) messages: Vec<String>,
}

/// Sets the fields of a body. `null` is the default; fields that are not there stay as they are.
/// `also` are the keys of the file that are no fields elsewhere.
pub(super) fn read(
    fields: &[Field],
    also: impl Fn(&str) -> bool,
    body: &Map<String, Value>,
    values: &mut Values<'_>,
) -> Found {
    let mut found = Found::default();
    check_durations(body, &mut found.mistakes);
    for (name, value) in body {
        let field = fields.iter().find(|field| field.name == name);
        let meaning = match field {
            Some(field) => &field.meaning,
            None if also(name) => &Same,
            None => {
                if found.messages.len() < MESSAGES_MAX {
                    let name = key_name(name);
                    let message = format!("{name}: unknown field, ignored");
                    found.messages.push(message);
                }
                continue;
            }
        };
        set(name, meaning, value, values, &mut found);
    }
    found
}

/// Reports two lengths of a session that are not the same one.
fn check_durations(body: &Map<String, Value>, mistakes: &mut Mistakes) {
    let number = |name: &str| number(body.get(name)?).as_u64();
    let (Some(minutes), Some(seconds)) = (number(SESSION_DURATION), number(SECONDS)) else {
        return;
    };
    if seconds.div_ceil(60) != minutes {
        let message = format!(
            "{SESSION_DURATION} is {minutes} minutes, and {SECONDS} is {seconds}: send one of them"
        );
        mistakes.add(SECONDS, message);
    }
}

fn set(name: &str, meaning: &Meaning, value: &Value, values: &mut Values<'_>, found: &mut Found) {
    let key = match meaning {
        ReadOnly => return,
        Minutes | Seconds => SESSION_DURATION,
        _ => name,
    };
    if matches!(meaning, Kept(_) | Language) {
        values.sent.remove(key);
    }
    // The other one of the two lengths may be there.
    if value.is_null() && matches!(meaning, Seconds) {
        return;
    }
    if value.is_null() || (matches!(meaning, Text | Language) && value.as_str() == Some("")) {
        values.file.remove(key);
        return;
    }
    let typed = match meaning {
        ReadOnly | Same | Text => value.clone(),
        Word => lower(value),
        Words => match value {
            Value::Object(words) => {
                let words = words.iter().filter(|(_, word)| !word.is_null());
                Value::Object(
                    words
                        .map(|(key, word)| (key.clone(), lower(word)))
                        .collect(),
                )
            }
            other => other.clone(),
        },
        Number => number(value),
        Minutes => with_unit(value, "m"),
        Seconds => with_unit(value, "s"),
        Language => {
            if value
                .as_str()
                .is_some_and(|tag| OTHER_LANGUAGES.contains(&tag))
            {
                let message = format!(
                    "{name}: there are no texts in this language; pages are in \
                                       that of the visitor's browser, or in English"
                );
                found.messages.push(message);
                values.sent.insert(key.to_owned(), value.clone());
                values.file.remove(key);
                return;
            }
            value.clone()
        }
        Kept(allowed) => {
            let word = lower(value);
            if word.as_str().is_some_and(|word| allowed.contains(&word)) {
                let message = format!("{name}: kept, without an effect");
                found.messages.push(message);
                values.sent.insert(key.to_owned(), word);
            } else {
                let message = format!("{name} may be {}", allowed.join(" or "));
                found.mistakes.add_missing_feature(name, &message);
            }
            return;
        }
    };
    // A client that sends both means the exact one.
    let minutes = value.as_u64().filter(|_| matches!(meaning, Minutes));
    let is_less_exact = minutes.is_some() && minutes_of(values.file) == minutes;
    if !is_less_exact {
        values.file.insert(key.to_owned(), typed);
    }
}

fn lower(value: &Value) -> Value {
    match value {
        Value::String(word) => word.to_lowercase().into(),
        other => other.clone(),
    }
}

fn number(value: &Value) -> Value {
    let text = value.as_str().and_then(|text| text.parse::<u64>().ok());
    text.map_or_else(|| value.clone(), Value::from)
}

/// Returns a number with a unit, as the file has it.
fn with_unit(value: &Value, unit: &str) -> Value {
    match value {
        Value::Number(number) => format!("{number}{unit}").into(),
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{text}{unit}").into()
        }
        other => other.clone(),
    }
}

fn session(file: &Map<String, Value>) -> Option<DurationMs> {
    let text = file.get(SESSION_DURATION)?.as_str()?;
    duration::parse(text)
}

fn minutes_of(file: &Map<String, Value>) -> Option<u64> {
    session(file).map(|session| session.0.div_ceil(60_000))
}

/// Returns the fields with their values, and the defaults of the others. Keys of the file that are
/// no fields follow.
pub(super) fn written(
    fields: &[Field],
    file: &Map<String, Value>,
    sent: &Map<String, Value>,
) -> Map<String, Value> {
    let mut written = Map::new();
    for field in fields {
        let default = || serde_json::from_str(field.default).unwrap_or_default();
        let value = match &field.meaning {
            ReadOnly => None,
            Minutes => minutes_of(file).map(Value::from),
            Seconds => session(file).map(|session| Value::from(session.0.div_ceil(1_000))),
            Language | Kept(_) => sent
                .get(field.name)
                .or_else(|| file.get(field.name))
                .cloned(),
            Words => file
                .get(field.name)
                .map(|value| with_defaults(value, default())),
            Same | Word | Text | Number => file.get(field.name).cloned(),
        };
        written.insert(field.name.to_owned(), value.unwrap_or_else(default));
    }
    for (key, value) in file {
        if !written.contains_key(key) {
            written.insert(key.clone(), value.clone());
        }
    }
    written
}

/// Returns an object with the members that it lacks.
fn with_defaults(value: &Value, mut defaults: Value) -> Value {
    if let (Value::Object(all), Value::Object(set)) = (&mut defaults, value) {
        all.extend(set.clone());
    }
    defaults
}

/// Whether a room has this key in the file, and may have it over the API.
pub(super) fn is_room_key(name: &str) -> bool {
    const NOT_HERE: [&str; 7] = [
        "id",
        "event",
        "bypass",
        "origin",
        "origins",
        "origin_http2",
        "custom_page_file",
    ];
    static KEYS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let known = Config::known_keys().into_keys();
        let of_rooms = known.filter_map(|path| {
            let key = path.strip_prefix("room.")?;
            key.split('.').next().map(str::to_owned)
        });
        of_rooms.collect()
    });
    !NOT_HERE.contains(&name) && KEYS.contains(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    fn check(body: Value, expected: Value, messages: usize, mistakes: &str) {
        let (mut file, mut sent) = (Map::new(), Map::new());
        let mut values = Values {
            file: &mut file,
            sent: &mut sent,
        };
        let found = read(ROOM, is_room_key, &object(body), &mut values);
        assert_eq!(Value::Object(file), expected);
        assert_eq!(found.messages.len(), messages, "{:?}", found.messages);
        let mistakes_found = format!("{:?}", found.mistakes);
        assert!(mistakes_found.contains(mistakes), "{mistakes_found}");
    }

    #[test]
    fn what_clients_send_becomes_keys_of_the_file() {
        check(
            json!({
                "queueing_method": "FIFO", "queueing_status_code": "202", "cookie_suffix": "",
                "session_duration": 7, "cookie_attributes": {"samesite": "Lax", "secure": null},
                "id": "x", "created_on": "y", "next_event_start_time": null,
            }),
            json!({
                "queueing_method": "fifo", "queueing_status_code": 202, "session_duration": "7m",
                "cookie_attributes": {"samesite": "lax"},
            }),
            0,
            "[]",
        );
        check(
            json!({"session_duration": 2, "session_duration_seconds": 90}),
            json!({"session_duration": "90s"}),
            0,
            "[]",
        );
        check(
            json!({"session_duration": 7, "session_duration_seconds": null}),
            json!({"session_duration": "7m"}),
            0,
            "[]",
        );
        check(
            json!({"session_duration": 10, "session_duration_seconds": 300}),
            json!({"session_duration": "300s"}),
            0,
            "send one of them",
        );
        check(
            json!({"session_duration": "soon"}),
            json!({"session_duration": "soon"}),
            0,
            "[]",
        );
        check(
            json!({"pacing": false, "plan": "x"}),
            json!({"pacing": false}),
            1,
            "[]",
        );
        check(
            json!({"turnstile_mode": "visible_managed", "turnstile_action": "log"}),
            json!({}),
            1,
            "1034",
        );
        check(
            json!({"default_template_language": "hr-HR"}),
            json!({}),
            1,
            "[]",
        );
        check(json!({"origin": "http://10.0.0.1"}), json!({}), 1, "[]");
    }

    #[test]
    fn a_room_without_values_has_the_defaults_of_the_wire() {
        let written = written(ROOM, &Map::new(), &Map::new());
        assert_eq!(written["queueing_method"], "fifo");
        assert_eq!(written["session_duration"], 5);
        assert_eq!(written["cookie_attributes"]["secure"], "auto");
        assert_eq!(written["next_event_start_time"], Value::Null);
        // Without the key, an origin may end sessions.
        assert_eq!(written["enabled_origin_commands"], json!(["revoke"]));
        let file = object(json!({"session_duration": "90s", "pacing": false}));
        let written = super::written(ROOM, &file, &Map::new());
        assert_eq!(written["session_duration"], 2);
        assert_eq!(written["session_duration_seconds"], 90);
        assert_eq!(written["pacing"], false);
    }
}
