//! `anteroom room NAME ...`: overrides and commands of a running room.
//!
//! This module turns arguments into a request and the response into text; the gateway decides.
//! Changes need the token in the gateway's data folder, or one from its `admin_token_file`.

mod text;

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;

use anteroom_config::RoomName;
use anteroom_config::overrides::{Log, RoomOverridesView};
use anteroom_room::visitor_code::VisitorCode;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use futures_util::future::join_all;
use http::Method;
use serde_json::{Map, Value, json};

use crate::client::commands::{
    EXIT_FAILED, EXIT_NOT_ALLOWED, EXIT_THIS_NODE_ONLY, OperatorReply, OperatorRequest, execute,
};
use crate::client::http::NOT_OURS;
use crate::client::options::{ADMIN, Connection, address};
use crate::client::text as common;
use crate::found_visitors::FoundVisitors;

/// Flags of `anteroom room`.
#[derive(Args, Clone, Debug)]
pub struct RoomOptions {
    /// Name of the room
    #[arg(value_parser = room_name)]
    name: RoomName,
    #[command(subcommand)]
    command: RoomCommand,
    /// Admin address of the gateway; any node will do. Several times: the command goes to each of
    /// these nodes, even if one does not respond
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

/// Scope of a command.
#[derive(Args, Clone, Copy, Debug)]
struct NodeOptions {
    /// Skip the store: this node obeys at once, all others as soon as the store replies
    #[arg(long)]
    this_node: bool,
}

/// Subcommand of `anteroom room`.
#[derive(Clone, Debug, Subcommand)]
enum RoomCommand {
    /// Print the values in force, and which of them an operator set
    Show,
    /// Set keys of the configuration, such as total_active_users=300; they win until `reset`
    Set {
        /// Keys and values as in the file, without quotes. Write `none` for no value:
        /// `opens_at=none` removes the opening time
        #[arg(required = true, value_name = "KEY=VALUE")]
        values: Vec<String>,
    },
    /// Admit nobody new, and say so on the page; active visitors stay
    Pause {
        /// Reason, and the time of the next update
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
        #[command(flatten)]
        node: NodeOptions,
    },
    /// End a pause: everything is as it was before it
    Resume(NodeOptions),
    /// Queue everybody who is not active, until `open`
    QueueAll(NodeOptions),
    /// End a pause and queue-all, and open a room before its opens_at
    Open(NodeOptions),
    /// Put a message on the page; an empty one removes it
    Message {
        /// One line of plain text
        text: String,
        #[command(flatten)]
        node: NodeOptions,
    },
    /// Return to the value of the file: a key, `message` or `pause`; without one, everything
    Reset {
        /// Key of the configuration, `message` or `pause`
        key: Option<String>,
    },
    /// Assume that nobody is active: a room whose store has lost its memory admits at once
    ///
    /// After such a loss a room admits nobody until all earlier leases have ended; `status` shows
    /// DEGRADED: recovering. Use this command if you know that nobody is active, or accept more
    /// active visitors than the limit for the length of a session.
    AssumeEmpty,
    /// Print what the node knows of the visitor with a code, who waits or is active
    ///
    /// The waiting page shows its visitor the code. Only the visitor has its ticket. So a node
    /// knows visitors who wait and polled there lately, and seats that it gave or extended itself.
    /// Name every node with --admin.
    Find {
        /// Code as on the visitor's page, such as 3F9A-12C4
        #[arg(value_parser = str::parse::<VisitorCode>)]
        code: VisitorCode,
    },
    /// Print who changed what, and when
    Audit,
}

impl RoomCommand {
    /// Returns the request for the gateway.
    fn request(&self, room: &RoomName) -> anyhow::Result<OperatorRequest> {
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
            Self::Find { code } => get(&format!("visitors/{code}"), true),
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

/// Parses the name of a room. Any other text could form another path of the admin API.
fn room_name(text: &str) -> Result<RoomName, String> {
    RoomName::new(text).ok_or_else(|| "a room's name is 1 to 64 of A-Z a-z 0-9 - _".to_owned())
}

/// Sends a command to one or several gateways and prints the responses.
///
/// The exit code is 1 if a node did not obey, else 2 if the command is not allowed at one. It is 3
/// if the command applies at single nodes only because their store is unavailable.
///
/// # Errors
///
/// If the gateway or the room does not exist, the token is not valid, or the store is unavailable.
/// With several gateways only if nothing can be printed.
pub async fn run(
    options: RoomOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let request = options.command.request(&options.name)?;
    let requests = options.admin.iter().map(async |admin| {
        let reply = execute(*admin, request.clone(), &options.connection.token_file).await;
        reply.with_context(|| format!("room {} at {admin}", options.name))
    });
    let mut replies = join_all(requests).await;
    if replies.len() > 1 {
        return print_each(&options, replies, out, err);
    }
    let reply = replies.pop().context("no --admin address")??;
    let code = exit_code(&options.command, &reply);
    let (OperatorReply::Done(body)
    | OperatorReply::ThisNodeOnly(body)
    | OperatorReply::NotAllowed(body)) = &reply;
    if options.connection.json {
        out.write_all(format!("{body}\n").as_bytes())?;
    } else if let OperatorReply::NotAllowed(body) = &reply {
        writeln!(err, "{}", common::problems(body).trim_end())?;
    } else {
        out.write_all(render(&options, body.clone())?.as_bytes())?;
    }
    Ok(ExitCode::from(code))
}

/// Prints the reply of each node: one line after a command, all of the response after a query.
fn print_each(
    options: &RoomOptions,
    replies: Vec<anyhow::Result<OperatorReply>>,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut codes = Vec::new();
    for (admin, reply) in options.admin.iter().zip(replies) {
        let code = reply
            .as_ref()
            .map_or(EXIT_FAILED, |reply| exit_code(&options.command, reply));
        codes.push(code);
        if options.connection.json {
            let body = match reply {
                Ok(
                    OperatorReply::Done(body)
                    | OperatorReply::ThisNodeOnly(body)
                    | OperatorReply::NotAllowed(body),
                ) => body,
                Err(error) => json!({ "message": format!("{error:#}") }),
            };
            let line = json!({ "node": admin, "exitCode": code, "response": body });
            out.write_all(format!("{line}\n").as_bytes())?;
            continue;
        }
        match reply {
            Ok(OperatorReply::Done(body) | OperatorReply::ThisNodeOnly(body)) => {
                out.write_all(format!("{admin}: {}", render_short(options, body)?).as_bytes())?;
            }
            Ok(OperatorReply::NotAllowed(body)) => {
                let problems = common::problems(&body);
                writeln!(err, "{admin}: {}", problems.trim_end().replace('\n', "; "))?;
            }
            Err(error) => writeln!(err, "{admin}: error: {error:#}")?,
        }
    }
    let worst = [EXIT_FAILED, EXIT_NOT_ALLOWED, EXIT_THIS_NODE_ONLY];
    let worst = worst.into_iter().find(|code| codes.contains(code));
    Ok(worst.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Returns the exit code. A command for one node succeeds when that node obeys.
fn exit_code(command: &RoomCommand, reply: &OperatorReply) -> u8 {
    match reply {
        OperatorReply::NotAllowed(_) => EXIT_NOT_ALLOWED,
        OperatorReply::ThisNodeOnly(_) if !command.is_for_this_node() => EXIT_THIS_NODE_ONLY,
        OperatorReply::ThisNodeOnly(_) | OperatorReply::Done(_) => 0,
    }
}

fn render(options: &RoomOptions, body: Value) -> anyhow::Result<String> {
    Ok(match &options.command {
        RoomCommand::AssumeEmpty => {
            text::assumed_empty(options.name.as_str(), body["reopensAt"].is_null())
        }
        RoomCommand::Audit => common::log(&serde_json::from_value::<Log>(body).context(NOT_OURS)?),
        RoomCommand::Find { .. } => {
            text::found(&serde_json::from_value::<FoundVisitors>(body).context(NOT_OURS)?)
        }
        RoomCommand::Show => {
            text::shown(&serde_json::from_value::<RoomOverridesView>(body).context(NOT_OURS)?)
        }
        _ => text::short(&serde_json::from_value::<RoomOverridesView>(body).context(NOT_OURS)?),
    })
}

/// Formats a reply as one line after a command, for the name of a node in front of it.
fn render_short(options: &RoomOptions, body: Value) -> anyhow::Result<String> {
    Ok(match &options.command {
        RoomCommand::AssumeEmpty
        | RoomCommand::Audit
        | RoomCommand::Find { .. }
        | RoomCommand::Show => {
            format!("\n{}", render(options, body)?)
        }
        _ => text::line(&serde_json::from_value::<RoomOverridesView>(body).context(NOT_OURS)?),
    })
}

/// Converts `key=value` arguments to JSON.
///
/// # Errors
///
/// If an argument is not `key=value`, or a key comes twice.
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

/// Parses numbers and booleans; everything else is text.
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
    fn arguments_become_typed_json() {
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
    fn all_invalid_arguments_are_reported_together() {
        let error = typed(&words(&["pacing", "=1", "a=1", "a=2"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"pacing\" is not key=value; \"=1\" is not key=value; a: set twice"
        );
    }

    proptest! {
        #[test]
        fn any_argument_parses_or_fails_and_keeps_its_value(
            key in "[a-z_]{1,20}",
            value in "\\PC{0,40}",
            noise in "\\PC{0,40}",
        ) {
            // No input panics.
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
