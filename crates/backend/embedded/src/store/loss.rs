//! Loss of a journal: its description for operators, and the ledgers with which rooms begin after
//! it.

use std::fmt;
use std::path::{Path, PathBuf};

use anteroom_config::time_text::rfc3339_millis;
use anteroom_room::ledger::Ledger;
use anteroom_room::time::{DurationMs, Timestamp};

/// Kind of loss.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LossKind {
    /// The file had no bytes.
    Empty,
    /// The file could not be read.
    Damaged,
    /// The file was behind the count of commits outside of it, or was another journal.
    Older,
    /// The count of commits outside of the journal was missing.
    Uncounted,
    /// The file was deleted.
    Deleted,
}

impl LossKind {
    const ALL: [Self; 5] = [
        Self::Empty,
        Self::Damaged,
        Self::Older,
        Self::Uncounted,
        Self::Deleted,
    ];

    /// Returns the code of the kind in a journal.
    pub(super) fn code(self) -> u64 {
        match self {
            Self::Empty => 1,
            Self::Damaged => 2,
            Self::Older => 3,
            Self::Uncounted => 4,
            Self::Deleted => 5,
        }
    }

    /// Returns the kind of a code. An unknown code of a later version counts as damage.
    pub(super) fn of_code(code: u64) -> Self {
        let found = Self::ALL.into_iter().find(|kind| kind.code() == code);
        found.unwrap_or(Self::Damaged)
    }

    fn description(self) -> &'static str {
        match self {
            Self::Empty => "the journal was empty",
            Self::Damaged => "the journal was damaged",
            Self::Older => "the journal was an older copy, or another one",
            Self::Uncounted => {
                "journal.progress was missing or damaged, so the journal may be an older copy"
            }
            Self::Deleted => "the journal was deleted",
        }
    }
}

/// Loss of a journal: its kind, and when it was noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JournalLoss {
    pub(super) kind: LossKind,
    /// Time at which it was noticed, in room time.
    pub(super) at: Timestamp,
    /// Longest seat that may have been granted before.
    pub(super) longest_seat: DurationMs,
}

impl fmt::Display for JournalLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.description())?;
        if self.kind == LossKind::Deleted {
            return write!(f, " and a new one was created");
        }
        let name = self.kept_as(Path::new("journal.redb"));
        write!(f, " and is kept as {}", name.display())
    }
}

impl JournalLoss {
    /// Returns the first ledger of a room without a record.
    pub(super) fn first_ledger(self) -> Ledger {
        match self.kind {
            LossKind::Deleted => Ledger::started_over(self.at),
            _ => Ledger::lost_alone(self.longest_seat, self.at),
        }
    }

    /// Returns the path under which the lost file is kept.
    pub(super) fn kept_as(self, journal: &Path) -> PathBuf {
        let at = rfc3339_millis(self.at).replace(['-', ':'], "");
        let mut name = journal.as_os_str().to_owned();
        name.push(format!(".lost-{at}"));
        PathBuf::from(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_code() {
        for kind in LossKind::ALL {
            assert_eq!(LossKind::of_code(kind.code()), kind);
        }
        assert_eq!(LossKind::of_code(99), LossKind::Damaged);
    }

    #[test]
    fn the_name_of_the_kept_file_has_the_time() {
        let loss = JournalLoss {
            kind: LossKind::Empty,
            at: Timestamp(1_694_432_700_123),
            longest_seat: DurationMs::ZERO,
        };
        let name = loss.kept_as(Path::new("/data/journal.redb"));
        let expected = "/data/journal.redb.lost-20230911T114500.123Z";
        assert_eq!(name, Path::new(expected));
        let text = loss.to_string();
        assert!(
            text.contains("was empty") && text.contains("lost-20230911T"),
            "{text}"
        );
    }
}
