//! `anteroom history ROOM`: what happened in a room, as a table, CSV, JSON or a page with charts.
//!
//! The gateway merges the rows of all nodes, so any node will do.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anteroom_config::RoomName;
use anteroom_history::HistoryPoint;
use anteroom_history::chart::number::{counted, duration, grouped};
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::api_v1::HistoryBody;
use crate::client::commands::{Content, EXIT_NOT_ALLOWED, read};
use crate::client::http::NOT_OURS;
use crate::client::options::{ADMIN, AdminAddress, Connection, address};
use crate::client::room::room_name;
use crate::client::text::{STRING, errors, printable};

const EXAMPLES: &str = "\
Examples:
  anteroom history shop                     the last hour, minute by minute
  anteroom history shop --from 2030-01-31T10:00:00Z --to 2030-01-31T12:00:00Z --step 5
  anteroom history shop --csv > shop.csv    for a spreadsheet
  anteroom history shop --chart shop.html   a page with charts";

/// Flags of `anteroom history`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct HistoryOptions {
    /// Name of the room
    #[arg(value_name = "ROOM", value_parser = room_name)]
    room: RoomName,
    #[command(flatten)]
    span: SpanOptions,
    /// Minutes of a line, 1 to 1440 [default: as few as give at most 300 lines]
    #[arg(long, value_name = "MINUTES")]
    step: Option<u64>,
    /// Print CSV, with a line of names
    #[arg(long, conflicts_with_all = ["chart", "json"])]
    csv: bool,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    chart: Option<PathBuf>,
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

/// Time that a command is about.
#[derive(Args, Clone, Debug)]
pub(crate) struct SpanOptions {
    /// Begin, such as 2030-01-31T10:00:00Z [default: an hour before the end]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End [default: now]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

impl SpanOptions {
    pub(crate) fn parameters(&self) -> [(&'static str, Option<String>); 2] {
        [("from", self.from.clone()), ("to", self.to.clone())]
    }
}

/// Returns a path with the parameters that have a value.
pub(crate) fn path(
    path: &str,
    parameters: impl IntoIterator<Item = (&'static str, Option<String>)>,
) -> String {
    let mut text = path.to_owned();
    for (name, value) in parameters {
        let Some(value) = value else { continue };
        let before = if text.contains('?') { '&' } else { '?' };
        let value = utf8_percent_encode(&value, NON_ALPHANUMERIC);
        write!(text, "{before}{name}={value}").expect(STRING);
    }
    text
}

/// Reads a path. If the request is not allowed, it prints the reasons and returns the exit code.
pub(crate) async fn fetch(
    admin: &AdminAddress,
    connection: &Connection,
    (path, about): (String, String),
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<Result<Bytes, ExitCode>> {
    let content = read(admin, connection, path).await;
    match content.with_context(|| format!("{about} at {admin}"))? {
        Content::Found(bytes) => Ok(Ok(bytes)),
        Content::NotAllowed(body) => {
            if connection.json {
                writeln!(out, "{body}")?;
            } else {
                writeln!(err, "{}", errors(&body).trim_end())?;
            }
            Ok(Err(ExitCode::from(EXIT_NOT_ALLOWED)))
        }
    }
}

/// Writes a page to a file, and prints where it is.
pub(crate) fn write_page(file: &Path, page: &[u8], out: &mut impl Write) -> anyhow::Result<()> {
    let name = file.display();
    fs::write(file, page).with_context(|| format!("cannot write {name}"))?;
    writeln!(out, "wrote {name}")?;
    Ok(())
}

/// Prints the history of a room. The exit code is 2 if the time or the step is not allowed.
///
/// # Errors
///
/// If the gateway or the room does not exist, the token is not valid, the store is unavailable, or
/// the result cannot be written.
pub async fn run(
    options: HistoryOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let format = match (options.csv, &options.chart) {
        (true, _) => "csv",
        (false, Some(_)) => "html",
        (false, None) => "json",
    };
    let parameters = options.span.parameters().into_iter().chain([
        ("step", options.step.map(|step| step.to_string())),
        ("format", Some(format.to_owned())),
    ]);
    let path = path(&format!("rooms/{}/history", options.room), parameters);
    let about = format!("history of room {}", options.room);
    let found = fetch(&options.admin, &options.connection, (path, about), out, err).await?;
    let body = match found {
        Ok(body) => body,
        Err(code) => return Ok(code),
    };
    if let Some(file) = &options.chart {
        write_page(file, &body, out)?;
    } else if options.csv {
        out.write_all(&body)?;
    } else if options.connection.json {
        out.write_all(&body)?;
        writeln!(out)?;
    } else {
        let body: HistoryBody = serde_json::from_slice(&body).context(NOT_OURS)?;
        out.write_all(table(&body).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Column of the table: name, and the text of a point.
type Column = (&'static str, fn(&HistoryPoint) -> String);

const COLUMNS: [Column; 11] = [
    ("TIME (UTC)", |point| short_time(&point.at)),
    ("CAME", |point| grouped(point.arrivals)),
    ("ADMITTED", |point| grouped(point.admitted)),
    ("OF", |point| {
        let limit = point.new_users_per_minute_max;
        known(limit.map(|limit| u64::from(limit) * point.minutes), grouped)
    }),
    ("ACTIVE", |point| {
        known(point.active_max.map(u64::from), grouped)
    }),
    ("OF", |point| {
        known(point.total_active_users_max.map(u64::from), grouped)
    }),
    ("WAITING", |point| {
        known(point.waiting_max.map(u64::from), grouped)
    }),
    ("LEFT", |point| grouped(point.abandoned)),
    ("HALF WAITED", |point| known(point.wait_p50_ms, duration)),
    ("9 OF 10", |point| known(point.wait_p90_ms, duration)),
    ("ERRORS", |point| {
        grouped(point.origin_5xx.saturating_add(point.origin_none))
    }),
];

fn known(value: Option<u64>, text: fn(u64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// Shortens `2026-11-29T10:00:00Z`, as points begin with a minute.
fn short_time(at: &str) -> String {
    let minute = at.strip_suffix(":00Z").unwrap_or(at);
    printable(&minute.replacen('T', " ", 1))
}

fn table(history: &HistoryBody) -> String {
    let step = counted(history.step_minutes, "minute", "minutes");
    let [room, from, until] =
        [&history.room, &history.from, &history.until].map(|text| printable(text));
    let mut text = format!("room {room}: {from} to {until}, in steps of {step}\n");
    if history.points.is_empty() {
        text.push_str("no node has written a row for this time; rows are written once a minute\n");
        return text;
    }
    let mut lines = vec![COLUMNS.map(|(name, _)| name.to_owned())];
    let points = history.points.iter();
    lines.extend(points.map(|point| COLUMNS.map(|(_, text)| text(point))));
    let mut widths = [0; COLUMNS.len()];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    for line in &lines {
        let mut cells = line.iter().zip(widths);
        if let Some((time, width)) = cells.next() {
            write!(text, "{time:width$}").expect(STRING);
        }
        for (cell, width) in cells {
            write!(text, "  {cell:>width$}").expect(STRING);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use anteroom_history::Point;
    use anteroom_room::time::Minute;

    use super::*;

    fn history(points: &[Point]) -> HistoryBody {
        HistoryBody {
            room: "shop".to_owned(),
            from: "2023-09-11T12:00:00Z".to_owned(),
            until: "2023-09-11T13:00:00Z".to_owned(),
            step_minutes: 2,
            points: points.iter().map(HistoryPoint::from).collect(),
        }
    }

    #[test]
    fn a_table_has_a_line_for_each_point() {
        let mut point = Point {
            begins: Minute(28_240_560),
            minutes: 2,
            ..Point::default()
        };
        point.figures.arrivals = 1_500;
        let unknown = table(&history(&[point.clone()]));
        point.room.samples = 1;
        point.room.new_users_per_minute.max = 600;
        let found = table(&history(&[point]));
        let words = |text: &str| -> Vec<String> {
            let line = text.lines().last().unwrap();
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert!(
            found.starts_with(
                "room shop: 2023-09-11T12:00:00Z to 2023-09-11T13:00:00Z, in steps of 2 minutes\n\
                 TIME (UTC)"
            ),
            "{found}"
        );
        assert_eq!(
            words(&found)[..5],
            ["2023-09-11", "12:00", "1,500", "0", "1,200"]
        );
        assert_eq!(
            words(&unknown)[4..8],
            ["-", "-", "-", "-"],
            "no ledger replied"
        );
    }

    #[test]
    fn a_history_without_rows_says_so() {
        let found = table(&history(&[]));
        assert!(found.contains("no node has written a row"), "{found}");
    }

    #[test]
    fn a_path_has_the_parameters_with_a_value() {
        let found = path(
            "rooms/shop/history",
            [
                ("from", Some("2030-01-31T10:00:00+01:00".to_owned())),
                ("to", None),
                ("step", Some("5".to_owned())),
            ],
        );
        assert_eq!(
            found,
            "rooms/shop/history?from=2030%2D01%2D31T10%3A00%3A00%2B01%3A00&step=5"
        );
    }
}
