//! Standard output and standard error of a command.
//!
//! `println!` and `eprintln!` panic if the reader is gone, as after `anteroom ... | head -1`.
//! These writers do not. Logs have a thread of their own and do not pass here.

use std::io::{self, Write};

/// Error of writing to standard output.
#[derive(Debug, thiserror::Error)]
#[error("cannot print")]
struct PrintError(#[source] io::Error);

/// Writer to standard output. A reader that reads no further, as `head` does, has had enough: that
/// is no error.
pub(crate) struct Output;

/// Writer to standard error. It never fails: there is nowhere left to report that.
pub(crate) struct Messages;

impl Write for Output {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        write_all(io::stdout().lock(), text)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        write_all(io::stdout().lock(), b"")
    }
}

impl Write for Messages {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let _ = write_all(io::stderr().lock(), text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(mut out: impl Write, text: &[u8]) -> io::Result<()> {
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(io::Error::new(error.kind(), PrintError(error))),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
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
        write_all(&mut out, b"a line\n").unwrap();
        assert_eq!(out, b"a line\n");
        write_all(Broken(io::ErrorKind::BrokenPipe), b"a line\n").unwrap();
        let error = write_all(Broken(io::ErrorKind::StorageFull), b"a line\n").unwrap_err();
        assert_eq!(error.to_string(), "cannot print");
        let source = error.get_ref().and_then(|error| error.source());
        assert_eq!(source.unwrap().to_string(), "no storage space");
    }
}
