//! Golden files of `--help`.
//!
//! `ANTEROOM_UPDATE=1` rewrites the files.

use std::path::Path;

use crate::support::command::run;

async fn check(name: &str, args: &[&str]) {
    let ended = run(args).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    // Spaces at the ends of lines are not part of the golden files.
    let lines = ended.out.lines().map(str::trim_end);
    let printed: String = lines.flat_map(|line| [line, "\n"]).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/help");
    let file = folder.join(name).with_extension("txt");
    if std::env::var_os("ANTEROOM_UPDATE").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&file, &printed).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        printed, expected,
        "run again with ANTEROOM_UPDATE=1 if this is intended"
    );
}

#[tokio::test]
async fn help_matches_the_golden_files() {
    check("anteroom", &["--help"]).await;
    for command in [
        "serve", "demo", "check", "status", "history", "report", "room", "reload", "limits",
        "simulate",
    ] {
        check(command, &[command, "--help"]).await;
    }
}
