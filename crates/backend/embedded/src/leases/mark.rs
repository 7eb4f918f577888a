//! Is a file the one that was written here, or a copy of it?
//!
//! A copy that is put back does not know what was spent since it was made. By its content it cannot
//! be told from the file itself, so the file says which one it is: its number in its file system,
//! and when it was born, where the system knows that. A copy that was written over the file in
//! place, and a disk that was set back as a whole, are not noticed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::UNIX_EPOCH;

/// Which file. Not on which device: devices are numbered anew when a machine starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Mark {
    pub(crate) number: u64,
    /// In nanoseconds; zero if the system does not know.
    pub(crate) born: u64,
}

impl Mark {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let born = metadata.created().ok();
        let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born = born.map_or(0, |born| born.as_nanos());
        Self {
            number: metadata.ino(),
            born: u64::try_from(born).unwrap_or(0),
        }
    }

    /// Whether both may be the same file. A time that only one of them knows says nothing: kernels
    /// learn to tell it.
    pub(crate) fn may_be(self, other: Self) -> bool {
        let knows_both = self.born != 0 && other.born != 0;
        self.number == other.number && (!knows_both || self.born == other.born)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_number_or_another_birth_is_another_file() {
        let mark = |number, born| Mark { number, born };
        let check = |one: Mark, other: Mark, expected: bool| {
            assert_eq!(one.may_be(other), expected, "{one:?} {other:?}");
            assert_eq!(other.may_be(one), expected, "{other:?} {one:?}");
        };
        check(mark(1, 5), mark(1, 5), true);
        check(mark(1, 5), mark(2, 5), false);
        check(mark(1, 5), mark(1, 6), false);
        check(mark(1, 5), mark(1, 0), true);
        check(mark(1, 0), mark(2, 0), false);
    }

    #[test]
    fn a_copy_has_another_mark_and_a_renamed_file_has_not() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other, renamed] = ["one", "other", "renamed"].map(|name| dir.path().join(name));
        std::fs::write(&one, "x").unwrap();
        std::fs::copy(&one, &other).unwrap();
        let mark = |path| Mark::of(&std::fs::metadata(path).unwrap());
        let first = mark(&one);
        assert!(!first.may_be(mark(&other)));
        std::fs::rename(&one, &renamed).unwrap();
        assert!(first.may_be(mark(&renamed)));
    }
}
