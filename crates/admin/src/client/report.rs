//! `anteroom report ROOM EVENT`: did the limits hold in an event, and how did visitors fare?
//!
//! The gateway makes the report from the rows of all nodes, so any node will do.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anteroom_config::RoomName;
use anyhow::Context as _;
use clap::Args;

use crate::client::history::{SpanOptions, fetch, path, write_page};
use crate::client::http::NOT_OURS;
use crate::client::options::{ADMIN, AdminAddress, Connection, address};
use crate::client::room::{event_name, room_name};
use crate::client::text::printable;

const EXAMPLES: &str = "\
Examples:
  anteroom report shop friday                       an event, from its prequeue to its end
  anteroom report shop friday --html friday.html    a page with charts, to mail
  anteroom report shop --from 2030-01-31T10:00:00Z --to 2030-01-31T12:00:00Z";

/// Flags of `anteroom report`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReportOptions {
    /// Name of the room
    #[arg(value_name = "ROOM", value_parser = room_name)]
    room: RoomName,
    /// Name of an event of the room; without it, give a time
    #[arg(
        value_name = "EVENT",
        value_parser = event_name,
        required_unless_present_any = ["from", "to"],
        conflicts_with_all = ["from", "to"]
    )]
    event: Option<String>,
    #[command(flatten)]
    span: SpanOptions,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// Admin address of the gateway; any node will do
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = ADMIN,
        value_parser = address
    )]
    admin: AdminAddress,
    #[command(flatten)]
    connection: Connection,
}

/// Prints the report of an event. The exit code is 2 if the time is not allowed, or the event has
/// not begun.
///
/// # Errors
///
/// If the gateway, the room or the event does not exist, the token is not valid, the store is
/// unavailable, or the result cannot be written.
pub async fn run(
    options: ReportOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let format = match (&options.html, options.connection.json) {
        (Some(_), _) => "html",
        (None, true) => "json",
        (None, false) => "text",
    };
    let parameters = options.span.parameters().into_iter().chain([
        ("event", options.event.clone()),
        ("format", Some(format.to_owned())),
    ]);
    let path = path(&format!("rooms/{}/report", options.room), parameters);
    let about = format!("report of room {}", options.room);
    let found = fetch(&options.admin, &options.connection, (path, about), out, err).await?;
    let body = match found {
        Ok(body) => body,
        Err(code) => return Ok(code),
    };
    if let Some(file) = &options.html {
        write_page(file, &body, out)?;
    } else if options.connection.json {
        out.write_all(&body)?;
        writeln!(out)?;
    } else {
        let text = std::str::from_utf8(&body).context(NOT_OURS)?;
        for line in text.lines() {
            writeln!(out, "{}", printable(line))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
