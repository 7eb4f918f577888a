//! `anteroom check` reports every mistake, at once.

use std::path::Path;

use serde_json::Value;

use crate::support::command::run;
use crate::support::config::ConfigFile;

const GOOD: &str = r#"
[server]
listen = "127.0.0.1:8080"

[[room]]
name = "shop"
origin = "http://127.0.0.1:3000"
total_active_users = 200
new_users_per_minute = 100
bypass = ['path.startsWith("/webhooks/")']
"#;

/// Config with a mistake in every line.
const BAD: &str = r#"
[server]
listen = "8080"
ticket_keys = ["MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MA=="]

[[room]]
name = "no spaces"
origin = "ftp://127.0.0.1:3000"
total_active_users = 0
session_duration = 5
queue = "fifo"
bypass = ['pth == "/x"']
"#;

/// Beginnings of the messages, after the name of the file.
const MISTAKES: [&str; 9] = [
    ":3: server.listen",
    ":4: server.ticket_keys",
    ":6: room[1].new_users_per_minute: missing",
    ":7: room[1].name",
    ":8: room[1].origin",
    ":9: room[1].total_active_users: found 0",
    ":10: room[1].session_duration: found 5",
    ":11: room[1].queue: unknown key",
    ":12: room[1].bypass",
];

async fn check(file: &Path, flags: &[&str]) -> crate::support::command::Ended {
    let file = file.display().to_string();
    let mut args = vec!["check", "--config", &file];
    args.extend(flags);
    run(&args).await
}

#[tokio::test]
async fn a_valid_file_is_accepted_without_warnings() {
    let file = ConfigFile::new(GOOD);
    let ended = check(&file.path(), &[]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(ended.out.contains("valid, 1 room"), "{}", ended.out);
    let ended = check(&file.path(), &["--json"]).await;
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let expected = serde_json::json!({"valid": true, "errors": [], "warnings": []});
    assert_eq!((ended.code, report), (Some(0), expected));
    let folder = file.path().parent().unwrap().read_dir().unwrap();
    assert_eq!(folder.count(), 1, "a check leaves nothing behind");
}

#[tokio::test]
async fn every_mistake_is_reported_at_once_without_secrets() {
    let file = ConfigFile::new(BAD);
    let ended = check(&file.path(), &[]).await;
    assert_eq!(ended.code, Some(2));
    let lines: Vec<_> = ended
        .err
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    for mistake in MISTAKES {
        assert!(
            lines.iter().any(|line| line.contains(mistake)),
            "{mistake}: {lines:#?}"
        );
    }
    assert!(
        lines.iter().all(|line| line.contains("anteroom.toml:")),
        "{lines:#?}"
    );
    assert!(!ended.err.contains("MTIzNDU2Nzg5"), "{}", ended.err);

    let ended = check(&file.path(), &["--json"]).await;
    assert_eq!(ended.code, Some(2));
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["valid"], false);
    assert_eq!(report["errors"].as_array().unwrap().len(), lines.len());
    assert!(!ended.out.contains("MTIzNDU2Nzg5"));
}

#[tokio::test]
async fn mistakes_in_rules_are_reported_with_their_line() {
    let rules =
        "bypass = [\n'path == \"/ok\"',\n'pth == \"/x\"',\n'path.startsWith(1)',\n'path =='\n]";
    let old = "bypass = ['path.startsWith(\"/webhooks/\")']";
    let file = ConfigFile::new(&GOOD.replace(old, rules));
    let ended = check(&file.path(), &[]).await;
    assert_eq!(ended.code, Some(2));
    for line in ["toml:12", "toml:13", "toml:14"] {
        assert!(ended.err.contains(line), "{line}: {}", ended.err);
    }
    assert!(!ended.err.contains("toml:11"), "{}", ended.err);
}

#[tokio::test]
async fn a_room_without_rules_is_warned_about_webhooks() {
    let text: String = GOOD
        .lines()
        .filter(|line| !line.starts_with("bypass"))
        .fold(String::new(), |text, line| text + line + "\n");
    let file = ConfigFile::new(&text);
    let ended = check(&file.path(), &[]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let warning = ended
        .out
        .lines()
        .find(|line| line.starts_with("warning: "))
        .unwrap();
    assert!(
        warning.contains("webhooks") && warning.contains("bypass"),
        "{warning}"
    );
    let ended = check(&file.path(), &["--json"]).await;
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["valid"], true);
    assert_eq!(report["warnings"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_a_mistake_too() {
    let ended = check(Path::new("/nowhere/anteroom.toml"), &[]).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("/nowhere/anteroom.toml: cannot read"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn an_origin_that_is_the_gateway_itself_is_a_mistake() {
    let origins = [
        ("http://127.0.0.1:8080", "server.listen"),
        ("http://localhost:8080", "server.listen"),
        ("http://127.0.0.1:8081", "server.admin"),
    ];
    for (origin, key) in origins {
        let file = ConfigFile::new(&GOOD.replace("http://127.0.0.1:3000", origin));
        let ended = check(&file.path(), &[]).await;
        assert_eq!(ended.code, Some(2), "{origin}: {}", ended.out);
        let is_reported = ended.err.contains("is this gateway itself") && ended.err.contains(key);
        assert!(is_reported, "{origin}: {}", ended.err);
    }
}

#[tokio::test]
async fn a_room_that_covers_less_than_meant_draws_a_warning() {
    let rule = "bypass = ['path.startsWith(\"/webhooks/\")']";
    for (instead, expected) in [
        ("bypass = ['true']", "nobody ever waits"),
        ("bypass = ['path == \"/\"']", "nobody waits there"),
        ("bypass = []\npath = \"/a/../shop\"", "covers \"/shop\""),
    ] {
        let file = ConfigFile::new(&GOOD.replace(rule, instead));
        let ended = check(&file.path(), &[]).await;
        assert_eq!(ended.code, Some(0), "{instead}: {}", ended.err);
        let warnings = ended
            .out
            .lines()
            .filter(|line| line.starts_with("warning: "));
        let warnings: Vec<_> = warnings.collect();
        let is_reported = warnings.len() == 1 && warnings[0].contains(expected);
        assert!(is_reported, "{instead}: {warnings:?}");
    }
}
