//! What is wrong with a file, as the reference service would say it, where, and what to do about
//! it?
//!
//! The reference stops at the first mistake; all are collected here, those first that it would come
//! to first.

mod remedy;

use std::fmt;
use std::sync::Arc;

/// One mistake in one file.
///
/// Its `Display` is a single line for people, such as `basic.yaml:7: invalid rate limit unit
/// 'fortnight'; allowed: second, minute, ...`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistake {
    /// The file as the caller named it.
    pub file: Arc<str>,
    /// The line, from 1, where one can be named.
    pub line: Option<u32>,
    /// What is wrong.
    pub defect: Defect,
}

/// What is wrong. The texts are the reference service's own, up to [`Defect::UnknownAlgorithm`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// The file is no YAML, or has a value in it that no tree can be made of.
    #[error("error loading config file: yaml: {said}")]
    NotYaml {
        /// What the reference's parser says. It counts some lines from 0; ours is
        /// [`Mistake::line`].
        said: String,
    },
    /// A value of another type than the one that belongs there.
    #[error("error loading config file: yaml: unmarshal errors:\n  {0}")]
    WrongType(WrongType),
    /// A key that is a number, a yes or nothing.
    #[error("config error, key is not of type string: {key}")]
    KeyNotText {
        /// The key as it was understood.
        key: String,
    },
    /// A key that nobody knows.
    #[error("config error, unknown key '{key}'")]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A list of something else than maps.
    #[error("config error, yaml file contains list of type other than map: {element}")]
    ElementNotMap {
        /// The element as it was understood.
        element: String,
    },
    /// A number with a fraction, or a whole one that is too large for anything.
    #[error("error checking config")]
    ValueOfNoUse {
        /// The value as it was understood; the reference does not say it.
        value: String,
    },
    /// A file without a domain.
    #[error("config file cannot have empty domain")]
    EmptyDomain,
    /// Another file has the same domain, and merging was not asked for.
    #[error("duplicate domain '{domain}' in config file")]
    DuplicateDomain {
        /// The domain.
        domain: String,
    },
    /// A descriptor without a key.
    #[error("descriptor has empty key")]
    EmptyKey,
    /// Two descriptors beside each other with the same key and value.
    #[error("duplicate descriptor composite key '{path}'")]
    DuplicateDescriptor {
        /// Domain and keys with values from the outermost descriptor on.
        path: String,
    },
    /// A limit without a unit, or with one that nobody knows.
    #[error("invalid rate limit unit '{unit}'")]
    UnknownUnit {
        /// The unit.
        unit: String,
    },
    /// No limit, but per some time.
    #[error("should not specify rate limit unit when unlimited")]
    UnitOfUnlimited,
    /// A limit replaces one without a name.
    #[error("should not have an empty replaces entry")]
    EmptyReplaces,
    /// A limit replaces itself.
    #[error("replaces should not contain name of same descriptor")]
    ReplacesItself,
    /// What cannot be shared: a key with one value has one counter, one without a value one for
    /// each.
    #[error(
        "share_threshold can only be used with wildcard values (containing '*'), but found key \
         '{key}'"
    )]
    SharedWithoutWildcard {
        /// The key with its value.
        key: String,
    },
    /// No algorithm of ours.
    #[error("unknown algorithm '{algorithm}'")]
    UnknownAlgorithm {
        /// The algorithm.
        algorithm: String,
    },
    /// No limit, but counted in some way.
    #[error("should not specify an algorithm or its settings when unlimited")]
    AlgorithmOfUnlimited,
    /// A setting that the algorithm has not.
    #[error("algorithm '{algorithm}' has no setting '{key}'")]
    SettingOfAnother {
        /// The algorithm.
        algorithm: String,
        /// The setting.
        key: &'static str,
    },
    /// A setting that lets nobody through or that costs too much.
    #[error("{key} of {value} is not from {least} to {most}")]
    SettingOutOfRange {
        /// The setting.
        key: &'static str,
        /// What was typed.
        value: u32,
        /// The least that is allowed.
        least: u32,
        /// The most that is allowed.
        most: u32,
    },
    /// A limit that whoever counts cannot keep.
    #[error("limit by '{algorithm}' cannot be kept: {said}")]
    CannotKeep {
        /// The algorithm.
        algorithm: String,
        /// Why not, as whoever counts says it.
        said: String,
    },
    /// A file that is too long.
    #[error("file of {bytes} bytes is longer than {most}")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// A file with too much in it, however short it is.
    #[error("file with more than {most} values")]
    TooManyValues {
        /// How many there may be, each counted as often as an alias repeats it.
        most: u64,
    },
    /// Lists and maps inside each other.
    #[error("lists and maps more than {most} deep inside each other")]
    TooDeep {
        /// How deep they may be.
        most: usize,
    },
    /// Descriptors inside each other, deeper than any request goes.
    #[error("descriptors more than {most} deep inside each other")]
    DescriptorsTooDeep {
        /// How deep they may be.
        most: usize,
    },
    /// Long names of descriptors inside each other, in all files together.
    #[error("names of descriptors in all files take more than {most} bytes")]
    NamesTooLong {
        /// How long they may be.
        most: usize,
    },
    /// Too many descriptors in all files together.
    #[error("more than {most} descriptors in all files")]
    TooManyDescriptors {
        /// How many there may be.
        most: usize,
    },
}

/// A value of another type than the one that belongs there.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: cannot unmarshal {found} into {into}")]
pub struct WrongType {
    /// Where the value stands.
    pub(crate) line: u32,
    /// Its type and the beginning of it.
    pub(crate) found: String,
    /// The type that belongs there, as the reference calls it.
    pub(crate) into: &'static str,
}

impl Mistake {
    /// What is allowed there, or what to do next.
    #[must_use]
    pub fn remedy(&self) -> String {
        remedy::of(&self.defect)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.file, self.line)?;
        let text = self.defect.to_string();
        write_on_one_line(f, text.replace("\n  ", " ").as_str())?;
        f.write_str("; ")?;
        write_on_one_line(f, &self.remedy())
    }
}

/// `file:7: `, or `file: ` where no line can be named.
pub(crate) fn write_place(
    f: &mut fmt::Formatter<'_>,
    file: &str,
    line: Option<u32>,
) -> fmt::Result {
    write_on_one_line(f, file)?;
    match line {
        Some(line) => write!(f, ":{line}: "),
        None => f.write_str(": "),
    }
}

/// What came from outside may hold line ends and worse, and this goes to logs.
pub(crate) fn write_on_one_line(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for character in text.chars() {
        // These two end lines for some readers, though they are no control characters.
        if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') {
            write!(f, "{}", character.escape_default())?;
        } else {
            write!(f, "{character}")?;
        }
    }
    Ok(())
}

/// Every mistake of all files; never empty.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Mistakes(pub Vec<Mistake>);

fn lines(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(defect: Defect) -> Mistake {
        Mistake {
            file: "a.yaml".into(),
            line: Some(7),
            defect,
        }
    }

    #[test]
    fn a_mistake_is_one_line() {
        let unit = "fort\nnight".to_owned();
        let mistake = mistake(Defect::UnknownUnit { unit });
        let text = mistake.to_string();
        assert!(text.starts_with("a.yaml:7: invalid rate limit unit 'fort\\nnight'; "));
        assert!(!text.contains('\n'));
        assert_eq!(
            mistake.defect.to_string(),
            "invalid rate limit unit 'fort\nnight'"
        );
    }

    #[test]
    fn each_mistake_has_its_line() {
        let wrong = |line| {
            mistake(Defect::WrongType(WrongType {
                line,
                found: "!!int `5`".to_owned(),
                into: "bool",
            }))
        };
        let mistakes = Mistakes(vec![wrong(1), mistake(Defect::EmptyKey), wrong(2)]);
        assert_eq!(mistakes.to_string().lines().count(), 3);
    }
}
