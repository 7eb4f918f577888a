//! Flags of the command: compared pairs, errors and output.

use clap::Parser;
use serde_json::Value;

use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    options: LimitsOptions,
}

fn compared(flags: &[&str]) -> anyhow::Result<Comparison> {
    let cli = Cli::try_parse_from([&["limits"], flags].concat())?;
    compare(&cli.options)
}

fn words(comparison: &Comparison) -> Vec<(&str, &str)> {
    let runs = comparison.runs.iter();
    runs.map(|run| (run.algorithm.name(), run.store.word()))
        .collect()
}

#[test]
fn by_default_all_fitting_algorithms_are_compared() {
    assert_eq!(compared(&[]).unwrap().runs.len(), 8);
    let two = compared(&["--store", "local,gossip", "--nodes", "2"]).unwrap();
    assert_eq!(two.runs.len(), 8 + 4);
    let leases = compared(&["--store", "leases"]).unwrap();
    assert!(!words(&leases).contains(&("leaky-bucket", "leases")));
    assert_eq!(compared(&[]).unwrap().left_out, []);
    let output = table::table(&two);
    assert!(
        output.ends_with(
            "left out over gossip: sliding-log, token-bucket, gcra, leaky-bucket: it shares \
             counts of requests, and only windows have them\n"
        ),
        "{output}"
    );
    let output: Value = serde_json::from_str(&crate::lab::json::json(&leases)).unwrap();
    assert_eq!(output["left_out"][0]["algorithm"], "leaky-bucket");
}

#[test]
fn a_named_algorithm_is_never_left_out() {
    for (flags, expected) in [
        (&["--sub-windows", "0"][..], "outside 1 to 120"),
        (&["--sub-windows", "121"], "outside 1 to 120"),
        // A second has no seven equal parts of whole microseconds.
        (
            &["--sub-windows", "7", "--limit", "9/s"],
            "no 7 equal parts",
        ),
        (&["--burst", "0"], "burst of zero"),
    ] {
        let error = format!("{:#}", compared(flags).unwrap_err());
        assert!(error.contains(expected), "{flags:?}: {error}");
    }
    // Other algorithms ignore the setting.
    let flags = ["--sub-windows", "0", "--algorithm", "gcra"];
    assert_eq!(words(&compared(&flags).unwrap()), [("gcra", "local")]);
    let long = compared(&["--limit", "2000000/d", "--rate", "10/s", "--length", "1s"]).unwrap();
    assert!(!words(&long).contains(&("sliding-log", "local")));
    assert!(long.left_out[0].reason.contains("log of 2000000 requests"));
}

#[test]
fn inputs_are_printed_so_a_run_can_be_repeated() {
    let flags = [
        &["--store", "kafka,memcached", "--nodes", "3", "--sticky"][..],
        &["--clients", "2", "--length", "1m", "--delay", "9ms"],
        &["--burst", "7", "--queue", "5", "--sub-windows", "6"],
        &["--events-per-second", "99", "--add-nodes", "2@20s,1@10s"],
    ]
    .concat();
    let comparison = compared(&flags).unwrap();
    let table = table::table(&comparison);
    let output: Value = serde_json::from_str(&crate::lab::json::json(&comparison)).unwrap();
    for (name, value, words) in [
        ("limit", Value::from("100/m"), "limit 100/m"),
        ("sub_windows", 6.into(), "sub-windows 6"),
        ("burst", 7.into(), "burst 7"),
        ("queue", 5.into(), "queue 5"),
        ("nodes", 3.into(), "nodes 3"),
        (
            "add_nodes",
            Value::from(["2@20000ms", "1@10000ms"].map(Value::from).to_vec()),
            "add-nodes 2@20000ms,1@10000ms",
        ),
        ("sticky", true.into(), ", sticky,"),
        ("delay_ms", 9.into(), "delay-ms 9"),
        ("events_per_second", 99.into(), "events-per-second 99"),
        ("seed", 1.into(), "seed 1"),
        (
            "traffic",
            "random, 110/m on average of each of 2 clients, 60 s long".into(),
            "random, 110/m on average of each of 2 clients, 60 s long",
        ),
    ] {
        assert_eq!(output[name], value, "{name}");
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(
        table.contains("report lag") && table.contains("writes lost"),
        "{table}"
    );
    let alone = table::table(&compared(&[]).unwrap());
    assert!(
        !alone.contains("report lag") && !alone.contains("writes lost"),
        "{alone}"
    );
    assert!(
        alone.contains("seed 1\n") && !alone.contains("sticky"),
        "{alone}"
    );
}

#[test]
fn added_nodes_let_clients_start_again() {
    let flags = [
        &[
            "--algorithm",
            "sub-windows-strict",
            "--store",
            "local,valkey",
        ][..],
        &[
            "--sticky",
            "--nodes",
            "2",
            "--clients",
            "20",
            "--rate",
            "200/min",
        ],
    ]
    .concat();
    let of = |more: &[&str]| {
        let comparison = compared(&[&flags, more].concat()).unwrap();
        let runs = comparison.runs.into_iter();
        let stats = runs.map(|run| (run.outcome.stats.wrongly_allowed, run.most));
        stats.collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), [(0, 100), (0, 100)]);
    let grown = of(&["--add-nodes", "2@4m30s", "--add-nodes", "4@7m"]);
    assert!(grown[0].0 > 500, "{grown:?}");
    assert_eq!((grown[0].1, grown[1]), (300, (0, 100)));
}

#[test]
fn nodes_that_share_counts_allow_at_most_a_limit_each() {
    let algorithms = "fixed-window,sliding-window,sub-windows,sub-windows-strict";
    for store in ["gossip", "kafka"] {
        let flags = ["--algorithm", algorithms, "--store", store, "--nodes", "3"];
        let late = ["--limit", "20/10s", "--delay", "5s"];
        let flags = [&flags[..], &late, &["--traffic", "adversary"]].concat();
        for run in compared(&flags).unwrap().runs {
            let (highest, most) = (run.outcome.stats.highest, run.most);
            let word = run.algorithm.name();
            assert!(highest <= most, "{store}, {word}: {highest} of {most}");
            let are_late = highest >= 60;
            assert!(are_late, "{store}, {word}: the news are late: {highest}");
            let single = run.policy.window_cost_max(1);
            assert_eq!(most / 3, single, "{store}, {word}");
        }
    }
}

#[test]
fn statistics_repeat_with_the_seed_in_both_outputs() {
    let flags = ["--algorithm", "fixed-window,sliding-log", "--seed", "3"];
    let comparison = compared(&flags).unwrap();
    let output = crate::lab::json::json(&comparison);
    assert_eq!(output, crate::lab::json::json(&compared(&flags).unwrap()));
    assert_ne!(
        output,
        crate::lab::json::json(&compared(&flags[..2]).unwrap())
    );
    let report: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report["limit"], "100/m");
    let [fixed, log] = &report["runs"].as_array().unwrap()[..] else {
        panic!("two runs: {output}");
    };
    assert_eq!(fixed["requests"], log["requests"]);
    assert!(fixed["wrongly_allowed"].as_u64() > Some(0));
    assert_eq!(
        (&log["wrongly_allowed"], &log["wrongly_rejected"]),
        (&0.into(), &0.into())
    );
    let table = table::table(&comparison);
    let rows = table.lines().filter(|line| line.starts_with("sliding-log"));
    let cells: Vec<&str> = rows.flat_map(str::split_whitespace).collect();
    let stats = comparison.runs[1].outcome.stats;
    assert_eq!(cells[3..6], [stats.admitted.to_string().as_str(), "0", "0"]);
    assert_eq!(cells[6..8], ["100", "100"]);
}

#[test]
fn recorded_requests_are_counted_by_client() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.csv");
    std::fs::write(&file, "time,client\n0,a\n0.5,a\n0.5,b\n").unwrap();
    let path = file.display().to_string();
    let flags = [
        "--traffic",
        &path,
        "--limit",
        "1/s",
        "--algorithm",
        "sliding-log",
    ];
    let comparison = compared(&flags).unwrap();
    let stats = comparison.runs[0].outcome.stats;
    assert_eq!((stats.admitted, stats.rejected), (2, 1));
    assert!(drawing::whose(&comparison.traffic).ends_with("client, \"a\""));
    let made_up = compared(&flags[2..]).unwrap();
    assert_eq!(drawing::whose(&made_up.traffic), "");
}

#[test]
fn errors_name_the_next_step() {
    for (flags, expected) in [
        (
            &["--store", "gossip", "--algorithm", "gcra"][..],
            "choose another store or algorithm",
        ),
        (
            &["--store", "gossip", "--algorithm", "gcra"],
            "counts of requests",
        ),
        (
            &["--store", "gossip", "--nodes", "900", "--rate", "90000/min"],
            "take fewer --nodes",
        ),
        (&["--traffic", "burst"], "write random, bursty, adversary"),
        (&["--traffic", "none.csv"], "none.csv: cannot read the file"),
        (&["--rate", "4000000000/s"], "take a lower --rate"),
        (
            &["--algorithm", "sub-windows", "--sub-windows", "0"],
            "outside 1 to 120",
        ),
        (&["--limit", "100"], "rate has no window after a slash"),
        (&["--algorithm", "fixed"], "fixed-window"),
        (&["--nodes", "0"], "1..=1000"),
        (
            &["--traffic", "adversary", "--limit", "1000000/s"],
            "take a lower --limit or --burst, or fewer nodes",
        ),
        (
            &["--traffic", "adversary", "--rate", "9/s"],
            "--rate is for",
        ),
        (
            &["--traffic", "adversary", "--length", "9s"],
            "--length is for",
        ),
        (
            &["--traffic", "none.csv", "--clients", "1"],
            "--clients is for",
        ),
        (&["--limit", "0/min"], "take a higher --rate"),
        (&["--rate", "0/min"], "take a higher --rate"),
        (&["--length", "0s"], "a longer --length"),
        (&["--add-nodes", "2"], "such as 2@4m"),
        (&["--add-nodes", "2@20m"], "requests come for 600 s only"),
        (
            &["--nodes", "999", "--add-nodes", "2@1m"],
            "1001 nodes in all",
        ),
        (&["--length", "5"], "units"),
    ] {
        let error = format!("{:#}", compared(flags).unwrap_err());
        assert!(error.contains(expected), "{flags:?}: {error}");
    }
}

#[test]
fn charts_are_drawn_into_a_folder_and_nothing_else_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let comparison = compared(&["--algorithm", "sub-windows,gcra"]).unwrap();
    let names = [
        "counts-sub-windows-4.svg",
        "admitted-local-gcra-burst-100.svg",
    ];
    for _ in 0..2 {
        drawing::draw(folder.path(), &comparison, &mut Vec::new()).unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    for name in names {
        let file = folder.path().join(name);
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(svg.contains("limit: 100"), "{name}");
        std::fs::write(&file, "my own").unwrap();
        assert!(
            drawing::draw(folder.path(), &comparison, &mut Vec::new()).is_err(),
            "{name}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "my own");
        std::fs::write(&file, svg).unwrap();
    }
    let file = folder.path().join(names[0]);
    let error = check_folder("--charts", &file).unwrap_err().to_string();
    assert!(error.contains("is not a folder"), "{error}");
}

#[test]
fn charts_of_other_settings_have_other_names_and_titles() {
    let folder = tempfile::tempdir().unwrap();
    for (parts, length) in [("4", "15 s"), ("15", "4 s")] {
        let flags = ["--algorithm", "sub-windows", "--sub-windows", parts];
        drawing::draw(folder.path(), &compared(&flags).unwrap(), &mut Vec::new()).unwrap();
        for name in ["counts-sub-windows", "admitted-local-sub-windows"] {
            let file = folder.path().join(format!("{name}-{parts}.svg"));
            let svg = std::fs::read_to_string(file).unwrap();
            let title = format!("sub-windows ({parts} of {length})");
            assert!(svg.contains(&title), "{name}: {title}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn a_chart_that_would_not_show_the_limit_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--algorithm", "fixed-window", "--traffic", "adversary"];
    drawing::draw(folder.path(), &compared(&flags).unwrap(), &mut Vec::new()).unwrap();
    let files = std::fs::read_dir(folder.path()).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["admitted-local-fixed-window.svg"]);
}
