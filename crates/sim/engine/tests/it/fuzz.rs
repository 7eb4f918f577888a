//! Readers of scenarios and of their CSV files on damaged files: never a panic, never two lines for
//! a problem, never a scenario beyond the bounds.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-sim --test it fuzz` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` sets the first seed, or repeats a failure.

use std::path::Path;

use anteroom_sim::scenario::file::{ScenarioText, fuzz_csv};
use anteroom_sim::scenario::model::Scenario;
use anteroom_sim::scenario::settings;
use anteroom_testkit::{Effort, Field, Language, fuzz, seeds};

/// Pieces that a scenario understands.
const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\n",
        b"[[fault]]\n",
        b"[[data_center]]\n",
        b"[data_centers]\n",
        b"[room.shop]\n",
        b"[[room.shop.arrivals]]\n",
        b"[room.shop.visitors]\n",
        b"[[room.shop.event]]\n",
        b"event_start_time = \"2030-01-01T00:20:00Z\"\n",
        b"]",
        b"[",
        b"{",
        b"}",
        b"=",
        b",",
        b".",
        b"/",
        b"*",
        b"\"",
        b"'",
        b"#",
        b"\\n",
        b"\xe2\x80\xa8",
        b"\r\n",
        b"\xf4\x8f\xbf\xbf",
        b"-1",
        b"0",
        b"2147483647",
        b"1e308",
        b"nan",
        b"inf",
        b"true",
        b"2030-01-31T10:00:00Z",
        b"9999-12-31T23:59:59Z",
        b"\"31d\"",
        b"\"1ms\"",
        b"\"-24h\"",
        b"\"99999999999999999999d\"",
        b"[[\"0s\", 1e6], [\"0s\", 0]]",
        b"[\"0s\", \"60s\"]",
        b"\"sjc/2\"",
        b"\"*\"",
        b"\"global\"",
        b"\"zipf\"",
        b"kind",
        b"name",
        b"count = 5000\n",
        b"apart = \"31d\"\n",
    ],
    field: Some(Field {
        begins_after: b'=',
        ends_before: b'\n',
    }),
};

const TABLE: Language<'_> = Language {
    pieces: &[
        b"\n",
        b",",
        b"\"",
        b"\"\"",
        b"#",
        b"\r",
        b"\xff",
        b"5m",
        b"1e308",
        b"-0",
        b"nan",
        b"inf",
        b"31d",
        b"2030-03-17T17:48:20Z",
        b"time",
        b";",
        b"\xef\xbb\xbf",
        b"\0",
    ],
    field: Some(Field {
        begins_after: b',',
        ends_before: b'\n',
    }),
};

fn folder(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    seeds::of_folder_with_extension(&folder, "toml")
}

fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let text = ScenarioText {
        source: "fuzz.toml",
        name: "fuzz",
        text: &text,
        folder: None,
    };
    match text.read(&[]) {
        Ok(scenario) => check_scenario(&scenario),
        Err(problems) => {
            assert!(!problems.0.is_empty(), "rejected without a problem");
            for problem in &problems.0 {
                let line = problem.to_string();
                assert!(!line.contains(['\n', '\r']), "more than one line: {line:?}");
            }
        }
    }
}

/// Checks what the simulator relies on.
fn check_scenario(scenario: &Scenario) {
    assert!(!scenario.rooms.is_empty() && !scenario.data_centers.is_empty());
    assert!(!scenario.compare.is_empty());
    assert!(scenario.length.0 >= 1_000 && scenario.sample_every.0 >= 1_000);
    let nodes: u64 = scenario
        .data_centers
        .iter()
        .map(|dc| u64::from(dc.nodes))
        .sum();
    assert!(nodes <= 5_000);
    assert!(scenario.data_centers.iter().any(|dc| dc.share > 0.0));
    assert!(scenario.faults.is_sorted_by_key(|fault| fault.at));
    for arrivals in scenario.rooms.iter().flat_map(|room| &room.arrivals) {
        assert!(arrivals.points.is_sorted_by_key(|point| point.at));
        let is_rate = |rate: f64| (0.0..=1e6).contains(&rate);
        assert!(
            arrivals
                .points
                .iter()
                .all(|point| is_rate(point.per_second))
        );
        assert!(
            arrivals
                .data_center
                .is_none_or(|dc| dc < scenario.data_centers.len())
        );
    }
}

#[test]
fn every_file_of_the_corpus_keeps_the_bounds() {
    for name in ["testdata/scenario", "scenarios"] {
        folder(name).iter().for_each(|file| check(file));
    }
}

#[test]
fn damaged_scenarios_keep_the_bounds() {
    let mut corpus = folder("scenarios");
    corpus.extend(folder("testdata/scenario"));
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus, check);
}

#[test]
fn damaged_tables_keep_the_bounds() {
    let corpus = [b"time,rate,place\n0,1\n5m,2.5\n\"10m\",3\n# end\n".to_vec()];
    fuzz(Effort::from_environment(), &TABLE, &corpus, fuzz_csv);
}

#[test]
fn damaged_settings_keep_the_bounds() {
    let small = b"room.shop.arrivals[1].points=[['0s', 1], ['1m', 2]],5".to_vec();
    let corpus = [small, b"fault[2].at=1m,2m".to_vec(), b"length=1h".to_vec()];
    let file = folder("scenarios").remove(0);
    let file = String::from_utf8(file).expect("it is text");
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus, |data| {
        let typed = String::from_utf8_lossy(data).into_owned();
        let Ok(all) = settings::combinations(&[typed]) else {
            return;
        };
        for settings in all {
            let text = ScenarioText {
                source: "fuzz.toml",
                name: "fuzz",
                text: &file,
                folder: None,
            };
            if let Ok(scenario) = text.read(&settings) {
                check_scenario(&scenario);
            }
        }
    });
}
