//! Reader of files with a size limit. A device without end is not read for ever, and no file is cut
//! off silently.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// Reads a file of at most `most` bytes.
///
/// # Errors
///
/// If it cannot be read, or is larger.
pub fn read_at_most(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    // One byte more than allowed, so that a file that is too large is noticed.
    let enough = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path)?.take(enough).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let message = format!("it is too large: at most {most} bytes are allowed");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Reads a text in UTF-8 like [`read_at_most`].
///
/// # Errors
///
/// As [`read_at_most`], and if the file is not UTF-8.
pub fn read_text_at_most(path: &Path, most: usize) -> io::Result<String> {
    let bytes = read_at_most(path, most)?;
    let text = String::from_utf8(bytes);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_rejected_as_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let check = |bytes: &[u8], expected: Result<&str, ErrorKind>| {
            std::fs::write(&path, bytes).unwrap();
            let found = read_text_at_most(&path, 4);
            let found = found.as_deref().map_err(io::Error::kind);
            assert_eq!(found, expected, "{bytes:?}");
        };
        check(b"", Ok(""));
        check(b"four", Ok("four"));
        check(b"five!", Err(ErrorKind::FileTooLarge));
        check(b"\xff", Err(ErrorKind::InvalidData));
        // A file that is cut inside of a character is still too large.
        check("abc\u{e9}".as_bytes(), Err(ErrorKind::FileTooLarge));
        let endless = read_at_most(Path::new("/dev/zero"), 1_000).unwrap_err();
        assert_eq!(
            endless.to_string(),
            "it is too large: at most 1000 bytes are allowed"
        );
    }
}
