//! One bad file for each rule of the config file, with its messages.
//!
//! `ANTEROOM_UPDATE=1 cargo test -p anteroom-config --test it config_fixtures` rewrites the
//! expected messages; review the difference.

use std::fs;
use std::path::{Path, PathBuf};

use anteroom_config::Config;

fn fixtures() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/config");
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .expect("the fixtures are part of the crate")
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort();
    assert!(files.len() > 100, "most fixtures are gone");
    files
}

/// Returns the messages of a file: every mistake, or every warning if there is none.
fn messages(file: &Path) -> String {
    let name = file.file_name().expect("it is a file").to_string_lossy();
    let text = fs::read_to_string(file).expect("a fixture can be read");
    let mut lines = match Config::parse(&name, &text) {
        Ok(parsed) => parsed
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}"))
            .collect(),
        Err(problems) => problems
            .0
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    };
    lines.push(String::new());
    lines.join("\n")
}

#[test]
fn every_rule_has_a_bad_file_and_its_messages() {
    let update = std::env::var_os("ANTEROOM_UPDATE").is_some();
    let mut differing = Vec::new();
    for file in fixtures() {
        let messages = messages(&file);
        assert!(messages.len() > 1, "{} is not bad at all", file.display());
        let expected = file.with_extension("expected");
        if update {
            fs::write(&expected, &messages).expect("the fixtures can be written");
        }
        if fs::read_to_string(&expected).unwrap_or_default() != messages {
            differing.push(format!("{}:\n{messages}", file.display()));
        }
    }
    assert!(
        differing.is_empty(),
        "not as expected:\n{}",
        differing.join("\n")
    );
}

#[test]
fn every_expectation_has_its_file() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/config");
    for entry in fs::read_dir(directory).expect("the fixtures are part of the crate") {
        let path = entry.expect("the directory can be read").path();
        assert!(
            path.with_extension("toml").exists(),
            "{} is left over",
            path.display()
        );
    }
}
