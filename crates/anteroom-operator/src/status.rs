//! `anteroom status`: the rooms of a running gateway, as a table; or whether it is ready, for supervisors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use anteroom_control::{ConnectionTrouble, LimitTrouble, Readiness, RoomStates};
use anteroom_terminal::{print, tell};
use anteroom_wire::state::RoomState;
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use futures_util::future::join_all;
use http::Request;
use http_body_util::Full;

use crate::asking::{STRANGER, send};
use crate::options::{ADMIN, address};
use crate::text::{STRING, printable};

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

/// What one node says.
struct Said {
    text: String,
    is_well: bool,
    /// `None` where only readiness was asked for.
    states: Option<RoomStates>,
}

/// Asks a gateway, or each of several, and prints what it says. Exit code 1 if a room is degraded, a store is
/// unavailable, limits differ from node to node, or a gateway is not ready where that is the question.
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
                let gap = if options.json || options.ready { " " } else { "\n" };
                print(&format!("{admin}:{gap}{}", said.text))?;
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

async fn ask(admin: SocketAddr, options: &StatusOptions) -> anyhow::Result<Said> {
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
    Ok(Said {
        text,
        is_well: states.limits.is_empty() && !states.rooms.iter().any(is_ill),
        states: Some(states),
    })
}

async fn readiness(admin: SocketAddr, json: bool) -> anyhow::Result<Said> {
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
    Ok(Said {
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
        let limits: [(&str, fn(&RoomState) -> u32); 2] = [
            ("total_active_users", |room| room.total_active_users),
            ("new_users_per_minute", |room| room.new_users_per_minute),
        ];
        for (key, limit) in limits {
            let first = limit(found[0].1);
            if found.iter().all(|(_, room)| limit(room) == first) {
                continue;
            }
            let each = found.iter().map(|(admin, room)| format!("{} at {admin}", limit(room)));
            let each: Vec<String> = each.collect();
            let each = each.join(", ");
            writeln!(text, "room {name}: LIMITS DIFFER: {key} is {each}; the lowest holds at all")
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
    let times = room.origins.iter().filter_map(|origin| origin.answer_time_ms);
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
    let held: Vec<String> = room.held.iter().map(|stop| printable(&stop.command)).collect();
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
    Some(format!("opens at {at} (in {})", in_words(room.opens_in_ms?)))
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
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// What comes of asking a gateway that answers one request so, and what it was asked.
    async fn asked(ready: bool, status: &str, body: &str) -> (anyhow::Result<ExitCode>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let options = StatusOptions {
            admin: vec![listener.local_addr().unwrap()],
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
        let (code, asked) = asked(true, status, body).await;
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
        let (code, asked) = asked(false, "200 OK", &body).await;
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
        let (code, _) = asked(false, "200 OK", &body).await;
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
        let (code, _) = asked(true, "404 Not Found", "nothing is here").await;
        assert_eq!(code.unwrap_err().to_string(), STRANGER);
    }

    fn room(more: &str) -> RoomState {
        let text = format!(
            r#"{{"activeUsers": 3, "globalWorkersActive": 1, "dataCenterWorkersActive": 1,
            "trafficHistory": {{}}, "room": "shop", "totalActiveUsers": 200,
            "newUsersPerMinute": 300, "queuedUsers": 0, "admissionsThisMinute": 0,
            "watermark": null, "watermarkOpen": true, "ageMs": 1, "epoch": 0,
            "reopensAt": null, "degraded": null, "queueingMethod": "fifo",
            "allocation": "leases", "queueAll": false, "suspended": false, {more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn status_says_what_an_operator_must_know() {
        let check = |more: &str, expected: &str| {
            let room = room(&format!("\"phantomSeats\": 0, {more}"));
            assert_eq!(state(&room), expected, "{more}");
        };
        let opens = r#""opensAt": "2023-09-11T11:45:54.000Z", "opensInMs": 7500000"#;
        check(r#""paused": false"#, "ok");
        check(
            opens,
            "opens at 2023-09-11T11:45:54.000Z (in 2 h 5 min)",
        );
        check(
            &format!(r#""paused": true, {opens}"#),
            "PAUSED; opens at 2023-09-11T11:45:54.000Z (in 2 h 5 min)",
        );
        check(
            r#""opensAt": "2023-09-11T11:45:54.000Z", "opensInMs": null"#,
            "ok",
        );
        check(r#""rootStoreUnavailable": true"#, "ok; root store UNAVAILABLE");
        let stop = r#"{"command": "pause", "since": "2023-09-11T11:45:54.000Z", "isKept": true}"#;
        check(
            &format!(r#""paused": true, "held": [{stop}]"#),
            "PAUSED; at this node only: pause",
        );
    }

    #[test]
    fn the_table_has_phantom_seats_and_the_latency_of_the_slowest_origin() {
        let origin = |ms: &str| {
            format!(
                r#"{{"url": "http://a:80", "condition": "up", "forMs": 1, "inFlight": 0,
                "lastError": null, "answerTimeMs": {ms}}}"#
            )
        };
        let check = |origins: &[&str], expected: &str| {
            let origins: Vec<String> = origins.iter().map(|ms| origin(ms)).collect();
            let more = format!(r#""phantomSeats": 2, "origins": [{}]"#, origins.join(","));
            let row = row(&room(&more));
            assert_eq!(row[1], "3/200 (+2 phantom seats)");
            assert_eq!(row[6], expected);
        };
        check(&[], "-");
        check(&["null"], "-");
        check(&["0"], "<1 ms");
        check(&["12", "340", "null"], "340 ms");
    }

    #[test]
    fn limits_that_differ_are_told_by_node() {
        let node = |port: u16, total: u32| {
            let mut room = room(r#""phantomSeats": 0"#);
            room.total_active_users = total;
            let states = RoomStates {
                rooms: vec![room],
                limits: Vec::new(),
                journal: None,
                connections: None,
            };
            (SocketAddr::from(([127, 0, 0, 1], port)), states)
        };
        assert_eq!(differences(&[node(1, 200), node(2, 200)]), "");
        assert_eq!(
            differences(&[node(1, 200), node(2, 300), node(3, 200)]),
            "room shop: LIMITS DIFFER: total_active_users is 200 at 127.0.0.1:1, 300 at \
             127.0.0.1:2, 200 at 127.0.0.1:3; the lowest holds at all\n"
        );
    }

    #[test]
    fn a_wait_has_two_units() {
        let expected = [
            (1, "1 s"),
            (59_001, "1 min 0 s"),
            (3_600_000, "1 h 0 min"),
            (90_000_000, "1 d 1 h"),
        ];
        for (ms, words) in expected {
            assert_eq!(in_words(ms), words);
        }
    }
}
