//! Mistakes in files, in the words of the reference service, with their lines and remedies.
//!
//! The reference stops at the first mistake. Here all are collected, in the order in which it would
//! find them.

mod remedy;

use std::fmt;
use std::sync::Arc;

/// Mistake in a file.
///
/// Its `Display` is a single line, such as `basic.yaml:7: invalid rate limit unit 'fortnight';
/// allowed: second, minute, ...`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistake {
    /// Name of the file, as the caller gave it.
    pub file: Arc<str>,
    /// Line, from 1, if known.
    pub line: Option<u32>,
    /// Kind of the mistake.
    pub defect: Defect,
}

/// Kind of a mistake. The texts are the reference service's own, up to
/// [`Defect::UnknownAlgorithm`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// The file is no YAML, or has a value that cannot be represented.
    #[error("error loading config file: yaml: {message}")]
    NotYaml {
        /// Message of the reference's parser. It counts some lines from 0; ours is
        /// [`Mistake::line`].
        message: String,
    },
    /// A value has the wrong type.
    #[error("error loading config file: yaml: unmarshal errors:\n  {0}")]
    WrongType(WrongType),
    /// A key is a number, a boolean or null.
    #[error("config error, key is not of type string: {key}")]
    KeyNotText {
        /// Key as it was parsed.
        key: String,
    },
    /// A key is unknown.
    #[error("config error, unknown key '{key}'")]
    UnknownKey {
        /// Key.
        key: String,
    },
    /// A list has elements other than maps.
    #[error("config error, yaml file contains list of type other than map: {element}")]
    ElementNotMap {
        /// Element as it was parsed.
        element: String,
    },
    /// A number has a fraction, or is too large for any setting.
    #[error("error checking config")]
    ValueOfNoUse {
        /// Value as it was parsed; the reference does not report it.
        value: String,
    },
    /// A file has no domain.
    #[error("config file cannot have empty domain")]
    EmptyDomain,
    /// Another file has the same domain, and domains are not merged.
    #[error("duplicate domain '{domain}' in config file")]
    DuplicateDomain {
        /// Domain.
        domain: String,
    },
    /// A descriptor has no key.
    #[error("descriptor has empty key")]
    EmptyKey,
    /// Two descriptors of one list have the same key and value.
    #[error("duplicate descriptor composite key '{path}'")]
    DuplicateDescriptor {
        /// Domain and keys with values, from the outermost descriptor on.
        path: String,
    },
    /// A limit has no unit, or an unknown one.
    #[error("invalid rate limit unit '{unit}'")]
    UnknownUnit {
        /// Unit.
        unit: String,
    },
    /// An unlimited descriptor has a unit.
    #[error("should not specify rate limit unit when unlimited")]
    UnitOfUnlimited,
    /// A limit replaces one without a name.
    #[error("should not have an empty replaces entry")]
    EmptyReplaces,
    /// A limit replaces itself.
    #[error("replaces should not contain name of same descriptor")]
    ReplacesItself,
    /// A counter cannot be shared: a key with one value has one counter already, and a key without
    /// a value has one for each.
    #[error(
        "share_threshold can only be used with wildcard values (containing '*'), but found key \
         '{key}'"
    )]
    SharedWithoutWildcard {
        /// Key with its value.
        key: String,
    },
    /// The algorithm is unknown.
    #[error("unknown algorithm '{algorithm}'")]
    UnknownAlgorithm {
        /// Algorithm.
        algorithm: String,
    },
    /// An unlimited descriptor has an algorithm.
    #[error("should not specify an algorithm or its settings when unlimited")]
    AlgorithmOfUnlimited,
    /// The algorithm has no such setting.
    #[error("algorithm '{algorithm}' has no setting '{key}'")]
    SettingOfAnother {
        /// Algorithm.
        algorithm: String,
        /// Setting.
        key: &'static str,
    },
    /// A setting admits nothing, or costs too much.
    #[error("{key} of {value} is not from {least} to {most}")]
    SettingOutOfRange {
        /// Setting.
        key: &'static str,
        /// Value in the file.
        value: u32,
        /// Smallest allowed value.
        least: u32,
        /// Largest allowed value.
        most: u32,
    },
    /// A limit cannot be counted.
    #[error("limit by '{algorithm}' cannot be kept: {message}")]
    CannotKeep {
        /// Algorithm.
        algorithm: String,
        /// Reason, from the counts or the store.
        message: String,
    },
    /// A file is too long.
    #[error("file of {bytes} bytes is longer than {most}")]
    TooLong {
        /// Length of the file in bytes.
        bytes: usize,
        /// Largest length in bytes.
        most: usize,
    },
    /// A file has too many values, however short it is.
    #[error("file with more than {most} values")]
    TooManyValues {
        /// Largest number of values, each counted as often as an alias repeats it.
        most: u64,
    },
    /// Lists and maps are nested too deep.
    #[error("lists and maps more than {most} deep inside each other")]
    TooDeep {
        /// Largest depth.
        most: usize,
    },
    /// Descriptors are nested deeper than any request goes.
    #[error("descriptors more than {most} deep inside each other")]
    DescriptorsTooDeep {
        /// Largest depth.
        most: usize,
    },
    /// Names of nested descriptors are too long, in all files together.
    #[error("names of descriptors in all files take more than {most} bytes")]
    NamesTooLong {
        /// Largest length in bytes.
        most: usize,
    },
    /// All files together have too many descriptors.
    #[error("more than {most} descriptors in all files")]
    TooManyDescriptors {
        /// Largest number.
        most: usize,
    },
}

/// Value of the wrong type.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: cannot unmarshal {found} into {into}")]
pub struct WrongType {
    /// Line of the value.
    pub(crate) line: u32,
    /// Type of the value, and its beginning.
    pub(crate) found: String,
    /// Expected type, in the reference's terms.
    pub(crate) into: &'static str,
}

impl Mistake {
    /// Returns what is allowed, or what to do next.
    #[must_use]
    pub fn remedy(&self) -> String {
        remedy::of(&self.defect)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_location(f, &self.file, self.line)?;
        let text = self.defect.to_string();
        write_on_one_line(f, text.replace("\n  ", " ").as_str())?;
        f.write_str("; ")?;
        write_on_one_line(f, &self.remedy())
    }
}

/// Writes `file:7: `, or `file: ` if the line is unknown.
pub(crate) fn write_location(
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

/// Escapes line ends and control characters, as the text comes from files and goes to logs.
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

/// All mistakes of all files; never empty.
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
