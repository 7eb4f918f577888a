//! `anteroom simulate` as an operator uses it.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::command::{Ended, run};

/// Scenario of a minute of a small shop with a few visitors too many.
const SMALL: &str = r#"
about = "A minute of a small shop."
length = "1m"

[[data_center]]
name = "sjc"
nodes = 2

[room.shop]
total_active_users = 20
new_users_per_minute = 30
session_duration = "10s"

[[room.shop.arrivals]]
kind = "constant"
per_second = 1

[room.shop.visitors]
pages = 2
think_time = "5s"
"#;

/// Scenario with a mistake in every line but the first.
const BAD: &str = r#"[room.shop]
total_active_users = 0
sesion_duration = "5m"
[[room.shop.arrivals]]
kind = "konstant"
[[fault]]
kind = "crash"
node = "sjc/1"
"#;

/// A file in its own folder.
struct ScenarioFile {
    folder: TempDir,
}

impl ScenarioFile {
    fn new(text: &str) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("small.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn simulate(&self, flags: &[&str]) -> Ended {
        let file = self.path("small.toml").display().to_string();
        let mut args = vec!["simulate", &file];
        args.extend(flags);
        run(&args).await
    }
}

#[tokio::test]
async fn the_ready_made_scenarios_are_listed_and_can_be_printed() {
    let ended = run(&["simulate", "--list"]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    for name in [
        "article-two-days",
        "flash-sale",
        "slow-ramp-to-95-percent",
        "worldwide-spike",
        "tiny-limit",
        "partition",
        "rolling-restart",
        "rush-late-in-a-minute",
    ] {
        let is_listed = ended.out.lines().any(|line| line == name);
        assert!(is_listed, "{name}: {}", ended.out);
    }
    let ended = run(&["simulate", "flash-sale", "--print"]).await;
    assert_eq!(ended.code, Some(0));
    let file = ScenarioFile::new(&ended.out);
    let ended = file.simulate(&["--length", "10s", "--json"]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn every_mistake_of_a_file_is_reported_at_once() {
    let ended = ScenarioFile::new(BAD).simulate(&[]).await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
    for mistake in [
        ":1: room.shop.new_users_per_minute: missing",
        ":2: room.shop.total_active_users: found 0",
        ":3: room.shop.sesion_duration: unknown key; did you mean session_duration?",
        ":5: room.shop.arrivals[1].kind: found \"konstant\"",
        ":6: fault[1].at: missing",
        ":6: fault[1].after: missing",
        ":8: fault[1].node: found \"sjc/1\"",
    ] {
        let is_reported = |line: &str| line.starts_with("error: ") && line.contains(mistake);
        assert!(
            ended.err.lines().any(is_reported),
            "{mistake}: {}",
            ended.err
        );
    }
    assert!(
        ended
            .err
            .ends_with("7 mistakes; nothing was started or changed\n")
    );
}

#[tokio::test]
async fn a_typing_error_is_reported_with_a_suggestion() {
    let check = async |args: &[&str], code: i32, expected: &str| {
        let ended = run(&[&["simulate"], args].concat()).await;
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.err);
        assert!(ended.err.contains(expected), "{args:?}: {}", ended.err);
    };
    check(&["flash-sail"], 2, "did you mean flash-sale?").await;
    check(&["nothing-like-it"], 2, "--list").await;
    check(&[], 2, "SCENARIO").await;
    let set = ["flash-sale", "--set"];
    let key = "room.sale.new_user_per_minute=900";
    check(
        &[&set[..], &[key]].concat(),
        2,
        "did you mean new_users_per_minute?",
    )
    .await;
    let room = "room.sail.draw=true";
    check(&[&set[..], &[room]].concat(), 2, "did you mean room.sale?").await;
    check(&[&set[..], &["draw"]].concat(), 2, "write KEY=VALUE").await;
    check(&["flash-sale", "--length", "5"], 2, "did you mean \"5m\"?").await;
    check(&["flash-sale", "--allocation", "lease"], 2, "leases").await;
    let many = "seed=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17";
    check(&[&set[..], &[many]].concat(), 1, "these are 68 runs").await;
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes() {
    let file = ScenarioFile::new(SMALL);
    let first = file.simulate(&["--json"]).await;
    assert_eq!((first.code, first.err.as_str()), (Some(0), ""));
    let again = file.simulate(&["--json"]).await;
    assert!(first.out == again.out, "two runs differ");
    let other = file.simulate(&["--json", "--seed", "2"]).await;

    let report: Value = serde_json::from_str(&first.out).unwrap();
    let other: Value = serde_json::from_str(&other.out).unwrap();
    assert_eq!(other["scenario"]["seed"], 2);
    assert_ne!(report["outcomes"], other["outcomes"]);
    assert_eq!(report["scenario"]["name"], "small");
    let outcomes = report["outcomes"].as_array().unwrap();
    let allocations: Vec<_> = outcomes.iter().map(|o| o["allocation"].as_str()).collect();
    let expected = ["even", "curve", "counters", "leases"].map(Some);
    assert_eq!(allocations, expected);
    assert_eq!(outcomes[3]["violations"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn several_values_are_compared() {
    let file = ScenarioFile::new(SMALL);
    let flags = [
        "--json",
        "--allocation",
        "leases",
        "--set",
        "room.shop.new_users_per_minute=10,600",
    ];
    let ended = file.simulate(&flags).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let outcomes = report["outcomes"].as_array().unwrap();
    let of = |index: usize| {
        let outcome = &outcomes[index];
        let limit = outcome["limits"]["new_users_per_minute"].as_u64();
        (limit, outcome["settings"][0]["value"].as_str())
    };
    assert_eq!(outcomes.len(), 2);
    assert_eq!(of(0), (Some(10), Some("10")));
    assert_eq!(of(1), (Some(600), Some("600")));
    let admitted = |index: usize| outcomes[index]["stats"]["admitted"].as_u64();
    assert!(admitted(0) < admitted(1), "the lower limit lets more in");
    let queued = |index: usize| outcomes[index]["stats"]["queued"].as_u64();
    assert!(queued(0) > queued(1), "the lower limit lets fewer wait");
}

#[tokio::test]
async fn a_report_is_written_and_nothing_else_is_overwritten() {
    let file = ScenarioFile::new(SMALL);
    let folder = file.path("report");
    let out = folder.display().to_string();
    let flags = ["--allocation", "leases", "--out", &out];
    for _ in 0..2 {
        let ended = file.simulate(&flags).await;
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(ended.err.contains("index.html"), "{}", ended.err);
        assert!(ended.out.contains("leases"), "{}", ended.out);
    }
    let page = folder.join("index.html");
    std::fs::write(&page, "somebody's own page").unwrap();
    let ended = file.simulate(&flags).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("is there already"), "{}", ended.err);
    assert_eq!(
        std::fs::read_to_string(&page).unwrap(),
        "somebody's own page"
    );

    let taken = file.path("small.toml").display().to_string();
    let ended = file.simulate(&["--out", &taken]).await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
}

#[tokio::test]
async fn a_curve_file_is_relative_to_the_scenario() {
    let begin = SMALL.split("kind = ").next().unwrap();
    let text = format!("{begin}kind = \"csv\"\nfile = \"curve.csv\"\n");
    let file = ScenarioFile::new(&text);
    std::fs::write(
        file.path("curve.csv"),
        "time,rate,place\n0,1,sjc\n1m,2,sjc\n",
    )
    .unwrap();
    let ended = file.simulate(&["--json", "--allocation", "leases"]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    std::fs::write(file.path("curve.csv"), "0,1\n1m,lots\n").unwrap();
    let ended = file.simulate(&["--json"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended
            .err
            .contains("curve.csv:2: per_second: found \"lots\""),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn the_story_flag_excludes_others_and_needs_a_folder() {
    let file = ScenarioFile::new(SMALL);
    let taken = file.path("small.toml").display().to_string();
    let ended = run(&["simulate", "--story", &taken]).await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    assert!(ended.err.contains("is not a folder"), "{}", ended.err);
    let ended = file.simulate(&["--story", &taken]).await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
}

#[tokio::test]
async fn rate_limits_are_compared_on_the_same_traffic() {
    let flags = ["--algorithm", "fixed-window,sliding-log", "--json"];
    let ended = run(&[&["simulate", "limits"], &flags[..]].concat()).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["runs"][0]["requests"], report["runs"][1]["requests"]);
    assert_eq!(report["runs"][1]["highest_in_any_window"], 100);
    let ended = run(&["simulate", "limits", "--traffic", "burst"]).await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    assert!(
        ended.err.contains("write random, bursty, adversary"),
        "{}",
        ended.err
    );
}
