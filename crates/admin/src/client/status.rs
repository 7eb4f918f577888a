//! `anteroom status`: rooms of a running gateway as a table, or its readiness for supervisors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use crate::{ClockTrouble, ConnectionTrouble, LimitTrouble, Readiness, RoomStates, SiteState};
use anteroom_store::wire::state::{ClosedState, OriginState, RoomState};
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use futures_util::future::join_all;
use http::header::AUTHORIZATION;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::Value;

use crate::api_v1::PREFIX;
use crate::client::commands::token;
use crate::client::http::{NOT_OURS, send};
use crate::client::options::{ADMIN, AdminAddress, Connection, address};
use crate::client::text::{STRING, printable};

/// Flags of `anteroom status`.
#[derive(Args, Clone, Debug)]
pub struct StatusOptions {
    /// Admin address of the gateway. Several times: each node is queried, and limits that differ
    /// are reported
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = ADMIN,
        value_parser = address
    )]
    admin: Vec<AdminAddress>,
    /// Check only whether visitors may be sent there; exit code 1 if not
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Path of a gateway's readiness.
const READY_PATH: &str = "/readyz";

/// Key of a limit of a room, and its value.
type Limit = (&'static str, fn(&RoomState) -> u32);

/// Limits that must be the same at all nodes.
const LIMITS: [Limit; 2] = [
    ("total_active_users", |room| room.total_active_users),
    ("new_users_per_minute", |room| room.new_users_per_minute),
];

/// Reply of one node.
struct NodeReply {
    text: String,
    is_healthy: bool,
    /// States of the rooms; `None` if only readiness was requested.
    states: Option<RoomStates>,
}

/// Queries one or several gateways and prints the responses. The exit code is 1 if a room is
/// degraded, a store is unavailable, or limits differ from node to node. With `--ready` it is 1 if
/// a gateway is not ready.
///
/// # Errors
///
/// If the gateway does not exist or its response cannot be parsed. With several gateways only if
/// nothing can be printed.
pub async fn run(
    options: StatusOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let queries = options.admin.iter().map(|admin| query(admin, &options));
    let mut replies = join_all(queries).await;
    let mut is_healthy = true;
    if replies.len() == 1 {
        let reply = replies.pop().context("no --admin address")??;
        out.write_all(reply.text.as_bytes())?;
        is_healthy = reply.is_healthy;
    }
    let mut states = Vec::new();
    for (admin, reply) in options.admin.iter().zip(replies) {
        match reply {
            Ok(reply) => {
                is_healthy &= reply.is_healthy;
                out.write_all(labelled(admin, &reply.text, &options)?.as_bytes())?;
                states.extend(reply.states.map(|states| (admin.clone(), states)));
            }
            Err(error) => {
                is_healthy = false;
                writeln!(err, "{admin}: error: {error:#}")?;
            }
        }
    }
    let differing = differences(&states);
    if !options.connection.json {
        out.write_all(differing.as_bytes())?;
    }
    Ok(if is_healthy && differing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn query(admin: &AdminAddress, options: &StatusOptions) -> anyhow::Result<NodeReply> {
    if options.ready {
        return readiness(admin, &options.connection).await;
    }
    let about = || format!("cannot query {admin}{PREFIX}/state");
    let body = fetch(admin, &options.connection)
        .await
        .with_context(about)?;
    let states: RoomStates = serde_json::from_slice(&body)
        .context(NOT_OURS)
        .with_context(about)?;
    let text = if options.connection.json {
        format!("{}\n", String::from_utf8_lossy(&body).trim_end())
    } else {
        format!(
            "{}{}{}{}{}{}{}",
            table(&states.rooms),
            warnings(&states.rooms),
            sites(&states.sites),
            journal_lost(states.journal.as_deref()),
            troubles(&states.limits),
            shortage(states.connections.as_ref()),
            clocks(&states.clocks)
        )
    };
    let is_degraded = |room: &RoomState| room.degraded.is_some() || room.is_root_store_unavailable;
    Ok(NodeReply {
        text,
        is_healthy: states.limits.is_empty() && !states.rooms.iter().any(is_degraded),
        states: Some(states),
    })
}

async fn readiness(admin: &AdminAddress, connection: &Connection) -> anyhow::Result<NodeReply> {
    let about = || format!("cannot query {admin}{READY_PATH}");
    let request = Request::get(READY_PATH).body(Full::default())?;
    let response = send(admin, connection, request).await;
    // The status repeats the body.
    let (_, body) = response.with_context(about)?;
    let readiness: Readiness = serde_json::from_slice(&body)
        .context(NOT_OURS)
        .with_context(about)?;
    let text = match &readiness.detail {
        _ if connection.json => String::from_utf8_lossy(&body).trim_end().to_owned(),
        Some(reason) => format!("not ready: {reason}"),
        None => "ready".to_owned(),
    };
    Ok(NodeReply {
        text: format!("{text}\n"),
        is_healthy: readiness.ready,
        states: None,
    })
}

async fn fetch(admin: &AdminAddress, connection: &Connection) -> anyhow::Result<Bytes> {
    // A gateway that listens on loopback only shows its states without a token.
    let may_lack_token = admin.is_loopback();
    if may_lack_token {
        let (status, body) = fetch_with(admin, connection, None).await?;
        if status.is_success() {
            return Ok(body);
        }
        anyhow::ensure!(
            status == StatusCode::UNAUTHORIZED,
            "the gateway responded with {status}"
        );
    }
    let token = token(&connection.token_file)?;
    let (status, body) = fetch_with(admin, connection, Some(&token)).await?;
    anyhow::ensure!(status.is_success(), "the gateway responded with {status}");
    Ok(body)
}

async fn fetch_with(
    admin: &AdminAddress,
    connection: &Connection,
    token: Option<&str>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let mut request = Request::get(format!("{PREFIX}/state"));
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    send(admin, connection, request.body(Full::default())?).await
}

/// Formats the reply of one of several nodes, with its address.
fn labelled(admin: &AdminAddress, text: &str, options: &StatusOptions) -> anyhow::Result<String> {
    if options.connection.json {
        let mut body: Value = serde_json::from_str(text).context(NOT_OURS)?;
        body["node"] = admin.to_string().into();
        return Ok(format!("{body}\n"));
    }
    let gap = if options.ready { " " } else { "\n" };
    Ok(format!("{admin}:{gap}{text}"))
}

/// Returns a line for each limit that differs between nodes with the same room.
fn differences(nodes: &[(AdminAddress, RoomStates)]) -> String {
    let mut rooms: BTreeMap<&str, Vec<(&AdminAddress, &RoomState)>> = BTreeMap::new();
    for (admin, states) in nodes {
        for room in &states.rooms {
            rooms.entry(&room.room).or_default().push((admin, room));
        }
    }
    let mut text = String::new();
    for (name, found) in rooms {
        for (key, limit) in LIMITS {
            let first = limit(found[0].1);
            if found.iter().all(|(_, room)| limit(room) == first) {
                continue;
            }
            let each = found
                .iter()
                .map(|(admin, room)| format!("{} at {admin}", limit(room)));
            let each: Vec<String> = each.collect();
            let each = each.join(", ");
            writeln!(
                text,
                "room {name}: LIMITS DIFFER: {key} is {each}; nodes of one store keep to the lowest"
            )
            .expect(STRING);
        }
    }
    text
}

/// Returns a line about a journal that lost its memory, with the command that ends the reserve.
fn journal_lost(loss: Option<&str>) -> String {
    let line = |loss| {
        format!(
            "journal: {loss}; if nobody is active, `anteroom room assume-empty NAME` lets a room \
             admit at once\n"
        )
    };
    loss.map(line).unwrap_or_default()
}

/// Returns a line for each rate limit whose store is unavailable.
fn troubles(limits: &[LimitTrouble]) -> String {
    let line =
        |trouble: &LimitTrouble| format!("limit {}: DEGRADED: {}\n", trouble.limit, trouble.detail);
    limits.iter().map(line).collect()
}

/// Returns a line if connections run short. Visitors still get responses, so it is no failure.
fn shortage(connections: Option<&ConnectionTrouble>) -> String {
    connections.map_or_else(String::new, |short| {
        format!("connections: {}\n", short.detail)
    })
}

/// Returns a line for each clock that differs from that of the node.
fn clocks(troubles: &[ClockTrouble]) -> String {
    let lines = troubles.iter();
    lines
        .map(|trouble| format!("clock: {}\n", printable(&trouble.detail)))
        .collect()
}

fn table(rooms: &[RoomState]) -> String {
    if rooms.is_empty() {
        return "no rooms\n".to_owned();
    }
    let header = [
        "room",
        "active",
        "waiting",
        "this minute",
        "watermark",
        "age",
        "origin",
        "state",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(rooms.iter().map(row));
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        let line: Vec<String> = cells.collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(room: &RoomState) -> [String; 8] {
    let phantoms = match room.phantom_seats {
        0 => String::new(),
        seats => format!(" (+{seats} phantom seats)"),
    };
    let watermark = match (&room.watermark, room.watermark_open) {
        (_, true) => "open".to_owned(),
        (Some(at), false) => at.clone(),
        (None, false) => "closed".to_owned(),
    };
    [
        room.room.clone(),
        format!(
            "{}/{}{phantoms}",
            room.active_users, room.total_active_users
        ),
        room.queued_users.to_string(),
        format!(
            "{}/{}",
            room.admissions_this_minute, room.new_users_per_minute
        ),
        watermark,
        format!("{} ms", room.age_ms),
        origin_latency(room),
        state(room),
    ]
}

/// Formats the response time of the slowest origin of a room; `-` before the first response.
fn origin_latency(room: &RoomState) -> String {
    let times = room
        .origins
        .iter()
        .filter_map(|origin| origin.response_time_ms);
    match times.max() {
        None => "-".to_owned(),
        Some(0) => "<1 ms".to_owned(),
        Some(ms) => format!("{ms} ms"),
    }
}

/// Formats the values of events that have no effect, because an operator set others.
fn warnings(rooms: &[RoomState]) -> String {
    let mut text = String::new();
    for room in rooms {
        let name = printable(&room.room);
        for warning in &room.warnings {
            let command = "`anteroom room reset ROOM KEY` lets the event decide";
            writeln!(text, "room {name}: {}; {command}", printable(warning)).expect(STRING);
        }
    }
    text
}

/// Formats the state of a room, and what an operator has set.
fn state(room: &RoomState) -> String {
    let mut overrides: Vec<&str> = room.overrides.keys().map(String::as_str).collect();
    if room.message.is_some() {
        overrides.push("message");
    }
    let mut parts: Vec<String> = admission_state(room).into_iter().collect();
    if !room.suspended {
        parts.extend(prequeue(room).or_else(|| opening(room)));
    }
    if parts.is_empty() {
        parts.push(if room.queued_users > 0 {
            format!("queueing ({})", room.queueing_method)
        } else {
            "ok".to_owned()
        });
    }
    if room.is_draining {
        parts.push("lets everybody pass when nobody waits".to_owned());
    }
    if !room.suspended {
        parts.extend(running_event(room));
        parts.extend(next_event(room));
    }
    if room.is_root_store_unavailable {
        parts.push("root store UNAVAILABLE".to_owned());
    }
    let local: Vec<String> = room
        .held_commands
        .iter()
        .map(|held| printable(&held.command))
        .collect();
    if !local.is_empty() {
        parts.push(format!("at this node only: {}", local.join(", ")));
    }
    parts.extend(unavailable_origins(&room.origins));
    if !overrides.is_empty() {
        parts.push(format!("operator: {}", overrides.join(", ")));
    }
    parts.join("; ")
}

/// Formats the event for whose start new visitors wait.
fn prequeue(room: &RoomState) -> Option<String> {
    let event = room
        .event
        .as_ref()
        .filter(|event| event.phase == "prequeue")?;
    let (name, at) = (printable(&event.name), printable(&event.starts_at));
    let until = in_words(event.changes_in_ms?);
    Some(format!("event {name} starts at {at} (in {until})"))
}

/// Formats the event that has started.
fn running_event(room: &RoomState) -> Option<String> {
    let event = room
        .event
        .as_ref()
        .filter(|event| event.phase != "prequeue")?;
    let name = printable(&event.name);
    Some(match (&event.ends_at, event.changes_in_ms) {
        (Some(at), Some(ms)) => {
            format!("event {name} until {} (in {})", printable(at), in_words(ms))
        }
        _ => format!("event {name}"),
    })
}

/// Formats the next event of a room.
fn next_event(room: &RoomState) -> Option<String> {
    let event = room.next_event.as_ref()?;
    let name = printable(&event.name);
    let at = event
        .prequeue_starts_at
        .as_ref()
        .unwrap_or(&event.starts_at);
    let until = in_words(event.changes_in_ms?);
    Some(format!(
        "next event {name} at {} (in {until})",
        printable(at)
    ))
}

/// Formats the opening time of a room that is not open yet.
fn opening(room: &RoomState) -> Option<String> {
    let at = room.opens_at.as_deref().unwrap_or_default();
    Some(format!(
        "opens at {at} (in {})",
        in_words(room.opens_in_ms?)
    ))
}

/// Formats a duration in its two largest units, rounded up to whole seconds.
fn in_words(ms: u64) -> String {
    let seconds = ms.div_ceil(1_000);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    if days > 0 {
        format!("{days} d {} h", hours % 24)
    } else if hours > 0 {
        format!("{hours} h {} min", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes} min {} s", seconds % 60)
    } else {
        format!("{seconds} s")
    }
}

/// Formats a line for each site: its origins and their conditions.
fn sites(sites: &[SiteState]) -> String {
    let lines = sites.iter().map(|site| {
        let origins: Vec<String> = site.origins.iter().map(condition).collect();
        format!("site {}: {}\n", site.site, origins.join(", "))
    });
    lines.collect()
}

/// Formats the condition of an origin.
fn condition(origin: &OriginState) -> String {
    let (url, seconds) = (&origin.url, origin.for_ms / 1_000);
    match origin.condition.as_str() {
        "up" => format!("{url} up"),
        condition => format!("{url} {condition} for {seconds} s"),
    }
}

/// Lists the origins that take no requests; `None` if all do.
fn unavailable_origins(origins: &[OriginState]) -> Option<String> {
    let unavailable = origins.iter().filter(|origin| origin.condition != "up");
    let unavailable: Vec<String> = unavailable.map(condition).collect();
    (!unavailable.is_empty()).then(|| format!("origins: {}", unavailable.join(", ")))
}

/// Returns the cause of a closed ledger, in parentheses.
fn closed_by(closed: &ClosedState) -> String {
    let missing = closed.missing_reports.unwrap_or_default();
    let cause = match closed.cause.as_str() {
        "missing_reports" => format!("the store came back, {missing} have not reported to it"),
        "unsafe_name" => "this node has just joined".to_owned(),
        "maybe_first_start" => "the ledger is new".to_owned(),
        "lost_record" | "lost_record_without_visitors" => "the ledger was lost".to_owned(),
        other => printable(other),
    };
    format!(" ({cause})")
}

/// Returns the state that overrules the limits: the room admits nobody, or lets everybody pass.
fn admission_state(room: &RoomState) -> Option<String> {
    if room.suspended {
        return Some("suspended".to_owned());
    }
    if let Some(reason) = &room.degraded {
        return Some(match &room.reopens_at {
            Some(at) => {
                let cause = room.closed_by.as_ref().map(closed_by).unwrap_or_default();
                format!("DEGRADED: {reason} until {at}{cause}")
            }
            None => format!("DEGRADED: {reason}"),
        });
    }
    if room.paused {
        return Some("PAUSED".to_owned());
    }
    room.queue_all.then(|| "queue-all".to_owned())
}

#[cfg(test)]
mod tests;
