//! `anteroom room NAME ...`: what an operator says about a room while it runs.
//!
//! Whether it is allowed, and what comes of it, is the gateway's business: here words become a
//! request, and the answer becomes text. Changing takes the token that the gateway keeps in its
//! data folder, or one of those in its `admin_token_file`.

mod text;

use std::net::SocketAddr;
use std::process::ExitCode;

use anteroom_config::RoomName;
use anteroom_config::overrides::{Log, Shown};
use anteroom_config::terminal::{print, tell};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use futures_util::future::join_all;
use http::Method;
use serde_json::{Map, Value, json};

use crate::client::asking::STRANGER;
use crate::client::options::{ADMIN, Connection, address};
use crate::client::saying::{
    EXIT_FAILED, EXIT_HERE_ONLY, EXIT_NOT_ALLOWED, OperatorReply, OperatorRequest, ask,
};
use crate::client::text as common;

/// Flags of `anteroom room`.
#[derive(Args, Clone, Debug)]
pub struct RoomOptions {
    /// Which room
    #[arg(value_parser = room_name)]
    name: RoomName,
    #[command(subcommand)]
    saying: RoomCommand,
    /// Where the gateway's operators connect; any node will do. Several times: each of these nodes
    /// is asked, and all of them even if one does not answer
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = ADMIN,
        value_parser = address,
        global = true
    )]
    admin: Vec<SocketAddr>,
    #[command(flatten)]
    connection: Connection,
}

/// Who obeys first.
#[derive(Args, Clone, Copy, Debug)]
struct NodeOptions {
    /// Do not ask the store first: the node that is asked obeys at once, all others as soon as the
    /// store answers
    #[arg(long)]
    this_node: bool,
}

/// What is said.
#[derive(Clone, Debug, Subcommand)]
enum RoomCommand {
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
        #[command(flatten)]
        node: NodeOptions,
    },
    /// End a pause: everything is as it was before it
    Resume(NodeOptions),
    /// Gather everybody who is not inside in line, until `open`
    QueueAll(NodeOptions),
    /// End a pause and queue-all, and open a room before its opens_at
    Open(NodeOptions),
    /// Put a message on the page; an empty one takes it away
    Message {
        /// One line of plain text
        text: String,
        #[command(flatten)]
        node: NodeOptions,
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

impl RoomCommand {
    /// What is asked of the gateway.
    fn asked(&self, room: &RoomName) -> anyhow::Result<OperatorRequest> {
        let post = |path: &str, body| OperatorRequest {
            method: Method::POST,
            path: format!("rooms/{room}/{path}"),
            body: Some(body),
            needs_token: true,
        };
        let get = |path: &str, needs_token| OperatorRequest {
            method: Method::GET,
            path: format!("rooms/{room}/{path}"),
            body: None,
            needs_token,
        };
        let post_to = |path, mut body: Value| {
            if self.is_for_this_node() {
                body["thisNode"] = true.into();
            }
            post(path, body)
        };
        Ok(match self {
            Self::Show => get("settings", false),
            Self::Audit => get("audit", true),
            Self::Set { values } => post("set", Value::Object(typed(values)?)),
            Self::Pause { message, .. } => post_to("pause", json!({ "message": message })),
            Self::Resume(_) => post_to("resume", json!({})),
            Self::QueueAll(_) => post_to("queue-all", json!({})),
            Self::Open(_) => post_to("open", json!({})),
            Self::Message { text, .. } => post_to("message", json!({ "message": text })),
            Self::Reset { key } => post("reset", json!({ "key": key })),
            Self::AssumeEmpty => post("assume-empty", json!({})),
        })
    }

    fn is_for_this_node(&self) -> bool {
        match self {
            Self::Pause { node, .. }
            | Self::Resume(node)
            | Self::QueueAll(node)
            | Self::Open(node)
            | Self::Message { node, .. } => node.this_node,
            _ => false,
        }
    }
}

/// Anything else would be another path of the gateway's.
fn room_name(text: &str) -> Result<RoomName, String> {
    RoomName::new(text).ok_or_else(|| "a room's name is 1 to 64 of A-Z a-z 0-9 - _".to_owned())
}

/// Tells a gateway, or each of several, and prints what came of it. Exit code 1 if one did not
/// obey, else 2 if it is not allowed at one, else 3 if it holds at single nodes only because their
/// store does not answer.
///
/// # Errors
///
/// If there is no gateway, no such room, no valid token, or the store does not answer. With several
/// gateways only if nothing can be printed.
pub async fn run(options: RoomOptions) -> anyhow::Result<ExitCode> {
    let asked = options.saying.asked(&options.name)?;
    let asking = options.admin.iter().map(async |admin| {
        let answer = ask(*admin, asked.clone(), &options.connection.token_file).await;
        answer.with_context(|| format!("room {} at {admin}", options.name))
    });
    let mut answers = join_all(asking).await;
    if answers.len() > 1 {
        return tell_of_each(&options, answers);
    }
    let answer = answers.pop().context("no --admin address")??;
    let code = exit_code(&options.saying, &answer);
    let (OperatorReply::Done(body) | OperatorReply::Here(body) | OperatorReply::NotAllowed(body)) =
        &answer;
    if options.connection.json {
        print(&format!("{body}\n"))?;
    } else if let OperatorReply::NotAllowed(body) = &answer {
        tell(common::problems(body).trim_end());
    } else {
        print(&told(&options, body.clone())?)?;
    }
    Ok(ExitCode::from(code))
}

/// What came of it at each node: a line for a command, and all that it says where it was asked
/// something.
fn tell_of_each(
    options: &RoomOptions,
    answers: Vec<anyhow::Result<OperatorReply>>,
) -> anyhow::Result<ExitCode> {
    let mut codes = Vec::new();
    for (admin, answer) in options.admin.iter().zip(answers) {
        let code = answer
            .as_ref()
            .map_or(EXIT_FAILED, |answer| exit_code(&options.saying, answer));
        codes.push(code);
        if options.connection.json {
            let answer = match answer {
                Ok(
                    OperatorReply::Done(body)
                    | OperatorReply::Here(body)
                    | OperatorReply::NotAllowed(body),
                ) => body,
                Err(error) => json!({ "message": format!("{error:#}") }),
            };
            let line = json!({ "node": admin, "exitCode": code, "answer": answer });
            print(&format!("{line}\n"))?;
            continue;
        }
        match answer {
            Ok(OperatorReply::Done(body) | OperatorReply::Here(body)) => {
                print(&format!("{admin}: {}", told_in_short(options, body)?))?;
            }
            Ok(OperatorReply::NotAllowed(body)) => {
                let problems = common::problems(&body);
                tell(&format!(
                    "{admin}: {}",
                    problems.trim_end().replace('\n', "; ")
                ));
            }
            Err(error) => tell(&format!("{admin}: error: {error:#}")),
        }
    }
    let worst = [EXIT_FAILED, EXIT_NOT_ALLOWED, EXIT_HERE_ONLY];
    let worst = worst.into_iter().find(|code| codes.contains(code));
    Ok(worst.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// A command for one node is done when that node obeys.
fn exit_code(saying: &RoomCommand, answer: &OperatorReply) -> u8 {
    match answer {
        OperatorReply::NotAllowed(_) => EXIT_NOT_ALLOWED,
        OperatorReply::Here(_) if !saying.is_for_this_node() => EXIT_HERE_ONLY,
        OperatorReply::Here(_) | OperatorReply::Done(_) => 0,
    }
}

fn told(options: &RoomOptions, body: Value) -> anyhow::Result<String> {
    Ok(match &options.saying {
        RoomCommand::AssumeEmpty => {
            text::assumed_empty(options.name.as_str(), body["reopensAt"].as_str())
        }
        RoomCommand::Audit => common::log(&serde_json::from_value::<Log>(body).context(STRANGER)?),
        RoomCommand::Show => text::shown(&serde_json::from_value::<Shown>(body).context(STRANGER)?),
        _ => text::short(&serde_json::from_value::<Shown>(body).context(STRANGER)?),
    })
}

/// One line for a command, after the name of a node.
fn told_in_short(options: &RoomOptions, body: Value) -> anyhow::Result<String> {
    Ok(match &options.saying {
        RoomCommand::AssumeEmpty | RoomCommand::Audit | RoomCommand::Show => {
            format!("\n{}", told(options, body)?)
        }
        _ => text::line(&serde_json::from_value::<Shown>(body).context(STRANGER)?),
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
