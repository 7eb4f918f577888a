//! Flags: what is compared, what is said where that cannot be, and what is shown.

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
    runs.map(|run| (run.algorithm.word(), run.store.word()))
        .collect()
}

#[test]
fn without_a_word_all_algorithms_are_compared_that_fit() {
    assert_eq!(compared(&[]).unwrap().runs.len(), 8);
    let two = compared(&["--store", "local,gossip", "--nodes", "2"]).unwrap();
    assert_eq!(two.runs.len(), 8 + 4);
    let leases = compared(&["--store", "leases"]).unwrap();
    assert!(!words(&leases).contains(&("leaky-bucket", "leases")));
    // A minute has no seven equal parts of whole microseconds.
    let odd = compared(&["--sub-windows", "7", "--limit", "9/s"]).unwrap();
    assert_eq!(odd.runs.len(), 6, "{:?}", words(&odd));
}

#[test]
fn figures_repeat_with_the_seed_and_are_told_in_both_ways() {
    let flags = ["--algorithm", "fixed-window,sliding-log", "--seed", "3"];
    let comparison = compared(&flags).unwrap();
    let told = json::json(&comparison);
    assert_eq!(told, json::json(&compared(&flags).unwrap()));
    assert_ne!(told, json::json(&compared(&flags[..2]).unwrap()));
    let report: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(report["limit"], "100/m");
    let [fixed, log] = &report["runs"].as_array().unwrap()[..] else {
        panic!("two runs: {told}");
    };
    assert_eq!(fixed["calls"], log["calls"]);
    assert!(fixed["wrongly_admitted"].as_u64() > Some(0));
    assert_eq!(
        (&log["wrongly_admitted"], &log["wrongly_refused"]),
        (&0.into(), &0.into())
    );
    let table = table::table(&about(&comparison), &comparison.runs);
    let rows = table.lines().filter(|line| line.starts_with("sliding-log"));
    let cells: Vec<&str> = rows.flat_map(str::split_whitespace).collect();
    let figures = comparison.runs[1].outcome.figures;
    assert_eq!(
        cells[3..6],
        [figures.admitted.to_string().as_str(), "0", "0"]
    );
    assert_eq!(cells[6..8], ["100", "100"]);
}

#[test]
fn recorded_calls_are_judged_by_their_clients() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.csv");
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
    let figures = comparison.runs[0].outcome.figures;
    assert_eq!((figures.admitted, figures.refused), (2, 1));
    assert!(whose(&comparison.traffic).ends_with("client, \"a\""));
    let made_up = compared(&flags[2..]).unwrap();
    assert_eq!(whose(&made_up.traffic), "");
}

#[test]
fn what_cannot_be_run_is_told_with_what_to_do() {
    for (flags, expected) in [
        (
            &["--store", "gossip", "--algorithm", "gcra"][..],
            "choose another of both",
        ),
        (
            &["--store", "gossip", "--algorithm", "gcra"],
            "counts of calls",
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
            "from 1 to 120",
        ),
        (
            &["--limit", "100"],
            "the time in which so many calls may come is missing",
        ),
        (&["--algorithm", "fixed"], "fixed-window"),
        (&["--nodes", "0"], "1..=1000"),
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
    let names = ["counts-sub-windows.svg", "admitted-local-gcra.svg"];
    for _ in 0..2 {
        draw(folder.path(), &comparison).unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    for name in names {
        let file = folder.path().join(name);
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(svg.contains("limit: 100"), "{name}");
        std::fs::write(&file, "my own").unwrap();
        assert!(draw(folder.path(), &comparison).is_err(), "{name}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "my own");
        std::fs::write(&file, svg).unwrap();
    }
    let file = folder.path().join(names[0]);
    let error = check_folder("--charts", &file).unwrap_err().to_string();
    assert!(error.contains("is no folder"), "{error}");
}
