//! Does the demo show what it promises, and end when it should?

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::client::Client;
use crate::support::command::{command, run};

#[tokio::test]
async fn json_is_one_object_whose_numbers_make_sense() {
    let ended = run(&["demo", "--for", "6s", "--json"]).await;
    assert_eq!(
        (ended.code, ended.err.as_str()),
        (Some(0), ""),
        "{}",
        ended.out
    );
    assert_eq!(ended.out.lines().count(), 1, "{}", ended.out);
    let summary: Value = serde_json::from_str(&ended.out).unwrap();
    for (key, expected) in [
        ("is_within_limits", true),
        ("is_over_total_active_users", false),
        ("is_over_new_users_per_minute", false),
        ("is_interrupted", false),
    ] {
        assert_eq!(summary[key], expected, "{key}: {summary:#}");
    }
    let number = |path: &str| {
        let found = summary.pointer(path).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("{path}: {summary:#}"))
    };
    assert!(number("/duration_ms") >= 6_000);
    assert_eq!(number("/session_duration_ms"), 10_000);
    assert_eq!(number("/origin/total_active_users"), 50);
    assert_eq!(number("/origin/new_users_per_minute"), 300);
    let most_inside = number("/origin/most_inside");
    assert!((1..=50).contains(&most_inside), "{summary:#}");
    assert!(number("/origin/most_admissions_in_a_minute") <= 300);
    assert_eq!(number("/origin/late_requests"), 0);
    assert_eq!(number("/origin/unjudged_requests"), 0);
    assert!(number("/origin/requests") >= most_inside);
    let arrived = number("/crowd/arrived");
    assert!((1..=600).contains(&arrived), "{summary:#}");
    assert!(number("/crowd/admitted") >= 1 && number("/crowd/admitted") <= arrived);
    assert!(number("/crowd/waiting") <= arrived);
    assert_eq!(number("/crowd/thrown_out"), 0);
    assert!(number("/gateway/inside") <= 50);
    assert!(
        number("/gateway/admitted") >= number("/crowd/admitted"),
        "{summary:#}"
    );
}

#[tokio::test]
async fn without_json_a_summary_is_for_people_and_one_seat_is_enough() {
    let args = [
        "demo",
        "--for",
        "4s",
        "--total-active-users",
        "1",
        "--visitors",
        "40",
    ];
    let ended = run(&args).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    for said in [
        "40 visitors want into a shop that can bear 1 at once",
        "in a browser: you queue among them. Ctrl-C ends the demo.",
        "After 4.",
        "The limits were kept.",
    ] {
        assert!(ended.out.contains(said), "{said}: {}", ended.out);
    }
    let line = ended
        .out
        .lines()
        .find(|line| line.contains("most inside at once"))
        .unwrap();
    assert!(line.trim_end().ends_with("1       1"), "{line}");
    assert!(!ended.out.contains('\u{1b}'), "colours are for terminals");
}

#[tokio::test]
async fn from_the_keyboard_it_ends_early_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&["demo", "--for", "1h", "--session-duration", "2s"]);
    command.env("TMPDIR", folder.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("in a browser") {
        line.clear();
        let read = timeout(PATIENCE, out.read_line(&mut line)).await;
        assert!(read.unwrap().unwrap() > 0, "no greeting");
    }
    let url = line.trim_start_matches("Open http://");
    let (address, _) = url.split_once('/').unwrap();
    let mut browser = Client::new(address.parse().unwrap());
    let answer = browser.navigate("/").await;
    assert_eq!(answer.status, 200);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);

    let id = child.id().unwrap().to_string();
    let kill = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(kill.unwrap().success());
    let mut rest = String::new();
    let read = timeout(PATIENCE, out.read_to_string(&mut rest)).await;
    read.expect("it ends").unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0), "{rest}");
    assert!(rest.contains(", ended early:"), "{rest}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn flags_that_cannot_be_are_refused_with_their_range() {
    for (flag, value) in [
        ("--total-active-users", "0"),
        ("--for", "5"),
        ("--for", "2d"),
    ] {
        let ended = run(&["demo", flag, value]).await;
        assert_eq!(ended.code, Some(2), "{flag} {value}");
        assert!(ended.err.contains(flag), "{}", ended.err);
    }
}
