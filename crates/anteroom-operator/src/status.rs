//! `anteroom status`: the rooms of a running gateway, as a table.

use std::net::SocketAddr;
use std::process::ExitCode;

use anteroom_control::RoomStates;
use anteroom_wire::state::RoomState;
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http::Request;
use http_body_util::Full;

use crate::asking::{STRANGER, send};

/// Flags of `anteroom status`.
#[derive(Args, Clone, Debug)]
pub struct StatusOptions {
    /// Where the gateway's operators connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    admin: SocketAddr,
    /// Print what the gateway says as JSON
    #[arg(long)]
    json: bool,
}

/// Asks a gateway and prints what it says. Exit code 1 if a room is degraded.
///
/// # Errors
///
/// If there is no gateway, or it does not make itself understood.
#[expect(clippy::print_stdout, reason = "the command's output")]
pub async fn run(options: StatusOptions) -> anyhow::Result<ExitCode> {
    let admin = options.admin;
    let body = fetch(admin)
        .await
        .with_context(|| format!("cannot ask http://{admin}/rooms"))?;
    let RoomStates { rooms } = serde_json::from_slice(&body).context(STRANGER)?;
    if options.json {
        println!("{}", String::from_utf8_lossy(&body).trim_end());
    } else {
        print!("{}", table(&rooms));
    }
    let is_degraded = rooms.iter().any(|room| room.degraded.is_some());
    Ok(if is_degraded {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

async fn fetch(admin: SocketAddr) -> anyhow::Result<Bytes> {
    let request = Request::get(format!("http://{admin}/rooms")).body(Full::default())?;
    let (status, body) = send(admin, request).await?;
    anyhow::ensure!(status.is_success(), "it answered {status}");
    Ok(body)
}

fn table(rooms: &[RoomState]) -> String {
    let header = [
        "room",
        "inside",
        "waiting",
        "this minute",
        "watermark",
        "age",
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

fn row(room: &RoomState) -> [String; 7] {
    let phantoms = match room.phantom_seats {
        0 => String::new(),
        seats => format!(" (+{seats} unaccounted)"),
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
        state(room),
    ]
}

/// How the room is, and what an operator has set.
fn state(room: &RoomState) -> String {
    let mut said: Vec<&str> = room.overrides.keys().map(String::as_str).collect();
    if room.message.is_some() {
        said.push("message");
    }
    let state = how_it_is(room);
    let state = match origins_away(room) {
        Some(away) => format!("{state}; {away}"),
        None => state,
    };
    if said.is_empty() {
        return state;
    }
    format!("{state}; operator: {}", said.join(", "))
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

fn how_it_is(room: &RoomState) -> String {
    if room.suspended {
        return "suspended".to_owned();
    }
    if let Some(reason) = &room.degraded {
        return match &room.reopens_at {
            Some(at) => format!("DEGRADED: {reason} until {at}"),
            None => format!("DEGRADED: {reason}"),
        };
    }
    if room.paused {
        return "PAUSED".to_owned();
    }
    if room.queue_all {
        return "queue-all".to_owned();
    }
    if room.queued_users > 0 {
        return format!("queueing ({})", room.queueing_method);
    }
    "ok".to_owned()
}
