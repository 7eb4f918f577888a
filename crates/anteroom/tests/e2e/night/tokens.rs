//! Tokens of operators, and the addresses at which they connect.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::command::run;
use crate::support::config::{ConfigFile, SERVER, room as room_toml};
use crate::support::eventually;
use crate::support::raw::{ask, status_of};
use crate::support::site::Site;

use super::{room, room_json};

const FIRST: &str = "0123456789abcdef-first";
const SECOND: &str = "0123456789abcdef-second";

#[tokio::test]
async fn a_gateway_generates_a_token_that_only_its_user_can_read() {
    let site = Site::with_room(1, "").await;
    let file = site
        .file
        .path()
        .with_file_name("anteroom-data")
        .join("admin-token");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    room_json(&site.gateway, &file, &["pause"]).await;
    let wrong = site.file.path().with_file_name("wrong");
    std::fs::write(&wrong, "a-token-that-does-not-hold\n").unwrap();
    let ended = room(&site.gateway, &wrong, &["resume"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("is not valid there"), "{}", ended.err);
    let ended = room(&site.gateway, &wrong.with_file_name("nowhere"), &["resume"]).await;
    assert!(ended.err.contains("--token-file"), "{}", ended.err);
    assert_eq!(site.state("main").await["paused"], true);
    let log = site.gateway.log_with("without a valid token").await;
    let log = log.join("\n");
    assert!(!log.contains("that-does-not-hold"), "{log}");
    std::fs::write(&wrong, "no token at all\n").unwrap();
    let ended = room(&site.gateway, &wrong, &["resume"]).await;
    assert!(
        ended.err.contains("line 1: a line is a token"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn an_invalid_room_name_is_not_sent_to_the_gateway() {
    for name in ["../rooms", "main/settings?x=", "main#", ""] {
        let ended = run(&["room", "show", name, "--admin", "127.0.0.1:1"]).await;
        assert_eq!(ended.code, Some(2), "{name}");
        assert!(ended.err.contains("1 to 64 of A-Z"), "{}", ended.err);
    }
}

#[tokio::test]
async fn named_tokens_are_reloaded_by_a_signal() {
    let config = |origin| {
        let server = SERVER.to_owned() + "admin_token_file = \"tokens\"\n";
        server + &room_toml("main", origin, 1, "")
    };
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, format!("alice {FIRST}\n# no others\n")).unwrap();
    let file = folder.path().join("anteroom.toml");
    let origin = crate::support::origin::RecordingOrigin::start().await;
    std::fs::write(&file, config(origin.address)).unwrap();
    let flags = ["--config".to_owned(), file.display().to_string()];
    let gateway = crate::support::process::Gateway::start(&flags).await;
    let data = folder.path().join("anteroom-data");
    assert!(!data.join("admin-token").exists(), "none is generated");
    room_json(&gateway, &tokens, &["message", "hello"]).await;

    let kept = folder.path().join("kept");
    std::fs::copy(&tokens, &kept).unwrap();
    std::fs::write(&tokens, format!("bob {SECOND}\n")).unwrap();
    gateway.signal("HUP");
    eventually("the first token is not valid any more", || async {
        room(&gateway, &kept, &["resume"]).await.code == Some(1)
    })
    .await;
    let log = room_json(&gateway, &tokens, &["audit"]).await;
    assert_eq!(log["entries"][0]["who"]["token"], "alice");
    let shown = log.to_string() + &gateway.log().join("\n");
    assert!(!shown.contains(FIRST) && !shown.contains(SECOND));

    // A file without tokens changes nothing.
    std::fs::write(&tokens, "short\n").unwrap();
    gateway.signal("HUP");
    eventually("the file is rejected", || async {
        gateway
            .log()
            .join("\n")
            .contains("line 1: a line is a token")
    })
    .await;
}

#[tokio::test]
async fn an_address_that_others_reach_needs_tokens() {
    let origin = "127.0.0.1:9".parse().unwrap();
    let server = SERVER.replace("admin = \"127.0.0.1:0\"", "admin = \"0.0.0.0:0\"");
    let file = ConfigFile::new(&(server.clone() + &room_toml("main", origin, 1, "")));
    let path = file.path().display().to_string();
    let ended = run(&["check", "--config", &path]).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended
            .err
            .contains("server.admin: found 0.0.0.0:0 without admin_token_file"),
        "{}",
        ended.err
    );
    file.write(&(server + "admin_token_file = \"tokens\"\n" + &room_toml("main", origin, 1, "")));
    assert_eq!(run(&["check", "--config", &path]).await.code, Some(0));
    let flags = [
        "serve",
        "--origin",
        "http://127.0.0.1:9",
        "--admin",
        "0.0.0.0:0",
    ];
    let limits = ["--total-active-users", "1", "--new-users-per-minute", "1"];
    let ended = run(&[&flags[..], &limits[..]].concat()).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("--admin: found 0.0.0.0:0"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn the_admin_address_accepts_only_listed_host_names() {
    let origin = crate::support::origin::RecordingOrigin::start().await;
    let server = SERVER.to_owned() + "admin_hosts = [\"ops.example.com\"]\n";
    let file = ConfigFile::new(&(server + &room_toml("main", origin.address, 1, "")));
    let gateway = crate::support::process::Gateway::start(&file.flags()).await;
    for (host, status) in [
        ("localhost", 200),
        ("Ops.Example.com:8081", 200),
        ("evil.example", 421),
    ] {
        let response = ask(gateway.admin, host, "/api/v1/state", "").await;
        assert_eq!(status_of(&response), status, "{host}");
    }
}
