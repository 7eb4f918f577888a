//! `anteroom demo` keeps its promises, and ends when it should.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use crate::support::client::Client;
use crate::support::command::{command, run};
use crate::support::{TIMEOUT, eventually};

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
    let arrived = number("/visitors/arrived");
    assert!((1..=600).contains(&arrived), "{summary:#}");
    assert!(number("/visitors/admitted") >= 1 && number("/visitors/admitted") <= arrived);
    assert!(number("/visitors/waiting") <= arrived);
    assert_eq!(number("/visitors/queued_with_ticket"), 0);
    assert!(number("/gateway/inside") <= 50);
    assert!(
        number("/gateway/admitted") >= number("/visitors/admitted"),
        "{summary:#}"
    );
}

#[tokio::test]
async fn without_json_the_summary_is_for_people_and_one_seat_works() {
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
    for expected in [
        "40 visitors want to enter a shop with room for 1 at once",
        "in a browser: you queue with them. Ctrl-C ends the demo.",
        "After 4.",
        "The limits were kept.",
    ] {
        assert!(ended.out.contains(expected), "{expected}: {}", ended.out);
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
async fn ctrl_c_ends_the_demo_early_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&["demo", "--for", "1h", "--session-duration", "2s"]);
    command.env("TMPDIR", folder.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("in a browser") {
        line.clear();
        let read = timeout(TIMEOUT, out.read_line(&mut line)).await;
        assert!(read.unwrap().unwrap() > 0, "no greeting");
    }
    let url = line.trim_start_matches("Open http://");
    let (address, _) = url.split_once('/').unwrap();
    let mut browser = Client::new(address.parse().unwrap());
    let response = browser.navigate("/").await;
    assert_eq!(response.status, 200);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);

    interrupt(&child);
    let mut rest = String::new();
    let read = timeout(TIMEOUT, out.read_to_string(&mut rest)).await;
    read.expect("it ends").unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0), "{rest}");
    assert!(rest.contains(", ended early:"), "{rest}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

/// Returns the number of processes whose working directory is below `folder`, such as the stores.
fn processes_in(folder: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap();
    // Others start and end meanwhile, and some are not readable.
    let homes =
        processes.filter_map(|process| fs::read_link(process.ok()?.path().join("cwd")).ok());
    homes.filter(|home| home.starts_with(folder)).count()
}

/// Flags of a small demo on four nodes.
const FOUR_NODES: [&str; 11] = [
    "demo",
    "--nodes",
    "2",
    "--data-centers",
    "2",
    "--session-duration",
    "2s",
    "--total-active-users",
    "10",
    "--visitors",
    "80",
];

#[tokio::test]
async fn four_nodes_in_two_data_centers_keep_limits_and_stop_their_stores() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&FOUR_NODES);
    command.args(["--for", "8s", "--json"]);
    command.env("TMPDIR", folder.path());
    let output = timeout(TIMEOUT, command.output()).await;
    let output = output.expect("it ends").unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{out}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    let number = |path: &str| {
        let found = summary.pointer(path).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("{path}: {summary:#}"))
    };
    assert_eq!((number("/nodes"), number("/data_centers")), (4, 2));
    assert_eq!(summary["is_within_limits"], true, "{summary:#}");
    // More than one node alone may admit were admitted, and none too many.
    let most_inside = number("/origin/most_inside");
    assert!((2..=10).contains(&most_inside), "{summary:#}");
    assert_eq!(number("/visitors/queued_with_ticket"), 0, "{summary:#}");
    assert_eq!(number("/visitors/failed"), 0, "{summary:#}");
    assert!(number("/gateway/admitted") >= number("/visitors/admitted"));
    assert_eq!(processes_in(folder.path()), 0);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn the_stores_of_a_demo_stop_after_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&FOUR_NODES);
    command.args(["--for", "1h"]).env("TMPDIR", folder.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut greeting = String::new();
    while !greeting.contains("in a browser") {
        let read = timeout(TIMEOUT, out.read_line(&mut greeting)).await;
        assert!(read.unwrap().unwrap() > 0, "no greeting");
    }
    let shared = "4 nodes in 2 data centers share these limits";
    assert!(greeting.contains(shared), "{greeting}");
    assert_eq!(greeting.matches("http://127.0.0.1:").count(), 2);
    assert_eq!(
        processes_in(folder.path()),
        3,
        "one store for each data center, and a global one"
    );

    interrupt(&child);
    let mut rest = String::new();
    let read = timeout(TIMEOUT, out.read_to_string(&mut rest)).await;
    read.expect("it ends").unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0), "{rest}");
    let early = "on 4 nodes in 2 data centers, ended early:";
    assert!(rest.contains(early), "{rest}");
    assert_eq!(processes_in(folder.path()), 0);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn a_demo_interrupted_at_its_start_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&[
        "demo",
        "--nodes",
        "10",
        "--data-centers",
        "5",
        "--for",
        "1h",
    ]);
    command.env("TMPDIR", folder.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let has_begun = || async { processes_in(folder.path()) > 0 };
    eventually("the first store runs", has_begun).await;
    interrupt(&child);
    let ended = timeout(TIMEOUT, child.wait()).await;
    ended.expect("it ends").unwrap();
    assert_eq!(processes_in(folder.path()), 0);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn without_a_store_program_the_demo_names_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&["demo", "--nodes", "2"]);
    command.env("PATH", folder.path());
    let output = timeout(TIMEOUT, command.output()).await;
    let output = output.expect("it ends").unwrap();
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("install the package redis-server"), "{err}");
    assert!(err.contains("one node needs no store"), "{err}");
}

/// Sends the signal that Ctrl-C sends.
fn interrupt(child: &Child) {
    let id = child.id().unwrap().to_string();
    let kill = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(kill.unwrap().success());
}

#[tokio::test]
async fn flags_out_of_range_are_rejected_with_their_range() {
    for (flag, value) in [
        ("--total-active-users", "0"),
        ("--for", "5"),
        ("--for", "2d"),
        ("--nodes", "0"),
        ("--data-centers", "6"),
    ] {
        let ended = run(&["demo", flag, value]).await;
        assert_eq!(ended.code, Some(2), "{flag} {value}");
        assert!(ended.err.contains(flag), "{}", ended.err);
    }
}
