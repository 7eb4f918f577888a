//! The night of the sale: what operators do to a room while people are in it.

mod load;
mod nodes;
mod one_node;
mod tokens;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::command::{Ended, run};
use crate::support::process::Gateway;

/// The token of a gateway whose config file or data folder stands in `folder`.
pub(crate) fn token_file(data: &Path) -> PathBuf {
    data.join("admin-token")
}

/// Says something about the room `main`, as an operator types it.
async fn room(gateway: &Gateway, token_file: &Path, words: &[&str]) -> Ended {
    let admin = gateway.admin.to_string();
    let token_file = token_file.display().to_string();
    let mut args = vec![
        "room",
        "main",
        "--admin",
        &admin,
        "--token-file",
        &token_file,
    ];
    args.extend(words);
    run(&args).await
}

/// The same where it must be done; what is printed with `--json`.
pub(crate) async fn said(gateway: &Gateway, token_file: &Path, words: &[&str]) -> Value {
    let mut words = words.to_vec();
    words.push("--json");
    let ended = room(gateway, token_file, &words).await;
    assert_eq!(ended.code, Some(0), "{words:?}: {}{}", ended.out, ended.err);
    serde_json::from_str(&ended.out).unwrap()
}
