//! `anteroom room ...`: rooms and events over the API, and overrides of running rooms.
//!
//! This module turns arguments into a request and the response into text; the gateway decides.
//! Changes need the token in the gateway's data folder, or one from its `admin_token_file`.

mod text;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anteroom_config::overrides::{Log, RoomOverridesView};
use anteroom_config::{EventName, RoomName};
use anteroom_room::visitor_code::VisitorCode;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use futures_util::future::join_all;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::api_rooms::Imported;
use crate::api_v1::{RoomDocument, RoomDocuments};
use crate::client::commands::{
    EXIT_FAILED, EXIT_NOT_ALLOWED, EXIT_THIS_NODE_ONLY, OperatorReply, OperatorRequest, execute,
};
use crate::client::http::NOT_OURS;
use crate::client::options::{ADMIN, AdminAddress, Connection, address};
use crate::client::text as common;
use crate::found_visitors::FoundVisitors;

/// Path of the document of all rooms.
const DOCUMENT: &str = "rooms-document";
/// Word for no value.
const NONE: &str = "none";

/// Flags of `anteroom room`.
#[derive(Args, Clone, Debug)]
pub struct RoomOptions {
    #[command(subcommand)]
    command: RoomCommand,
    /// Admin address of the gateway; any node will do. Several times: a command about what runs
    /// goes to each of these nodes, even if one does not respond
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = ADMIN,
        value_parser = address,
        global = true
    )]
    admin: Vec<AdminAddress>,
    #[command(flatten)]
    connection: Connection,
}

/// Room of a command.
#[derive(Args, Clone, Debug)]
struct RoomArgument {
    /// Name of the room
    #[arg(value_name = "ROOM", value_parser = room_name)]
    name: RoomName,
}

/// Scope of a command.
#[derive(Args, Clone, Debug)]
struct NodeOptions {
    #[command(flatten)]
    room: RoomArgument,
    /// Skip the store: this node obeys at once, all others as soon as the store replies
    #[arg(long)]
    this_node: bool,
}

/// End of an override.
#[derive(Args, Clone, Debug)]
struct EndOption {
    /// End: a time such as 2030-01-31T10:00:00+01:00, event_end, or none. Values and messages that
    /// are set during an event end with it unless you say otherwise
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl EndOption {
    /// Adds the end to the body of a request.
    fn added_to(&self, mut body: Value) -> Value {
        if let Some(until) = &self.until {
            body["until"] = Value::from(until.as_str());
        }
        body
    }
}

/// Subcommand of `anteroom room`.
#[derive(Clone, Debug, Subcommand)]
enum RoomCommand {
    /// Print all rooms, those of the file and those of the API
    List,
    /// Create a room, which all nodes serve within two seconds
    Create {
        #[command(flatten)]
        room: RoomArgument,
        #[command(flatten)]
        content: ContentOptions,
    },
    /// Change keys of a room that was created over the API
    Edit {
        #[command(flatten)]
        room: RoomArgument,
        #[command(flatten)]
        content: ContentOptions,
    },
    /// Delete a room that was created over the API, if nobody waits or it is suspended
    Delete(RoomArgument),
    /// Create, change and delete events of a room that was created over the API
    #[command(subcommand)]
    Event(EventCommand),
    /// Write all rooms of the API with their pages to standard output, for `import`
    Export,
    /// Create or replace the rooms of an export in one change; other rooms stay
    Import {
        /// File with an export
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Write nothing, and print what would change
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the values in force, and which of them an operator set
    Show {
        #[command(flatten)]
        room: RoomArgument,
        /// Time: what will be in force then, if nobody changes anything
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
    },
    /// Set keys of the configuration, such as total_active_users=300; they win until `reset`
    Set {
        #[command(flatten)]
        room: RoomArgument,
        /// Keys and values as in the file, without quotes. Write `none` for no value:
        /// `opens_at=none` removes the opening time
        #[arg(required = true, value_name = "KEY=VALUE")]
        values: Vec<String>,
        #[command(flatten)]
        end: EndOption,
    },
    /// Admit nobody new, and say so on the page; active visitors stay
    Pause {
        #[command(flatten)]
        node: NodeOptions,
        /// Reason, and the time of the next update
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
        #[command(flatten)]
        end: EndOption,
    },
    /// End a pause: everything is as it was before it
    Resume(NodeOptions),
    /// Queue everybody who is not active, until `open`
    QueueAll {
        #[command(flatten)]
        node: NodeOptions,
        #[command(flatten)]
        end: EndOption,
    },
    /// End a pause and queue-all, and open a room before its opens_at
    Open(NodeOptions),
    /// Put a message on the page; an empty one removes it
    Message {
        #[command(flatten)]
        node: NodeOptions,
        /// One line of plain text
        text: String,
        #[command(flatten)]
        end: EndOption,
    },
    /// Return to the value of the file: a key, `message` or `pause`; without one, everything
    Reset {
        #[command(flatten)]
        room: RoomArgument,
        /// Key of the configuration, `message` or `pause`
        key: Option<String>,
    },
    /// Assume that nobody is active: a room whose store has lost its memory admits at once
    ///
    /// After such a loss a room admits nobody until all earlier leases have ended; `status` shows
    /// DEGRADED: recovering. Use this command if you know that nobody is active, or accept more
    /// active visitors than the limit for the length of a session.
    AssumeEmpty(RoomArgument),
    /// Print what the node knows of the visitor with a code, who waits or is active
    ///
    /// The waiting page shows its visitor the code. Only the visitor has its ticket. So a node
    /// knows visitors who wait and polled there lately, and seats that it gave or extended itself.
    /// Name every node with --admin.
    Find {
        #[command(flatten)]
        room: RoomArgument,
        /// Code as on the visitor's page, such as 3F9A-12C4
        #[arg(value_parser = str::parse::<VisitorCode>)]
        code: VisitorCode,
    },
    /// End the session of the active visitor with a code; its seat becomes free
    ///
    /// A node knows visitors whose seats it gave or extended itself: name every node with --admin.
    Revoke {
        #[command(flatten)]
        room: RoomArgument,
        /// Code as on the visitor's page, such as 3F9A-12C4
        #[arg(value_parser = str::parse::<VisitorCode>)]
        code: VisitorCode,
        /// Whole id of the visitor, if several have the code
        #[arg(long, value_name = "ID")]
        visitor: Option<String>,
    },
    /// Print who changed what, and when
    Audit(RoomArgument),
    /// Print who changed rooms of the API with their events and rules, and when
    Changes,
    /// Undo a change of a room of the API, if none of its values has changed since
    UndoChange {
        /// Version of the change, as `changes` prints it
        version: u64,
    },
    /// Return each key of a change to its value before it, if none has changed since
    Undo {
        #[command(flatten)]
        room: RoomArgument,
        /// Version of the change, as `audit` prints it
        version: u64,
    },
}

/// Content of a room of the API.
#[derive(Args, Clone, Debug)]
struct ContentOptions {
    /// Keys and values of `[[room]]` as in the file, without quotes; lists and tables as JSON.
    /// Write `none` to return to the default of a key
    #[arg(value_name = "KEY=VALUE")]
    values: Vec<String>,
    /// Site that serves the room [default: the one that serves its host]
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// Description for operators
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Template of the waiting page, as custom_page_html
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Bypass rule in CEL; several times, in order. They replace the rules that the room has
    #[arg(long, value_name = "CEL")]
    rule: Vec<String>,
}

/// Subcommand of `anteroom room event`.
#[derive(Clone, Debug, Subcommand)]
enum EventCommand {
    /// Print the events of a room, of the file or of the API
    List(RoomArgument),
    /// Schedule an event
    Create(EventContent),
    /// Change an event; it cannot start at another time once it has started
    Edit(EventContent),
    /// Delete an event
    Delete(EventArgument),
}

/// Event of a command.
#[derive(Args, Clone, Debug)]
struct EventArgument {
    #[command(flatten)]
    room: RoomArgument,
    /// Name of the event
    #[arg(value_name = "EVENT", value_parser = event_name)]
    event: String,
}

/// Content of an event.
#[derive(Args, Clone, Debug)]
struct EventContent {
    #[command(flatten)]
    event: EventArgument,
    /// Keys and values of `[[room.event]]`, such as event_start_time=2030-01-31T10:00:00+01:00
    #[arg(required = true, value_name = "KEY=VALUE")]
    values: Vec<String>,
}

impl ContentOptions {
    fn body(&self) -> anyhow::Result<Map<String, Value>> {
        let mut values = content(&self.values)?;
        if let Some(page) = &self.page {
            let html = fs::read_to_string(page)
                .with_context(|| format!("cannot read the page in {}", page.display()))?;
            values.insert("custom_page_html".to_owned(), html.into());
        }
        let mut body = Map::new();
        let texts = [("site", &self.site), ("description", &self.description)];
        for (key, text) in texts {
            body.extend(text.as_ref().map(|text| (key.to_owned(), json!(text))));
        }
        if !self.rule.is_empty() {
            let rules = self.rule.iter().map(|rule| json!({ "expression": rule }));
            body.insert("rules".to_owned(), rules.collect());
        }
        if !values.is_empty() {
            body.insert("values".to_owned(), values.into());
        }
        anyhow::ensure!(!body.is_empty(), "nothing to write; give KEY=VALUE");
        Ok(body)
    }

    /// Returns the body of a new room.
    fn body_of(&self, name: &str) -> anyhow::Result<Map<String, Value>> {
        let mut body = self.body()?;
        let values = body.entry("values").or_insert_with(|| json!({}));
        values["name"] = name.into();
        Ok(body)
    }
}

/// Returns a request with a token.
fn request(method: Method, path: String, body: Option<Value>) -> OperatorRequest {
    OperatorRequest { method, path, body }
}

impl EventCommand {
    fn request(&self) -> anyhow::Result<OperatorRequest> {
        let path =
            |event: &EventArgument| format!("rooms/{}/events/{}", event.room.name, event.event);
        Ok(match self {
            Self::List(room) => request(Method::GET, format!("rooms/{}", room.name), None),
            Self::Create(EventContent { event, values }) => {
                let mut values = content(values)?;
                values.insert("name".to_owned(), event.event.as_str().into());
                let path = format!("rooms/{}/events", event.room.name);
                request(Method::POST, path, Some(values.into()))
            }
            Self::Edit(EventContent { event, values }) => {
                let body = content(values)?.into();
                request(Method::PATCH, path(event), Some(body))
            }
            Self::Delete(event) => request(Method::DELETE, path(event), None),
        })
    }
}

impl RoomCommand {
    /// Returns the request for the gateway.
    fn request(&self) -> anyhow::Result<OperatorRequest> {
        let post = |room: &RoomArgument, path: &str, body| {
            let path = format!("rooms/{}/{path}", room.name);
            request(Method::POST, path, Some(body))
        };
        let get = |room: &RoomArgument, path: &str| {
            request(Method::GET, format!("rooms/{}/{path}", room.name), None)
        };
        let post_to = |node: &NodeOptions, path, mut body: Value| {
            if node.this_node {
                body["thisNode"] = true.into();
            }
            post(&node.room, path, body)
        };
        Ok(match self {
            Self::List => request(Method::GET, "rooms".to_owned(), None),
            Self::Create { room, content } => {
                let body = content.body_of(room.name.as_str())?;
                request(Method::POST, "rooms".to_owned(), Some(body.into()))
            }
            Self::Edit { room, content } => {
                let path = format!("rooms/{}", room.name);
                request(Method::PATCH, path, Some(content.body()?.into()))
            }
            Self::Delete(room) => request(Method::DELETE, format!("rooms/{}", room.name), None),
            Self::Event(event) => event.request()?,
            Self::Export => request(Method::GET, DOCUMENT.to_owned(), None),
            Self::Import { file, dry_run } => import(file, *dry_run)?,
            Self::Show { room, at } => {
                let at = at
                    .iter()
                    .map(|at| utf8_percent_encode(at, NON_ALPHANUMERIC));
                let query: String = at.map(|at| format!("?at={at}")).collect();
                get(room, &format!("settings{query}"))
            }
            Self::Audit(room) => get(room, "audit"),
            Self::Changes => request(Method::GET, "audit/rooms".to_owned(), None),
            Self::UndoChange { version } => {
                let body = json!({ "version": version });
                request(Method::POST, "audit/rooms/undo".to_owned(), Some(body))
            }
            Self::Find { room, code } => get(room, &format!("visitors/{code}")),
            Self::Revoke {
                room,
                code,
                visitor,
            } => {
                let path = format!("visitors/{code}/revoke");
                post(room, &path, json!({ "visitor": visitor }))
            }
            Self::Undo { room, version } => post(room, "undo", json!({ "version": version })),
            Self::Set { room, values, end } => {
                let values = Value::Object(typed(values)?);
                post(room, "set", end.added_to(values))
            }
            Self::Pause { node, message, end } => {
                let body = json!({ "message": message });
                post_to(node, "pause", end.added_to(body))
            }
            Self::Resume(node) => post_to(node, "resume", json!({})),
            Self::QueueAll { node, end } => post_to(node, "queue-all", end.added_to(json!({}))),
            Self::Open(node) => post_to(node, "open", json!({})),
            Self::Message { node, text, end } => {
                let body = json!({ "message": text });
                post_to(node, "message", end.added_to(body))
            }
            Self::Reset { room, key } => post(room, "reset", json!({ "key": key })),
            Self::AssumeEmpty(room) => post(room, "assume-empty", json!({})),
        })
    }

    fn is_for_this_node(&self) -> bool {
        match self {
            Self::Pause { node, .. }
            | Self::Resume(node)
            | Self::QueueAll { node, .. }
            | Self::Open(node)
            | Self::Message { node, .. } => node.this_node,
            _ => false,
        }
    }

    /// Whether the command is about the record of all nodes, so that one of them is enough.
    fn is_for_any_node(&self) -> bool {
        matches!(
            self,
            Self::List
                | Self::Create { .. }
                | Self::Edit { .. }
                | Self::Delete(_)
                | Self::Event(_)
                | Self::Changes
                | Self::UndoChange { .. }
        )
    }

    /// Returns what the command is about, for errors.
    fn about(&self) -> String {
        let room = match self {
            Self::List
            | Self::Export
            | Self::Import { .. }
            | Self::Changes
            | Self::UndoChange { .. } => return "rooms".to_owned(),
            Self::Create { room, .. }
            | Self::Edit { room, .. }
            | Self::Delete(room)
            | Self::Show { room, .. }
            | Self::Set { room, .. }
            | Self::Revoke { room, .. }
            | Self::Undo { room, .. }
            | Self::Reset { room, .. }
            | Self::AssumeEmpty(room)
            | Self::Find { room, .. }
            | Self::Audit(room)
            | Self::Event(EventCommand::List(room)) => room,
            Self::Pause { node, .. }
            | Self::Resume(node)
            | Self::QueueAll { node, .. }
            | Self::Open(node)
            | Self::Message { node, .. } => &node.room,
            Self::Event(EventCommand::Create(content) | EventCommand::Edit(content)) => {
                &content.event.room
            }
            Self::Event(EventCommand::Delete(event)) => &event.room,
        };
        format!("room {}", room.name)
    }
}

/// Returns the request to import the document of an export.
fn import(file: &Path, dry_run: bool) -> anyhow::Result<OperatorRequest> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let document = serde_json::from_str(&text);
    let document = document.with_context(|| format!("{} is no export", file.display()))?;
    let path = format!("{DOCUMENT}?preview={dry_run}");
    Ok(request(Method::POST, path, Some(document)))
}

/// Parses the name of an event. Any other text could form another path of the admin API.
pub(crate) fn event_name(text: &str) -> Result<String, String> {
    let name = EventName::new(text).map(|name| name.to_string());
    name.ok_or_else(|| "an event's name is 1 to 64 of A-Z a-z 0-9 - _".to_owned())
}

/// Parses the name of a room. Any other text could form another path of the admin API.
pub(crate) fn room_name(text: &str) -> Result<RoomName, String> {
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
    let request = options.command.request()?;
    let is_too_many = options.command.is_for_any_node() && options.admin.len() > 1;
    anyhow::ensure!(
        !is_too_many,
        "this command is for all nodes at once: name one of them with --admin"
    );
    let requests = options.admin.iter().map(async |admin| {
        let reply = execute(admin, &options.connection, request.clone()).await;
        reply.with_context(|| format!("{} at {admin}", options.command.about()))
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
            let line = json!({ "node": admin.to_string(), "exitCode": code, "response": body });
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
        RoomCommand::List => {
            text::rooms(&serde_json::from_value::<RoomDocuments>(body).context(NOT_OURS)?)
        }
        RoomCommand::Create { .. }
        | RoomCommand::Edit { .. }
        | RoomCommand::Event(_)
        | RoomCommand::UndoChange { .. } => {
            text::room(&serde_json::from_value::<RoomDocument>(body).context(NOT_OURS)?)
        }
        RoomCommand::Export => format!("{body}\n"),
        RoomCommand::Import { dry_run, .. } => text::imported(
            &serde_json::from_value::<Imported>(body).context(NOT_OURS)?,
            *dry_run,
        ),
        RoomCommand::Delete(room) => format!("room {}: deleted\n", room.name),
        RoomCommand::AssumeEmpty(room) => {
            text::assumed_empty(room.name.as_str(), body["reopensAt"].is_null())
        }
        RoomCommand::Audit(_) | RoomCommand::Changes => {
            common::log(&serde_json::from_value::<Log>(body).context(NOT_OURS)?)
        }
        RoomCommand::Find { .. } | RoomCommand::Revoke { .. } => {
            text::found(&serde_json::from_value::<FoundVisitors>(body).context(NOT_OURS)?)
        }
        RoomCommand::Show { .. } => {
            text::shown(&serde_json::from_value::<RoomOverridesView>(body).context(NOT_OURS)?)
        }
        _ => text::short(&serde_json::from_value::<RoomOverridesView>(body).context(NOT_OURS)?),
    })
}

/// Formats a reply as one line after a command, for the name of a node in front of it.
fn render_short(options: &RoomOptions, body: Value) -> anyhow::Result<String> {
    Ok(match &options.command {
        RoomCommand::AssumeEmpty(_)
        | RoomCommand::Audit(_)
        | RoomCommand::Find { .. }
        | RoomCommand::Revoke { .. }
        | RoomCommand::Show { .. } => {
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

/// Converts `key=value` arguments to JSON, as for an override. Lists and tables are JSON already,
/// and `none` removes a key.
fn content(words: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut values = typed(words)?;
    for value in values.values_mut() {
        let Some(text) = value.as_str() else {
            continue;
        };
        if text == NONE {
            *value = Value::Null;
        } else if text.starts_with(['[', '{'])
            && let Ok(parsed) = serde_json::from_str(text)
        {
            *value = parsed;
        }
    }
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
    fn lists_and_tables_of_a_room_are_json() {
        let found = content(&words(&[
            "additional_routes=[{\"host\": \"b.example\"}]",
            "path=none",
            "cookie_suffix=[x",
        ]));
        let expected = json!({
            "additional_routes": [{ "host": "b.example" }],
            "path": null,
            "cookie_suffix": "[x",
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
