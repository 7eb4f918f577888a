//! How does a command speak to whoever typed it?
//!
//! `println!` and `eprintln!` panic if nobody reads, as after `anteroom ... | head -1`. Nothing
//! here does. Logs are not for this crate: they have a thread of their own.

use std::io::{self, Write};

/// What was asked for could not be printed.
#[derive(Debug, thiserror::Error)]
#[error("cannot print")]
pub struct PrintError(#[source] io::Error);

/// Prints what was asked for. Whoever reads no further, as `head` does, has had enough: that is no
/// error.
///
/// # Errors
///
/// If nothing can be written, such as to a full disk.
pub fn print(text: &str) -> Result<(), PrintError> {
    write(io::stdout().lock(), text)
}

/// Says a line about how it goes, beside what is printed. Where nobody can hear it, nobody could
/// hear either that it was not said.
pub fn tell(line: &str) {
    let _ = write(io::stderr().lock(), &format!("{line}\n"));
}

/// In one piece, so that two commands in one terminal do not mix their lines.
fn write(mut out: impl Write, text: &str) -> Result<(), PrintError> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(PrintError),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    /// Fails as a full disk or a closed pipe does.
    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_reader_is_fine_and_a_full_disk_is_reported() {
        let mut out = Vec::new();
        write(&mut out, "a line\n").unwrap();
        assert_eq!(out, b"a line\n");
        write(Broken(io::ErrorKind::BrokenPipe), "a line\n").unwrap();
        let error = write(Broken(io::ErrorKind::StorageFull), "a line\n").unwrap_err();
        assert_eq!(error.to_string(), "cannot print");
        assert!(error.source().is_some());
    }
}
