//! Is what `--help` says what was last agreed on?
//!
//! `ANTEROOM_UPDATE=1` writes the files anew.

use std::path::Path;

use crate::support::command::run;

async fn check(name: &str, args: &[&str]) {
    let ended = run(args).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    // Blanks at the ends of lines are nothing that anybody could agree on.
    let lines = ended.out.lines().map(str::trim_end);
    let said: String = lines.flat_map(|line| [line, "\n"]).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/help");
    let file = folder.join(name).with_extension("txt");
    if std::env::var_os("ANTEROOM_UPDATE").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&file, &said).unwrap();
    }
    let agreed = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        said, agreed,
        "run again with ANTEROOM_UPDATE=1 if this is meant"
    );
}

#[tokio::test]
async fn help_says_what_was_agreed_on() {
    check("anteroom", &["--help"]).await;
    for command in [
        "serve", "demo", "check", "status", "room", "limits", "simulate",
    ] {
        check(command, &[command, "--help"]).await;
    }
}
