//! Commands whose output is not read any more, as after `anteroom ... | head -1`.

use std::process::Stdio;

use tokio::time::timeout;

use crate::night::token_file;
use crate::support::command::command;
use crate::support::config::ConfigFile;
use crate::support::site::Site;
use crate::support::{TIMEOUT, eventually};

/// Runs a command with closed output, and checks its exit code. A panic has 101.
async fn check(args: &[&str], expected: i32) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(args);
    command
        .stdout(Stdio::from(writer.try_clone().unwrap()))
        .stderr(Stdio::from(writer));
    let ended = timeout(TIMEOUT, command.status()).await;
    let status = ended.unwrap_or_else(|_| panic!("{args:?} does not end"));
    assert_eq!(status.unwrap().code(), Some(expected), "{args:?}");
}

#[tokio::test]
async fn commands_succeed_when_their_output_is_closed() {
    check(&["--help"], 0).await;
    check(&["no-such-command"], 2).await;
    check(&["simulate", "--list"], 0).await;
    check(&["simulate", "no-such-scenario"], 2).await;
    let folder = tempfile::tempdir().unwrap();
    let charts = folder.path().display().to_string();
    let limits = ["simulate", "limits", "--algorithm", "gcra"];
    check(&[&limits[..], &["--charts", &charts]].concat(), 0).await;
    let drawn = folder.path().read_dir().unwrap().count();
    assert_eq!(drawn, 1, "files are written anyway");
    let bad = ConfigFile::new("[server]\nlisten = 1\n");
    check(&["check", "--config", &bad.path().display().to_string()], 2).await;
    let flags = ["serve", "--config", &bad.path().display().to_string()];
    check(&flags, 2).await;
}

#[tokio::test]
async fn commands_to_a_gateway_succeed_when_their_output_is_closed() {
    let site = Site::with_room(1, "").await;
    let good = site.file.path().display().to_string();
    check(&["check", "--config", &good], 0).await;
    eventually("its room has a lease", || async {
        site.operators("/healthz").await.status == 200
    })
    .await;
    let admin = site.gateway.admin.to_string();
    let at = ["--admin", &admin];
    let token = token_file(&site.file.path().with_file_name("anteroom-data"));
    let token = token.display().to_string();
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["room", "show", "main", "--token-file", &token],
    ] {
        check(&[words, &at].concat(), 0).await;
    }
    check(&[&["status", "--ready"], &at[..]].concat(), 0).await;
    // Without a token and a limit of this name.
    let wrong = ["limits", "list", "--token-file", "/nowhere/token"];
    check(&[&wrong[..], &at].concat(), 1).await;
}
