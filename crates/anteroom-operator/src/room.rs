//! `anteroom room NAME ...`: what an operator says about a room while it runs.
//!
//! Whether it is allowed, and what comes of it, is the gateway's business: here words become a request,
//! and the answer becomes text. Changing takes the token that the gateway keeps in its data folder, or
//! one of those in its `admin_token_file`.

mod text;

use std::process::ExitCode;

use anteroom_config::RoomName;
use anteroom_config::orders::{Log, Shown};
use anteroom_terminal::{print, tell};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use crate::options::Connection;
use crate::saying::{Answer, Asked, EXIT_NOT_ALLOWED, ask};
use crate::text as common;

/// Flags of `anteroom room`.
#[derive(Args, Clone, Debug)]
pub struct RoomOptions {
    /// Which room
    #[arg(value_parser = room_name)]
    name: RoomName,
    #[command(subcommand)]
    saying: Saying,
    #[command(flatten)]
    connection: Connection,
}

/// What is said.
#[derive(Clone, Debug, Subcommand)]
enum Saying {
    /// Print what holds, and which of it an operator set
    Show,
    /// Set keys of the configuration, such as total_active_users=300; they win until `reset`
    Set {
        /// As in the file, without quotes; none where the file may leave a key out
        #[arg(required = true, value_name = "KEY=VALUE")]
        values: Vec<String>,
    },
    /// Let nobody new in, and say so on the page; those inside stay
    Pause {
        /// Why, and when there will be news
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
    },
    /// End a pause: everything is as it was before it
    Resume,
    /// Gather everybody who is not inside in line, until `open`
    QueueAll,
    /// End a pause and queue-all, and open a room before its opens_at
    Open,
    /// Put a message on the page; an empty one takes it away
    Message {
        /// One line of plain text
        text: String,
    },
    /// Back to what the file says: a key, `message` or `pause`; without one, everything
    Reset {
        /// Which
        key: Option<String>,
    },
    /// Nobody is inside: a room whose store has lost its memory admits at once
    ///
    /// After such a loss a room admits nobody until all that may have been lent before has ended,
    /// which is stated as DEGRADED: recovering. If you know that nobody is inside, or accept that
    /// there are more than the limit for a session, say so.
    AssumeEmpty,
    /// Print who changed what, and when
    Audit,
}

impl Saying {
    /// What is asked of the gateway.
    fn asked(&self, room: &RoomName) -> anyhow::Result<Asked> {
        let post = |path: &str, body| Asked {
            method: Method::POST,
            path: format!("rooms/{room}/{path}"),
            body: Some(body),
            needs_token: true,
        };
        let get = |path: &str, needs_token| Asked {
            method: Method::GET,
            path: format!("rooms/{room}/{path}"),
            body: None,
            needs_token,
        };
        Ok(match self {
            Self::Show => get("settings", false),
            Self::Audit => get("audit", true),
            Self::Set { values } => post("set", Value::Object(typed(values)?)),
            Self::Pause { message } => post("pause", json!({ "message": message })),
            Self::Resume => post("resume", json!({})),
            Self::QueueAll => post("queue-all", json!({})),
            Self::Open => post("open", json!({})),
            Self::Message { text } => post("message", json!({ "message": text })),
            Self::Reset { key } => post("reset", json!({ "key": key })),
            Self::AssumeEmpty => post("assume-empty", json!({})),
        })
    }
}

/// Anything else would be another path of the gateway's.
fn room_name(text: &str) -> Result<RoomName, String> {
    RoomName::new(text).ok_or_else(|| "a room's name is 1 to 64 of A-Z a-z 0-9 - _".to_owned())
}

/// Tells a gateway, and prints what came of it. Exit code 2 if it is not allowed.
///
/// # Errors
///
/// If there is no gateway, no such room, no valid token, or the store does not answer.
pub async fn run(options: RoomOptions) -> anyhow::Result<ExitCode> {
    let room = &options.name;
    let asked = options.saying.asked(room)?;
    let connection = &options.connection;
    let answer = ask(connection.admin, asked, &connection.token_file)
        .await
        .with_context(|| format!("room {room} at {}", connection.admin))?;
    let body = match answer {
        Answer::Done(body) => body,
        Answer::NotAllowed(body) => {
            if connection.json {
                print(&format!("{body}\n"))?;
            } else {
                tell(common::problems(&body).trim_end());
            }
            return Ok(ExitCode::from(EXIT_NOT_ALLOWED));
        }
    };
    if connection.json {
        print(&format!("{body}\n"))?;
    } else {
        print(&told(&options, body)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn told(options: &RoomOptions, body: Value) -> anyhow::Result<String> {
    let strange = "this is no answer of an anteroom gateway of this version";
    Ok(match &options.saying {
        Saying::AssumeEmpty => {
            text::assumed_empty(options.name.as_str(), body["reopensAt"].as_str())
        }
        Saying::Audit => common::log(&serde_json::from_value::<Log>(body).context(strange)?),
        Saying::Show => text::shown(&serde_json::from_value::<Shown>(body).context(strange)?),
        _ => text::short(&serde_json::from_value::<Shown>(body).context(strange)?),
    })
}

/// `key=value` words as the JSON that means the same.
///
/// # Errors
///
/// If one of them is none, or a key comes twice.
fn typed(words: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut values = Map::new();
    let mut mistakes = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                if values
                    .insert(key.trim().to_owned(), value_of(value))
                    .is_some()
                {
                    mistakes.push(format!("{}: set twice", key.trim()));
                }
            }
            _ => mistakes.push(format!("{word:?} is not key=value")),
        }
    }
    anyhow::ensure!(mistakes.is_empty(), "{}", mistakes.join("; "));
    Ok(values)
}

/// Numbers and switches are meant as such; everything else is text.
fn value_of(text: &str) -> Value {
    let text = text.trim();
    match text.parse() {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn words_become_what_they_mean() {
        let found = typed(&words(&[
            "total_active_users=300",
            "session_duration=2m",
            " pacing = true ",
            "curve_factor=1.5",
            "opens_at=2030-01-31T10:00:00+01:00",
            "queueing_method=",
            "a=b=c",
            "list=[1]",
        ]));
        let expected = json!({
            "total_active_users": 300,
            "session_duration": "2m",
            "pacing": true,
            "curve_factor": 1.5,
            "opens_at": "2030-01-31T10:00:00+01:00",
            "queueing_method": "",
            "a": "b=c",
            "list": "[1]",
        });
        assert_eq!(Value::Object(found.unwrap()), expected);
    }

    #[test]
    fn all_words_that_are_none_are_told_at_once() {
        let error = typed(&words(&["pacing", "=1", "a=1", "a=2"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"pacing\" is not key=value; \"=1\" is not key=value; a: set twice"
        );
    }

    proptest! {
        #[test]
        fn any_words_are_read_or_refused_and_a_value_is_never_lost(
            key in "[a-z_]{1,20}",
            value in "\\PC{0,40}",
            noise in "\\PC{0,40}",
        ) {
            // Whatever it is, it does not panic.
            let _ = typed(&words(&[&noise]));
            let found = typed(&words(&[&format!("{key}={value}")])).unwrap();
            let found = &found[&key];
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            let is_same = text == value.trim()
                // A number may be written in more than one way.
                || value.trim().parse::<f64>().ok() == text.parse::<f64>().ok();
            prop_assert!(is_same, "{value:?} became {text:?}");
        }
    }
}
