//! The night of the sale: commands of operators while visitors use a room.

mod load;
mod nodes;
mod one_node;
mod tokens;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::command::{Ended, run};
use crate::support::process::Gateway;

/// Returns the token file of a gateway with the data folder `data`.
pub(crate) fn token_file(data: &Path) -> PathBuf {
    data.join("admin-token")
}

/// Runs a command about the room `main`.
async fn room(gateway: &Gateway, token_file: &Path, words: &[&str]) -> Ended {
    let admin = gateway.admin.to_string();
    let token_file = token_file.display().to_string();
    let mut args = of_main(words);
    args.extend(["--admin", &admin, "--token-file", &token_file]);
    run(&args).await
}

/// Returns a command about the room `main`.
fn of_main<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let (verb, rest) = words.split_first().unwrap();
    [&["room", verb, "main"], rest].concat()
}

/// Runs a command about the room `main` that must succeed; returns its output with `--json`.
pub(crate) async fn room_json(gateway: &Gateway, token_file: &Path, words: &[&str]) -> Value {
    let mut words = words.to_vec();
    words.push("--json");
    let ended = room(gateway, token_file, &words).await;
    assert_eq!(ended.code, Some(0), "{words:?}: {}{}", ended.out, ended.err);
    serde_json::from_str(&ended.out).unwrap()
}
