//! One bad scenario file per rule, and its messages, word for word.
//!
//! `ANTEROOM_UPDATE=1 cargo test -p anteroom-sim --test it fixtures` rewrites the expected
//! messages.

use std::fs;
use std::path::{Path, PathBuf};

use anteroom_sim::scenario::file::ScenarioText;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/scenario")
}

fn with_extension(extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the fixtures are part of the crate")
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// Returns the messages for an operator, without the path of the project.
fn messages(file: &Path) -> String {
    let name = file.file_name().expect("it is a file").to_string_lossy();
    let text = fs::read_to_string(file).expect("a fixture can be read");
    let folder = folder();
    let text = ScenarioText {
        source: &name,
        name: "fixture",
        text: &text,
        folder: Some(&folder),
    };
    match text.read(&[]) {
        Ok(_) => String::new(),
        Err(problems) => {
            let prefix = format!("{}/", folder.display());
            format!("{problems}\n").replace(&prefix, "")
        }
    }
}

#[test]
fn every_rule_has_a_bad_file_and_its_messages() {
    let update = std::env::var_os("ANTEROOM_UPDATE").is_some();
    let files = with_extension("toml");
    assert!(files.len() > 60, "most fixtures are gone");
    let mut differing = Vec::new();
    for file in files {
        let messages = messages(&file);
        assert!(!messages.is_empty(), "{} is not bad at all", file.display());
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
fn every_expected_message_has_its_file() {
    for path in with_extension("expected") {
        let file = path.with_extension("toml");
        assert!(file.exists(), "{} is left over", path.display());
    }
}
