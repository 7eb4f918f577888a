//! Commands that run to their end.

use std::process::Stdio;

use tokio::process::Command;
use tokio::time::timeout;

use super::TIMEOUT;
use super::process::BINARY;

/// Result of a command.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Returns the binary under test as a command, without our environment variables.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(args)
        .env_remove("ANTEROOM_LOG")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs a command to its end.
pub(crate) async fn run(args: &[&str]) -> Ended {
    let output = timeout(TIMEOUT, command(args).output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("{args:?} does not end"))
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}
