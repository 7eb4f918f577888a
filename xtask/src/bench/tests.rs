//! Tests of the benchmark's table and targets.

use super::*;
use crate::workspace::metadata;

fn measured(data_centers: u32, visitors: u32, cpu_s: f64) -> Measured {
    let json = format!(
        r#"{{"data_centers": {data_centers}, "nodes_per_data_center": 10, "minutes": 10,
            "events": 2000000, "cost": {{"wall_s": 9.0, "cpu_s": {cpu_s}}},
            "peak_bytes": 2097152, "broken": []}}"#
    );
    let measured = serde_json::from_str(&json).unwrap();
    Measured {
        visitors,
        ..measured
    }
}

#[test]
fn the_program_is_found_in_the_messages_of_a_build() {
    let messages = r#"{"reason": "compiler-artifact", "executable": null}
        not a message
        {"reason": "compiler-artifact", "executable": "target/release/examples/speed"}
        {"reason": "build-finished", "success": true}"#;
    let program = executable(messages, "speed").unwrap();
    assert!(program.ends_with("examples/speed"), "{program:?}");
    assert_eq!(executable(messages, "other"), None);
    assert_eq!(executable("{}", "speed"), None);
}

#[test]
fn each_size_has_its_median_round_and_relative_cost() {
    let rounds = [
        (1, 1.0),
        (300, 9.0),
        (1, 1.2),
        (300, 1.8),
        (1, 7.0),
        (300, 1.7),
    ];
    let rounds = rounds.map(|(data_centers, cpu_s)| measured(data_centers, data_centers, cpu_s));
    let rows = rows(&rounds);
    let short = rows.iter().map(|row| (row.nodes, row.cpu_s));
    assert_eq!(short.collect::<Vec<_>>(), [(10, 1.2), (3_000, 1.8)]);
    let table = table(&rows);
    assert!(
        table.contains("| 300 | 3000 | 300 | 2000000 | 9.00 | 1.80 | 1111111 | 900 | 1.50 | 2 |"),
        "{table}"
    );
}

#[test]
fn targets_are_compared_with_the_measurements() {
    let check = |smallest: f64, largest: f64, same_visitors: f64, parts: [&str; 3]| {
        let rounds = [
            measured(1, 10, smallest),
            measured(300, 3_000, largest),
            measured(1, 3_000, same_visitors),
        ];
        let verdict = verdict(&rows(&rounds));
        for part in parts {
            assert!(verdict.contains(part), "{verdict}");
        }
    };
    let met = "second: met (at worst 1333333)";
    check(
        1.0,
        1.5,
        1.2,
        [met, "visitors: met (1.25)", "node: met (1.50)"],
    );
    let missed = "second: MISSED (at worst 800000)";
    check(
        1.0,
        2.5,
        2.0,
        [missed, "visitors: met (1.25)", "node: MISSED (2.50)"],
    );
    check(
        0.5,
        1.5,
        0.5,
        [
            "second: met",
            "visitors: MISSED (3.00)",
            "node: MISSED (3.00)",
        ],
    );
}

#[test]
fn every_program_that_is_built_is_in_its_package() {
    let packages = metadata().unwrap().packages;
    for program in [GATEWAY, CLUSTER, RACE] {
        let package = packages
            .iter()
            .find(|package| package.name == program.package);
        let mut targets = package.unwrap().targets.iter();
        assert!(
            targets.any(|target| target.name == program.name),
            "{program:?}"
        );
    }
}
