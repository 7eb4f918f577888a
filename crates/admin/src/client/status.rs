//! `anteroom status`: the rooms of a running gateway, as a table; or whether it is ready, for
//! supervisors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use crate::{ConnectionTrouble, LimitTrouble, Readiness, RoomStates};
use anteroom_config::terminal::{print, tell};
use anteroom_store::wire::state::RoomState;
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use futures_util::future::join_all;
use http::Request;
use http_body_util::Full;
use serde_json::Value;

use crate::client::asking::{STRANGER, send};
use crate::client::options::{ADMIN, address};
use crate::client::text::{STRING, printable};

/// Flags of `anteroom status`.
#[derive(Args, Clone, Debug)]
pub struct StatusOptions {
    /// Where the gateway's operators connect. Several times: each of these nodes is asked, and
    /// limits that differ are told
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = ADMIN,
        value_parser = address
    )]
    admin: Vec<SocketAddr>,
    /// Print what the gateway says as JSON; of several, one line each
    #[arg(long)]
    json: bool,
    /// Only say whether visitors may be sent there; exit code 1 if not
    #[arg(long)]
    ready: bool,
}

/// A limit of a room, by its key.
type Limit = (&'static str, fn(&RoomState) -> u32);

/// What must be the same at all nodes.
const LIMITS: [Limit; 2] = [
    ("total_active_users", |room| room.total_active_users),
    ("new_users_per_minute", |room| room.new_users_per_minute),
];

/// What one node says.
struct NodeReply {
    text: String,
    is_well: bool,
    /// `None` where only readiness was asked for.
    states: Option<RoomStates>,
}

/// Asks a gateway, or each of several, and prints what it says. Exit code 1 if a room is degraded,
/// a store is unavailable, limits differ from node to node, or a gateway is not ready where that is
/// the question.
///
/// # Errors
///
/// If there is no gateway, or it does not make itself understood. With several gateways only if
/// nothing can be printed.
pub async fn run(options: StatusOptions) -> anyhow::Result<ExitCode> {
    let asking = options.admin.iter().map(|admin| ask(*admin, &options));
    let mut answers = join_all(asking).await;
    let mut is_well = true;
    if answers.len() == 1 {
        let said = answers.pop().context("no --admin address")??;
        print(&said.text)?;
        is_well = said.is_well;
    }
    let mut states = Vec::new();
    for (admin, answer) in options.admin.iter().zip(answers) {
        match answer {
            Ok(said) => {
                is_well &= said.is_well;
                print(&labelled(*admin, &said.text, &options)?)?;
                states.extend(said.states.map(|states| (*admin, states)));
            }
            Err(error) => {
                is_well = false;
                tell(&format!("{admin}: error: {error:#}"));
            }
        }
    }
    let differing = differences(&states);
    if !options.json {
        print(&differing)?;
    }
    Ok(if is_well && differing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn ask(admin: SocketAddr, options: &StatusOptions) -> anyhow::Result<NodeReply> {
    if options.ready {
        return readiness(admin, options.json).await;
    }
    let body = fetch(admin)
        .await
        .with_context(|| format!("cannot ask http://{admin}/rooms"))?;
    let states: RoomStates = serde_json::from_slice(&body).context(STRANGER)?;
    let text = if options.json {
        format!("{}\n", String::from_utf8_lossy(&body).trim_end())
    } else {
        format!(
            "{}{}{}{}",
            table(&states.rooms),
            journal_lost(states.journal.as_deref()),
            troubles(&states.limits),
            shortage(states.connections.as_ref())
        )
    };
    let is_ill = |room: &RoomState| room.degraded.is_some() || room.is_root_store_unavailable;
    Ok(NodeReply {
        text,
        is_well: states.limits.is_empty() && !states.rooms.iter().any(is_ill),
        states: Some(states),
    })
}

async fn readiness(admin: SocketAddr, json: bool) -> anyhow::Result<NodeReply> {
    let address = format!("http://{admin}/readyz");
    let request = Request::get(&address).body(Full::default())?;
    let asked = send(admin, request).await;
    // Its status says the same as the body.
    let (_, body) = asked.with_context(|| format!("cannot ask {address}"))?;
    let readiness: Readiness = serde_json::from_slice(&body).context(STRANGER)?;
    let said = match &readiness.detail {
        _ if json => String::from_utf8_lossy(&body).trim_end().to_owned(),
        Some(why) => format!("not ready: {why}"),
        None => "ready".to_owned(),
    };
    Ok(NodeReply {
        text: format!("{said}\n"),
        is_well: readiness.ready,
        states: None,
    })
}

async fn fetch(admin: SocketAddr) -> anyhow::Result<Bytes> {
    let request = Request::get(format!("http://{admin}/rooms")).body(Full::default())?;
    let (status, body) = send(admin, request).await?;
    anyhow::ensure!(status.is_success(), "it answered {status}");
    Ok(body)
}

/// What one of several nodes says.
fn labelled(admin: SocketAddr, text: &str, options: &StatusOptions) -> anyhow::Result<String> {
    if options.json {
        let mut body: Value = serde_json::from_str(text).context(STRANGER)?;
        body["node"] = admin.to_string().into();
        return Ok(format!("{body}\n"));
    }
    let gap = if options.ready { " " } else { "\n" };
    Ok(format!("{admin}:{gap}{text}"))
}

/// A line for each limit that is not the same at all nodes that have the room.
fn differences(nodes: &[(SocketAddr, RoomStates)]) -> String {
    let mut rooms: BTreeMap<&str, Vec<(SocketAddr, &RoomState)>> = BTreeMap::new();
    for (admin, states) in nodes {
        for room in &states.rooms {
            rooms.entry(&room.room).or_default().push((*admin, room));
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

/// A line about a journal that lost its memory, and which command ends what follows from that.
fn journal_lost(loss: Option<&str>) -> String {
    let line = |loss| {
        format!(
            "journal: {loss}; if nobody is inside, `anteroom room NAME assume-empty` lets a room \
             admit at once\n"
        )
    };
    loss.map(line).unwrap_or_default()
}

/// A line for each limit of calls that cannot be counted; nothing if all can.
fn troubles(limits: &[LimitTrouble]) -> String {
    let line =
        |trouble: &LimitTrouble| format!("limit {}: DEGRADED: {}\n", trouble.limit, trouble.detail);
    limits.iter().map(line).collect()
}

/// A line if connections run short. Visitors are answered all the same, so it is no failure.
fn shortage(connections: Option<&ConnectionTrouble>) -> String {
    connections.map_or_else(String::new, |it| format!("connections: {}\n", it.detail))
}

fn table(rooms: &[RoomState]) -> String {
    let header = [
        "room",
        "inside",
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

/// How long the slowest of a room's origins takes to begin an answer; `-` before the first.
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

/// How the room is, and what an operator has set.
fn state(room: &RoomState) -> String {
    let mut said: Vec<&str> = room.overrides.keys().map(String::as_str).collect();
    if room.message.is_some() {
        said.push("message");
    }
    let mut parts: Vec<String> = what_holds_visitors(room).into_iter().collect();
    if !room.suspended {
        parts.extend(opening(room));
    }
    if parts.is_empty() {
        parts.push(if room.queued_users > 0 {
            format!("queueing ({})", room.queueing_method)
        } else {
            "ok".to_owned()
        });
    }
    if room.is_root_store_unavailable {
        parts.push("root store UNAVAILABLE".to_owned());
    }
    let held: Vec<String> = room
        .held_commands
        .iter()
        .map(|stop| printable(&stop.command))
        .collect();
    if !held.is_empty() {
        parts.push(format!("at this node only: {}", held.join(", ")));
    }
    parts.extend(origins_away(room));
    if !said.is_empty() {
        parts.push(format!("operator: {}", said.join(", ")));
    }
    parts.join("; ")
}

/// When a room opens that is not open yet.
fn opening(room: &RoomState) -> Option<String> {
    let at = room.opens_at.as_deref().unwrap_or_default();
    Some(format!(
        "opens at {at} (in {})",
        in_words(room.opens_in_ms?)
    ))
}

/// The two largest units, rounded up to whole seconds.
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

/// Which origins take no requests; `None` if all do.
fn origins_away(room: &RoomState) -> Option<String> {
    let away = room
        .origins
        .iter()
        .filter(|origin| origin.condition != "up");
    let away: Vec<String> = away
        .map(|origin| {
            format!(
                "{} {} for {} s",
                origin.url,
                origin.condition,
                origin.for_ms / 1_000
            )
        })
        .collect();
    (!away.is_empty()).then(|| format!("origins: {}", away.join(", ")))
}

/// Why nobody goes in, or everybody does; `None` if the limits decide.
fn what_holds_visitors(room: &RoomState) -> Option<String> {
    if room.suspended {
        return Some("suspended".to_owned());
    }
    if let Some(reason) = &room.degraded {
        return Some(match &room.reopens_at {
            Some(at) => format!("DEGRADED: {reason} until {at}"),
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
