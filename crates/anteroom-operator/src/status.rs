//! `anteroom status`: the rooms of a running gateway, as a table; or whether it is ready, for supervisors.

use std::net::SocketAddr;
use std::process::ExitCode;

use anteroom_control::{ConnectionTrouble, LimitTrouble, Readiness, RoomStates};
use anteroom_terminal::print;
use anteroom_wire::state::RoomState;
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http::Request;
use http_body_util::Full;

use crate::asking::{STRANGER, send};
use crate::options::address;

/// Flags of `anteroom status`.
#[derive(Args, Clone, Debug)]
pub struct StatusOptions {
    /// Where the gateway's operators connect
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081",
        value_parser = address
    )]
    admin: SocketAddr,
    /// Print what the gateway says as JSON
    #[arg(long)]
    json: bool,
    /// Only say whether visitors may be sent there; exit code 1 if not
    #[arg(long)]
    ready: bool,
}

/// Asks a gateway and prints what it says. Exit code 1 if a room is degraded or the store of a limit of calls is away,
/// or if the gateway is not ready where that is the question.
///
/// # Errors
///
/// If there is no gateway, or it does not make itself understood.
pub async fn run(options: StatusOptions) -> anyhow::Result<ExitCode> {
    let admin = options.admin;
    if options.ready {
        return show_readiness(admin, options.json).await;
    }
    let body = fetch(admin)
        .await
        .with_context(|| format!("cannot ask http://{admin}/rooms"))?;
    let states: RoomStates = serde_json::from_slice(&body).context(STRANGER)?;
    if options.json {
        print(&format!("{}\n", String::from_utf8_lossy(&body).trim_end()))?;
    } else {
        print(&format!(
            "{}{}{}{}",
            table(&states.rooms),
            journal_lost(states.journal.as_deref()),
            troubles(&states.limits),
            shortage(states.connections.as_ref())
        ))?;
    }
    let is_degraded = states.rooms.iter().any(|room| room.degraded.is_some());
    Ok(if is_degraded || !states.limits.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

async fn show_readiness(admin: SocketAddr, json: bool) -> anyhow::Result<ExitCode> {
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
    print(&format!("{said}\n"))?;
    Ok(if readiness.ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn fetch(admin: SocketAddr) -> anyhow::Result<Bytes> {
    let request = Request::get(format!("http://{admin}/rooms")).body(Full::default())?;
    let (status, body) = send(admin, request).await?;
    anyhow::ensure!(status.is_success(), "it answered {status}");
    Ok(body)
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// What comes of asking a gateway that answers one request so, and what it was asked.
    async fn ask(ready: bool, status: &str, body: &str) -> (anyhow::Result<ExitCode>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let options = StatusOptions {
            admin: listener.local_addr().unwrap(),
            json: false,
            ready,
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
        let serving = async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 1_024];
            let length = stream.read(&mut asked).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&asked[..length]).into_owned()
        };
        tokio::join!(run(options), serving)
    }

    async fn check(status: &str, body: &str, expected: ExitCode) {
        let (code, asked) = ask(true, status, body).await;
        assert!(asked.starts_with("GET /readyz HTTP/1.1\r\n"), "{asked}");
        // Exit codes cannot be compared otherwise.
        assert_eq!(format!("{:?}", code.unwrap()), format!("{expected:?}"));
    }

    #[tokio::test]
    async fn whether_a_gateway_is_ready_is_the_exit_code() {
        let ready = r#"{"ready": true, "detail": null}"#;
        check("200 OK", ready, ExitCode::SUCCESS).await;
        let not_yet = r#"{"ready": false, "detail": "the store has not answered yet"}"#;
        check("503 Service Unavailable", not_yet, ExitCode::FAILURE).await;
    }

    #[tokio::test]
    async fn a_limit_whose_store_is_away_is_a_line_and_the_exit_code() {
        let trouble = r#"{"limit": "api", "store": "valkey", "lastFailureMs": 9, "detail": "calls cannot be counted"}"#;
        let body = format!(r#"{{"rooms": [], "limits": [{trouble}]}}"#);
        let (code, asked) = ask(false, "200 OK", &body).await;
        assert!(asked.starts_with("GET /rooms HTTP/1.1\r\n"), "{asked}");
        let expected = format!("{:?}", ExitCode::FAILURE);
        assert_eq!(format!("{:?}", code.unwrap()), expected);
        let states: RoomStates = serde_json::from_str(&body).unwrap();
        let line = "limit api: DEGRADED: calls cannot be counted\n";
        assert_eq!(troubles(&states.limits), line);
    }

    #[tokio::test]
    async fn connections_that_run_short_are_a_line_and_no_failure() {
        let short = r#"{"open": 71, "withTicket": 2, "limit": 100, "detail": "71 of 100"}"#;
        let body = format!(r#"{{"rooms": [], "connections": {short}}}"#);
        let (code, _) = ask(false, "200 OK", &body).await;
        let expected = format!("{:?}", ExitCode::SUCCESS);
        assert_eq!(format!("{:?}", code.unwrap()), expected);
        let states: RoomStates = serde_json::from_str(&body).unwrap();
        assert_eq!(
            shortage(states.connections.as_ref()),
            "connections: 71 of 100\n"
        );
    }

    #[tokio::test]
    async fn whoever_is_no_gateway_is_not_ready() {
        let (code, _) = ask(true, "404 Not Found", "nothing is here").await;
        assert_eq!(code.unwrap_err().to_string(), STRANGER);
    }
}
