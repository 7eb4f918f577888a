//! Detection of copies of the file.
//!
//! A restored copy lacks what was spent after it was made. Its content does not show that it is a
//! copy, so the file contains its own inode number, and its creation time if the system knows that.
//! A copy that was written over the file in place is not noticed, and neither is a disk that was
//! reset as a whole.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::UNIX_EPOCH;

/// Identity of a file in its file system. It has no device number, which may change with a reboot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Mark {
    pub(crate) inode: u64,
    /// Creation time in nanoseconds; 0 if the system does not know it.
    pub(crate) created: u64,
}

impl Mark {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let created = metadata.created().ok();
        let created = created.and_then(|created| created.duration_since(UNIX_EPOCH).ok());
        let created = created.map_or(0, |created| created.as_nanos());
        Self {
            inode: metadata.ino(),
            created: u64::try_from(created).unwrap_or(0),
        }
    }

    /// Whether both may be the same file. A time that only one of them has does not count: a newer
    /// kernel may report it.
    pub(crate) fn may_be(self, other: Self) -> bool {
        let has_both = self.created != 0 && other.created != 0;
        self.inode == other.inode && (!has_both || self.created == other.created)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_inode_or_creation_time_is_another_file() {
        let mark = |inode, created| Mark { inode, created };
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
    fn a_copy_has_another_mark_and_a_renamed_file_keeps_its_own() {
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
