//! Reader of files: it returns limits, or every mistake.
//!
//! There are three passes, as in the reference service, since the mistakes of one are reported
//! before those of the next: over the keys of each file ([`keys`]), over the types of its values
//! ([`typed`]), and, when all files are through both, over their meaning ([`checks`]).

mod checks;
pub(crate) mod keys;
mod metadata;
mod typed;

use std::sync::Arc;

use crate::config::algorithm::AlgorithmChoice;
use crate::config::descriptors::RateLimits;
use crate::config::mistake::{Defect, Mistake, Mistakes};
use crate::config::notice::{Notice, Remark};
use crate::config::unit::Unit;
use crate::config::yaml::{self, DEPTH_MAX, NODES_MAX, Unreadable};

/// Longest file. A descriptor takes some 120 bytes, so this is more than [`FILE_DESCRIPTORS_MAX`]
/// of them. A longer file is a mistake, and would be in memory several times over.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// Most descriptors in all files together. Each takes about half a kilobyte, twice while files are
/// read again. More values are too many to list one by one.
pub const FILE_DESCRIPTORS_MAX: usize = 100_000;

/// Most bytes of the names of all descriptors ([`crate::config::Limit::metric`]), each with those
/// of the outer descriptors and the domain. A hundred thousand take some 5 MB. Without the bound, a
/// long domain and many short descriptors would take any amount.
const NAMES_BYTES_MAX: usize = 64 << 20;

/// Most mistakes, and most notices, that are reported. More are of no use, and a file may have a
/// million.
const REPORTED_MAX: usize = 1_000;

/// File to be read.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Name in messages.
    pub name: &'a str,
    /// Content.
    pub bytes: &'a [u8],
}

/// Handling of files with the same domain.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SameDomain {
    /// Several files with it are a mistake.
    #[default]
    Refused,
    /// Their outermost descriptors form one list without duplicates. The reference calls this
    /// `MERGE_DOMAIN_CONFIG`.
    Merged,
}

/// Result of reading files.
#[derive(Debug)]
pub struct Read {
    /// Limits.
    pub limits: RateLimits,
    /// Parts of the files without effect.
    pub notices: Vec<Notice>,
}

/// Reads all files of a configuration.
///
/// Beside what the reference service knows, `rate_limit` may hold `algorithm`, `burst`,
/// `sub_windows` and `initial_burst`; see [`crate::config::AlgorithmChoice`].
///
/// # Errors
///
/// [`Mistakes`], all of them in the order in which the reference service would find them, up to a
/// thousand.
pub fn read(files: &[File<'_>], same_domain: SameDomain) -> Result<Read, Mistakes> {
    read_for(files, same_domain, &|_, _, _| Ok(()))
}

/// Reads like [`read`], and checks by `keep` that each limit can be counted.
///
/// # Errors
///
/// [`Mistakes`], as [`read`] returns them, and one for each limit that cannot be counted.
pub fn read_for(
    files: &[File<'_>],
    same_domain: SameDomain,
    keep: &Keep<'_>,
) -> Result<Read, Mistakes> {
    read_within(files, same_domain, FILE_DESCRIPTORS_MAX, keep)
}

/// Check that so many requests per unit can be counted by an algorithm.
pub type Keep<'k> = dyn Fn(AlgorithmChoice, u32, Unit) -> Result<(), CannotKeep> + 'k;

/// Reason for which a limit cannot be counted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CannotKeep {
    /// Key that is to blame; the limit as a whole if the key is absent.
    pub key: &'static str,
    /// Reason, on one line.
    pub message: String,
}

fn read_within(
    files: &[File<'_>],
    same_domain: SameDomain,
    descriptors_max: usize,
    keep: &Keep<'_>,
) -> Result<Read, Mistakes> {
    let mut found = Found::default();
    let mut count = typed::Count::up_to(descriptors_max);
    let mut roots = Vec::new();
    for file in files {
        let mut report = Report::new(file.name);
        if let Some(root) = parse(file, &mut count, &mut report) {
            roots.push((report.file.clone(), root));
        }
        found.take(report);
    }
    let mut limits = RateLimits::default();
    let mut names = checks::Names::up_to(NAMES_BYTES_MAX);
    for (file, root) in roots {
        let mut report = Report {
            file,
            ..Report::new("")
        };
        let mut checker = checks::Checker {
            names: &mut names,
            report: &mut report,
            keep,
        };
        checker.add(&mut limits, root, same_domain);
        found.take(report);
    }
    if !found.mistakes.is_empty() {
        return Err(Mistakes(found.mistakes));
    }
    let notices = found.notices;
    Ok(Read { limits, notices })
}

/// Mistakes and notices of all files.
#[derive(Default)]
struct Found {
    mistakes: Vec<Mistake>,
    notices: Vec<Notice>,
}

impl Found {
    fn take(&mut self, report: Report) {
        self.mistakes.extend(report.mistakes);
        self.mistakes.truncate(REPORTED_MAX);
        self.notices.extend(report.notices);
        self.notices.truncate(REPORTED_MAX);
    }
}

/// Mistakes and notices of one pass over one file.
struct Report {
    file: Arc<str>,
    mistakes: Vec<Mistake>,
    notices: Vec<Notice>,
}

impl Report {
    fn new(file: &str) -> Self {
        Self {
            file: file.into(),
            mistakes: Vec::new(),
            notices: Vec::new(),
        }
    }

    fn mistake(&mut self, line: impl Into<Option<u32>>, defect: Defect) {
        if self.mistakes.len() < REPORTED_MAX {
            let file = self.file.clone();
            let line = line.into();
            self.mistakes.push(Mistake { file, line, defect });
        }
    }

    fn notice(&mut self, line: u32, remark: Remark) {
        if self.notices.len() < REPORTED_MAX {
            let file = self.file.clone();
            self.notices.push(Notice { file, line, remark });
        }
    }
}

/// Parses a file, as far as possible.
fn parse(file: &File<'_>, count: &mut typed::Count, report: &mut Report) -> Option<typed::Root> {
    let bytes = file.bytes.len();
    if bytes > FILE_BYTES_MAX {
        let most = FILE_BYTES_MAX;
        report.mistake(None, Defect::TooLong { bytes, most });
        return None;
    }
    let tree = match yaml::parse_bytes(file.bytes) {
        Ok(tree) => tree,
        Err(unreadable) => {
            let (line, defect) = defect_of(unreadable);
            report.mistake(line, defect);
            return None;
        }
    };
    if let Some(line) = tree.further_document {
        report.notice(line, Remark::FurtherDocument);
    }
    keys::check(tree.root(), report);
    let root = typed::read(tree.root(), count, report);
    Some(root)
}

fn defect_of(unreadable: Unreadable) -> (Option<u32>, Defect) {
    match unreadable {
        Unreadable::Complaint { message, line } => (line, Defect::NotYaml { message }),
        Unreadable::TooDeep { line } => (Some(line), Defect::TooDeep { most: DEPTH_MAX }),
        Unreadable::TooManyNodes { line } => {
            (Some(line), Defect::TooManyValues { most: NODES_MAX })
        }
        Unreadable::TooManyAliases { line } => {
            let message = "document contains excessive aliasing".to_owned();
            (Some(line), Defect::NotYaml { message })
        }
    }
}

#[cfg(test)]
mod tests;
