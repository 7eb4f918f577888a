//! What do the files say? Limits, or every mistake.
//!
//! Three looks at each file, as in the reference service, because what one finds is told before
//! what the next would: at its keys ([`keys`]), at the types of its values ([`typed`]), and, when
//! all files are through both, at what they mean ([`checks`]).

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
/// of them; a longer file is a mistake somewhere else, and would be held in memory several times
/// over.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// Most descriptors in all files together. Each takes about half a kilobyte, twice while files are
/// read again; whoever has more values than that has too many to be told one by one.
pub const FILE_DESCRIPTORS_MAX: usize = 100_000;

/// Most bytes of the names of all descriptors ([`crate::config::Limit::metric`]), each with those
/// of the descriptors around it and the domain. A hundred thousand take some 5 MB; without a bound,
/// a long domain and many short descriptors would take any amount.
const NAMES_BYTES_MAX: usize = 64 << 20;

/// Most mistakes, and most notices, that are told. Nobody reads more, and a file may have a
/// million.
const TOLD_MAX: usize = 1_000;

/// A file to be read.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// What to call it in messages.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// What to do about files with the same domain.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SameDomain {
    /// Only one file may have it.
    #[default]
    Refused,
    /// Their outermost descriptors stand beside each other, and none of them twice. The reference
    /// calls this `MERGE_DOMAIN_CONFIG`.
    Merged,
}

/// What was read.
#[derive(Debug)]
pub struct Read {
    /// The limits.
    pub limits: RateLimits,
    /// What is in the files and does nothing.
    pub notices: Vec<Notice>,
}

/// Reads all files of a configuration.
///
/// Beside what the reference service knows, `rate_limit` may hold `algorithm`, `burst`,
/// `sub_windows` and `initial_burst`; see [`crate::config::AlgorithmChoice`].
///
/// # Errors
///
/// Every mistake, in the order in which the reference service would come to them; of more than a
/// thousand, the first.
pub fn read(files: &[File<'_>], same_domain: SameDomain) -> Result<Read, Mistakes> {
    read_for(files, same_domain, &|_, _, _| Ok(()))
}

/// The same for whoever counts, who says of each limit whether it can be kept.
///
/// # Errors
///
/// As [`read`]; and each limit that cannot be kept, at its place.
pub fn read_for(
    files: &[File<'_>],
    same_domain: SameDomain,
    keep: &Keep<'_>,
) -> Result<Read, Mistakes> {
    read_within(files, same_domain, FILE_DESCRIPTORS_MAX, keep)
}

/// Says whether so many requests in such a time can be counted by an algorithm.
pub type Keep<'k> = dyn Fn(AlgorithmChoice, u32, Unit) -> Result<(), CannotKeep> + 'k;

/// Why a limit cannot be kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CannotKeep {
    /// The key of the file that is to blame; the limit as a whole if it does not stand there.
    pub key: &'static str,
    /// What is wrong, on one line.
    pub said: String,
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
        if let Some(root) = look(file, &mut count, &mut report) {
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

/// All that was found in all files.
#[derive(Default)]
struct Found {
    mistakes: Vec<Mistake>,
    notices: Vec<Notice>,
}

impl Found {
    fn take(&mut self, report: Report) {
        self.mistakes.extend(report.mistakes);
        self.mistakes.truncate(TOLD_MAX);
        self.notices.extend(report.notices);
        self.notices.truncate(TOLD_MAX);
    }
}

/// What one look at one file found.
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
        if self.mistakes.len() < TOLD_MAX {
            let file = self.file.clone();
            let line = line.into();
            self.mistakes.push(Mistake { file, line, defect });
        }
    }

    fn notice(&mut self, line: u32, remark: Remark) {
        if self.notices.len() < TOLD_MAX {
            let file = self.file.clone();
            self.notices.push(Notice { file, line, remark });
        }
    }
}

/// What a file says, as far as it can be read.
fn look(file: &File<'_>, count: &mut typed::Count, report: &mut Report) -> Option<typed::Root> {
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
        Unreadable::Complaint { said, line } => (line, Defect::NotYaml { said }),
        Unreadable::TooDeep { line } => (Some(line), Defect::TooDeep { most: DEPTH_MAX }),
        Unreadable::TooManyNodes { line } => {
            (Some(line), Defect::TooManyValues { most: NODES_MAX })
        }
        Unreadable::TooManyAliases { line } => {
            let said = "document contains excessive aliasing".to_owned();
            (Some(line), Defect::NotYaml { said })
        }
    }
}

#[cfg(test)]
mod tests;
