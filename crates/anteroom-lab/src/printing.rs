//! How does a command of the simulations speak to its user?

use std::io::{self, Write as _};

use anyhow::Context as _;

/// Prints what was asked for. Whoever reads no further, as `head` does, has had enough: that is no error.
///
/// # Errors
///
/// If nothing can be written, such as to a full disk.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print"),
    }
}

/// Says how it goes, beside what is printed.
#[expect(clippy::print_stderr, reason = "a command tells its user how it went")]
pub fn tell(line: &str) {
    eprintln!("{line}");
}
