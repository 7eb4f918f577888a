//! Contents of the log, and what it never contains.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::client::Client;
use crate::support::command::command;
use crate::support::config::{ConfigFile, SERVER, room};
use crate::support::origin::RecordingOrigin;
use crate::support::site::Site;
use crate::support::{TIMEOUT, eventually};

/// Returns the lines of the access log about a path.
fn lines_about(site: &Site, path: &str) -> Vec<Value> {
    let log = site.gateway.log();
    let lines = log
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["target"] == "access" && line["path"] == path)
        .collect()
}

#[tokio::test]
async fn every_request_has_an_access_line_with_its_verdict() {
    let site = Site::with_room(1, "bypass = ['path == \"/open\"']").await;
    let mut inside = site.insider().await;
    inside.get("/again?token=secret").await;
    let mut waiting = site.visitor();
    waiting.get("/wait").await;
    waiting.get("/open").await;
    inside.get("/%00").await;
    eventually("the last line is there", || async {
        !lines_about(&site, "/%00").is_empty()
    })
    .await;
    let admitted = lines_about(&site, "/").pop().unwrap();
    assert_eq!(admitted["verdict"], "admit");
    let expected = [
        ("/again", "pass", 200, Value::Null),
        ("/wait", "queue", 429, 1.into()),
        ("/open", "bypass", 200, Value::Null),
        ("/%00", "reject", 400, Value::Null),
    ];
    for (path, verdict, status, position) in expected {
        let lines = lines_about(&site, path);
        assert_eq!(lines.len(), 1, "{path}");
        let line = &lines[0];
        assert_eq!(line["verdict"], verdict, "{line}");
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(line["position"], position, "{line}");
        assert_eq!(line["method"], "GET", "{line}");
        assert_eq!(line["client"], "127.0.0.1", "{line}");
        assert!(line["micros"].is_u64(), "{line}");
        let room = if verdict == "reject" {
            Value::Null
        } else {
            "main".into()
        };
        assert_eq!(line["room"], room, "{line}");
    }
    // The queued visitor may have to wait a moment longer, if the active one had to wait too.
    let reason = &lines_about(&site, "/wait")[0]["reason"];
    assert!(reason == "full" || reason == "not_your_turn", "{reason}");
    assert!(!site.gateway.log().join("\n").contains("secret"));
}

#[tokio::test]
async fn a_client_that_leaves_while_a_limit_delays_it_has_its_line() {
    let limit = "[[limit]]\nname = \"slow\"\nlimit = \"1/min\"\nalgorithm = \"gcra\"\n\
                 on_limit = \"delay\"\ndelay_max = \"60s\"\n";
    let site = Site::with_room(1, &format!("bypass = ['true']\n{limit}")).await;
    site.visitor().get("/first").await;
    let request = b"GET /left HTTP/1.1\r\nHost: a\r\n\r\n";
    eventually("the line of a client that left", || async {
        let mut client = TcpStream::connect(site.gateway.address).await.unwrap();
        client.write_all(request).await.unwrap();
        // Nothing comes: the request is delayed.
        let read = timeout(Duration::from_millis(100), client.read_u8()).await;
        assert!(read.is_err(), "{read:?}");
        client.set_zero_linger().unwrap();
        drop(client);
        let lines = lines_about(&site, "/left");
        lines.iter().any(|line| line["is_client_gone"] == true)
    })
    .await;
    assert_eq!(lines_about(&site, "/left")[0]["verdict"], "over_limit");
}

// Requests that pass keep their lines; queued ones have a hundred a second.
#[tokio::test]
async fn the_access_log_limits_lines_of_queued_requests_and_counts_the_rest() {
    const QUEUED: u64 = 450;
    let mut site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    for _ in 0..QUEUED {
        site.visitor().get("/crowd").await;
    }
    inside.get("/inside").await;
    site.gateway.signal("TERM");
    assert_eq!(site.gateway.ended().await, Some(0));
    assert_eq!(lines_about(&site, "/inside").len(), 1);
    let written = lines_about(&site, "/crowd").len() as u64;
    let log = site.gateway.log();
    let lines = log.iter().map(|line| serde_json::from_str(line).unwrap());
    let left_out: u64 = lines
        .filter_map(|line: Value| line["left_out"].as_u64())
        .sum();
    assert_eq!(written + left_out, QUEUED, "{written} lines");
}

#[tokio::test]
async fn no_log_level_shows_cookies_visitors_or_keys() {
    let key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
    for configured in [true, false] {
        let site = Site::start_with(&["--log", "trace"], |origin| {
            let keys = format!("ticket_keys = [\"{key}\"]\n");
            let keys = if configured { keys } else { String::new() };
            SERVER.to_owned() + &keys + &room("main", origin, 1, "")
        })
        .await;
        let mut secrets = vec!["chocolate-chips".to_owned(), key.to_owned()];
        let mut inside = site.insider().await;
        let mut waiting = site.visitor();
        for visitor in [&mut inside, &mut waiting] {
            let theme = ("theme".to_owned(), "chocolate-chips".to_owned());
            visitor.cookies.extend([theme]);
            visitor.navigate("/").await;
            visitor
                .get("/.well-known/anteroom/position?room=main")
                .await;
            secrets.extend(visitor.cookies.values().cloned());
        }
        secrets.push(site.origin.last().header("anteroom-visitor").unwrap());
        inside.get("/logout").await;
        inside
            .cookies
            .insert("__anteroom_x".to_owned(), "stray-ticket".to_owned());
        inside.get("/").await;
        secrets.push("stray-ticket".to_owned());
        site.gateway.signal("HUP");
        eventually("it was reloaded", || async {
            site.gateway
                .log()
                .iter()
                .any(|line| line.contains("\"reloaded\""))
        })
        .await;
        let data = site.file.path().with_file_name("anteroom-data");
        for name in ["deployment", "ticket-keys"] {
            let text = std::fs::read_to_string(data.join(name)).unwrap_or_default();
            secrets.extend(text.split_whitespace().map(str::to_owned));
        }
        assert!(
            secrets.iter().all(|secret| secret.len() >= 12),
            "{secrets:?}"
        );
        let log = site.gateway.log().join("\n");
        assert!(log.contains("TRACE"), "nothing to look through");
        for secret in secrets {
            assert!(!log.contains(&secret), "{secret} is in the log");
        }
    }
}

#[tokio::test]
async fn text_is_for_people() {
    let origin = RecordingOrigin::start().await;
    let file = ConfigFile::new(&(SERVER.to_owned() + &room("main", origin.address, 1, "")));
    let path = file.path().display().to_string();
    let mut command = command(&["serve", "--config", &path]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut next = async || {
        let line = timeout(TIMEOUT, lines.next_line()).await;
        line.unwrap().unwrap().expect("it goes on")
    };
    let mut line = next().await;
    while !line.contains("serving") {
        line = next().await;
    }
    let (_, address) = line.split_once("visitors=http://").unwrap();
    let (address, _) = address.split_once('/').unwrap();
    let mut client = Client::new(address.parse().unwrap());
    client.get("/first").await;
    while !line.contains("path=/first") {
        line = next().await;
    }
    assert!(
        line.contains(" INFO access: ") && line.contains("room=\"main\""),
        "{line}"
    );
    assert!(
        !line.contains('\u{1b}'),
        "colours are for terminals: {line:?}"
    );
}
