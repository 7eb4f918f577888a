//! Wall clock of a single process, by a small library that is loaded into it first, and a file with
//! the error of the clock.
//!
//! Only the wall clock is changed: durations come from clocks that cannot be stepped. Needs Linux,
//! programs that link the C library dynamically, and the C compiler that links Rust programs.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Source of the library.
const SOURCE: &str = include_str!("stepped.c");
/// Environment variable with the file, read by the library.
const OFFSET: &str = "ANTEROOM_CLOCK_OFFSET";
/// Environment variable with the library, read by the loader.
const PRELOAD: &str = "LD_PRELOAD";
const NANOS_PER_MILLI: i64 = 1_000_000;

/// Library, built when needed, and its files.
#[derive(Debug)]
pub struct Shim {
    folder: TempDir,
}

impl Shim {
    /// Creates a folder for the library, which is not built yet.
    ///
    /// # Panics
    ///
    /// If there is no space for temporary files.
    #[must_use]
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder for a library"),
        }
    }

    /// Creates a clock that is so many milliseconds ahead of the machine's.
    ///
    /// # Panics
    ///
    /// If the library cannot be built, with the compiler's output.
    #[must_use]
    pub fn clock(&self, name: &str, offset_ms: i64) -> SteppedClock {
        let clock = SteppedClock {
            library: self.library(),
            file: self.folder.path().join(name),
        };
        fs::write(&clock.file, in_file(offset_ms)).expect("a new file in our folder");
        clock
    }

    fn library(&self) -> PathBuf {
        let library = self.folder.path().join("stepped.so");
        if library.is_file() {
            return library;
        }
        let source = self.folder.path().join("stepped.c");
        fs::write(&source, SOURCE).expect("a new file in our folder");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"])
            .args([&library, &source])
            .output();
        match built {
            Ok(output) if output.status.success() => library,
            Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("there is no C compiler `cc`: {error}"),
        }
    }
}

impl Default for Shim {
    fn default() -> Self {
        Self::new()
    }
}

/// Wall clock of the processes that are started with it.
#[derive(Clone, Debug)]
pub struct SteppedClock {
    library: PathBuf,
    file: PathBuf,
}

impl SteppedClock {
    /// Sets the clock so many milliseconds ahead of the machine's.
    ///
    /// # Panics
    ///
    /// If its file is gone.
    pub fn step_to(&self, offset_ms: i64) {
        // Overwrite it without truncation, because processes have mapped it.
        let file = OpenOptions::new().write(true).open(&self.file);
        let mut file = file.expect("the file lasts as long as its folder");
        file.write_all(&in_file(offset_ms))
            .expect("eight bytes where eight bytes are");
    }

    /// Returns the environment of a process with this clock.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        let path = |path: &Path| path.as_os_str().to_owned();
        [(PRELOAD, path(&self.library)), (OFFSET, path(&self.file))]
    }
}

fn in_file(offset_ms: i64) -> [u8; 8] {
    offset_ms.saturating_mul(NANOS_PER_MILLI).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anteroom_testkit::clock::now;

    /// Checks how far the clock of a program is ahead, in rounded seconds.
    fn check(clock: &SteppedClock, expected_secs: i64) {
        let output = Command::new("date")
            .arg("+%s%3N")
            .envs(clock.environment())
            .output()
            .unwrap();
        let shown: i64 = String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let right = i64::try_from(now().0).unwrap();
        let ahead_ms = shown - right;
        assert!(
            (ahead_ms - expected_secs * 1_000).abs() < 900,
            "{ahead_ms} ms ahead, not {expected_secs} s"
        );
    }

    #[test]
    fn a_program_sees_the_clock_that_it_was_given() {
        let shim = Shim::new();
        let clock = shim.clock("a", 30_000);
        let other = shim.clock("b", -30_000);
        check(&clock, 30);
        check(&other, -30);
        clock.step_to(0);
        check(&clock, 0);
        check(&other, -30);
    }
}
