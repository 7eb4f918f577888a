//! Program under test: the one that `cargo xtask cluster` names, or the one that Cargo put beside
//! the tests.
//!
//! Cargo builds the latter with the tests of the whole workspace, but not with those of this crate
//! alone. Then it may be older than its source. `cargo xtask cluster` builds it first.

use std::env;
use std::path::PathBuf;

/// Environment variable with the program under test.
pub const VARIABLE: &str = "ANTEROOM_BINARY";

/// Returns the path of the program `anteroom`.
///
/// # Panics
///
/// If there is none; the message says how to build it.
#[must_use]
pub fn path() -> PathBuf {
    if let Some(path) = env::var_os(VARIABLE) {
        let path = PathBuf::from(path);
        assert!(
            path.is_file(),
            "{VARIABLE} names no file: {}",
            path.display()
        );
        return path;
    }
    let test = env::current_exe().expect("a running program has a path");
    // Tests are in `deps`, beside the programs of the same profile.
    let beside = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(format!("anteroom{}", env::consts::EXE_SUFFIX)))
        .find(|path| path.is_file());
    beside.unwrap_or_else(|| {
        panic!(
            "no program `anteroom` near {}: build it with `cargo build -p anteroom`, or name it in \
             {VARIABLE}",
            test.display()
        )
    })
}
