//! Types of the values in a file; values of the right type are kept, in the shape of the file.
//!
//! It follows go's `yaml.v2` filling a struct: a value of the wrong type is reported and left out,
//! a repeated key overwrites its field, and any scalar is a string where one is expected.

use super::{Report, metadata};
use crate::config::matching::request::ENTRIES_MAX;
use crate::config::metadata::Metadata;
use crate::config::mistake::{Defect, WrongType};
use crate::config::yaml::{Plain, Shape, View};

/// Parsed file.
#[derive(Debug, Default)]
pub(super) struct Root {
    pub(super) domain: String,
    pub(super) domain_line: Option<u32>,
    pub(super) descriptors: Vec<Descriptor>,
    pub(super) is_doubtful: bool,
}

/// Parsed descriptor.
#[derive(Debug, Default)]
pub(super) struct Descriptor {
    pub(super) line: u32,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) rate_limit: Option<RateLimit>,
    pub(super) descriptors: Vec<Self>,
    pub(super) is_shadow: bool,
    pub(super) is_quota: bool,
    pub(super) has_detailed_metric: bool,
    pub(super) has_value_in_metric: bool,
    pub(super) is_shared: bool,
    pub(super) shared_line: u32,
    pub(super) metadata: Metadata,
    /// Whether something in it could not be read; then nothing is reported as missing.
    pub(super) is_doubtful: bool,
}

/// Parsed limit.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    pub(super) line: u32,
    pub(super) requests_per_unit: u32,
    pub(super) unit: String,
    pub(super) unit_line: Option<u32>,
    pub(super) is_unlimited: bool,
    pub(super) name: String,
    /// Names, each with its line.
    pub(super) replaces: Vec<(String, u32)>,
    pub(super) algorithm: Option<String>,
    pub(super) settings: crate::config::algorithm::Typed,
    /// Lines of the algorithm and its settings, by key.
    pub(super) algorithm_lines: Vec<(String, u32)>,
    pub(super) is_doubtful: bool,
}

/// Number of descriptors in all files, and its bound.
pub(super) struct Count {
    found: usize,
    most: usize,
}

impl Count {
    pub(super) const fn up_to(most: usize) -> Self {
        Self { found: 0, most }
    }
}

/// Parses the root of a file.
pub(super) fn read(root: View<'_>, count: &mut Count, report: &mut Report) -> Root {
    let mut reader = Reader { count, report };
    reader.root(root)
}

struct Reader<'r> {
    count: &'r mut Count,
    report: &'r mut Report,
}

impl Reader<'_> {
    fn root(&mut self, view: View<'_>) -> Root {
        let before = self.report.mistakes.len();
        let mut root = Root::default();
        if !matches!(view.shape(), Shape::Map) && !view.is_null() {
            self.wrong_type(view, "map[interface {}]interface {}");
        }
        for (key, value) in named(view) {
            match key {
                "domain" => {
                    root.domain = self.text(value).unwrap_or_default();
                    root.domain_line = Some(value.line());
                }
                "descriptors" => {
                    root.descriptors = self.descriptors(value, "[]config.YamlDescriptor", 1);
                }
                _ => {}
            }
        }
        root.is_doubtful =
            has_unread_keys(view) || self.report.mistakes.len() > before && root.domain.is_empty();
        root
    }

    fn descriptors(&mut self, view: View<'_>, into: &'static str, depth: usize) -> Vec<Descriptor> {
        if view.is_null() {
            return Vec::new();
        }
        if !matches!(view.shape(), Shape::List) {
            self.wrong_type(view, into);
            return Vec::new();
        }
        if depth > ENTRIES_MAX && view.elements().len() > 0 {
            let most = ENTRIES_MAX;
            self.report
                .mistake(view.line(), Defect::DescriptorsTooDeep { most });
            return Vec::new();
        }
        let mut descriptors = Vec::new();
        for element in view.elements() {
            if !matches!(element.shape(), Shape::Map) {
                self.wrong_type(element, "config.YamlDescriptor");
                continue;
            }
            self.count.found += 1;
            if self.count.found > self.count.most {
                self.report_too_many(element.line());
                break;
            }
            descriptors.push(self.descriptor(element, depth));
        }
        descriptors
    }

    /// Reports it once, however many more there are.
    fn report_too_many(&mut self, line: u32) {
        let most = self.count.most;
        if self.count.found == most + 1 {
            self.report
                .mistake(line, Defect::TooManyDescriptors { most });
        }
    }

    fn descriptor(&mut self, view: View<'_>, depth: usize) -> Descriptor {
        let mut descriptor = Descriptor {
            line: view.line(),
            is_doubtful: has_unread_keys(view),
            ..Descriptor::default()
        };
        for (key, value) in named(view) {
            match key {
                "key" => match self.text(value) {
                    Some(text) => descriptor.key = text,
                    None => descriptor.is_doubtful = true,
                },
                "value" => match self.text(value) {
                    Some(text) => descriptor.value = text,
                    None => descriptor.is_doubtful = true,
                },
                "rate_limit" => self.rate_limit(value, &mut descriptor.rate_limit),
                "descriptors" => {
                    let into = "[]config.YamlDescriptor";
                    descriptor.descriptors = self.descriptors(value, into, depth + 1);
                }
                "shadow_mode" => self.flag(value, &mut descriptor.is_shadow),
                "quota_mode" => self.flag(value, &mut descriptor.is_quota),
                "detailed_metric" => self.flag(value, &mut descriptor.has_detailed_metric),
                "value_to_metric" => self.flag(value, &mut descriptor.has_value_in_metric),
                "share_threshold" => {
                    self.flag(value, &mut descriptor.is_shared);
                    descriptor.shared_line = value.line();
                }
                "metadata" => self.metadata(value, &mut descriptor.metadata),
                _ => {}
            }
        }
        descriptor
    }

    fn rate_limit(&mut self, view: View<'_>, field: &mut Option<RateLimit>) {
        if view.is_null() {
            // To yaml.v2 a null in capitals is a limit without content.
            let is_none = view
                .word()
                .is_some_and(|word| ["", "~", "null"].contains(&word));
            let line = view.line();
            *field = (!is_none).then(|| RateLimit {
                line,
                ..RateLimit::default()
            });
            return;
        }
        let limit = field.get_or_insert_default();
        limit.line = view.line();
        if !matches!(view.shape(), Shape::Map) {
            limit.is_doubtful = true;
            self.wrong_type(view, "config.YamlRateLimit");
            return;
        }
        limit.is_doubtful |= has_unread_keys(view);
        for (key, value) in named(view) {
            match key {
                "requests_per_unit" => {
                    limit.requests_per_unit = self.number(value).unwrap_or_default();
                }
                "unit" => {
                    limit.unit_line = Some(value.line());
                    match self.text(value) {
                        Some(text) => limit.unit = text,
                        None => limit.is_doubtful = true,
                    }
                }
                "unlimited" => self.flag(value, &mut limit.is_unlimited),
                "name" => limit.name = self.text(value).unwrap_or_default(),
                "replaces" => limit.replaces = self.replaces(value),
                "algorithm" | "burst" | "sub_windows" | "initial_burst" => {
                    self.setting(key, value, limit);
                }
                _ => {}
            }
        }
    }

    /// Reads the settings that the reference does not have.
    fn setting(&mut self, key: &str, value: View<'_>, limit: &mut RateLimit) {
        if value.is_null() {
            return;
        }
        limit.algorithm_lines.push((key.to_owned(), value.line()));
        match key {
            "algorithm" => limit.algorithm = self.text(value),
            "burst" => limit.settings.burst = self.number(value),
            "sub_windows" => limit.settings.sub_windows = self.number(value),
            _ => limit.settings.initial_burst = self.number(value),
        }
    }

    fn replaces(&mut self, view: View<'_>) -> Vec<(String, u32)> {
        if !view.is_null() && !matches!(view.shape(), Shape::List) {
            self.wrong_type(view, "[]config.yamlReplaces");
        }
        let mut replaces = Vec::new();
        for element in view.elements() {
            if !matches!(element.shape(), Shape::Map) {
                self.wrong_type(element, "config.yamlReplaces");
                continue;
            }
            // An unreadable name, or an unknown key, has been reported already.
            let mut name = (!has_unread_keys(element)).then(String::new);
            for (_, value) in named(element).filter(|(key, _)| *key == "name") {
                name = self.text(value);
            }
            replaces.extend(name.map(|name| (name, element.line())));
        }
        replaces
    }

    fn metadata(&mut self, view: View<'_>, field: &mut Metadata) {
        match view.shape() {
            Shape::Map => field.extend(metadata::of(view)),
            _ if view.is_null() => field.clear(),
            _ => self.wrong_type(view, "map[string]interface {}"),
        }
    }

    /// Reads a string; any scalar is one.
    fn text(&mut self, view: View<'_>) -> Option<String> {
        match view.shape() {
            Shape::Scalar(scalar) if scalar.plain == Plain::Null => Some(String::new()),
            Shape::Scalar(scalar) => Some(scalar.text.to_string()),
            Shape::List | Shape::Map => {
                self.wrong_type(view, "string");
                None
            }
        }
    }

    fn flag(&mut self, view: View<'_>, field: &mut bool) {
        match view.shape() {
            Shape::Scalar(scalar) => match scalar.plain {
                Plain::Bool(value) => *field = value,
                Plain::Null => *field = false,
                _ => self.wrong_type(view, "bool"),
            },
            Shape::List | Shape::Map => self.wrong_type(view, "bool"),
        }
    }

    /// Reads a whole number; `None` for anything else.
    fn number(&mut self, view: View<'_>) -> Option<u32> {
        let plain = match view.shape() {
            Shape::Scalar(scalar) => Some(scalar.plain),
            Shape::List | Shape::Map => None,
        };
        let number = match plain {
            Some(Plain::Int(value)) => u32::try_from(value).ok(),
            Some(Plain::Null) => Some(0),
            _ => None,
        };
        if number.is_none() {
            self.wrong_type(view, "uint32");
        }
        number
    }

    /// Reports a wrong type, unless the check of keys has reported the value already. That check
    /// skips what a repeated key overwrites.
    fn wrong_type(&mut self, view: View<'_>, into: &'static str) {
        let line = view.line();
        let is_same = |defect: &Defect| {
            matches!(
                defect,
                Defect::ElementNotMap { .. } | Defect::ValueOfNoUse { .. }
            )
        };
        let mut mistakes = self.report.mistakes.iter();
        if mistakes.any(|mistake| mistake.line == Some(line) && is_same(&mistake.defect)) {
            return;
        }
        let found = match view.shape() {
            Shape::List => "!!seq".to_owned(),
            Shape::Map => "!!map".to_owned(),
            Shape::Scalar(scalar) => {
                let tag = scalar.tag.as_deref();
                let tag = tag.unwrap_or_else(|| scalar.plain.tag());
                format!("{tag} `{}`", beginning(&scalar.text))
            }
        };
        let wrong = WrongType { line, found, into };
        self.report.mistake(line, Defect::WrongType(wrong));
    }
}

/// Returns as much of a word as `yaml.v2` shows: 7 bytes of one that has more than 10.
fn beginning(text: &str) -> String {
    if text.len() <= 10 {
        return text.to_owned();
    }
    format!("{}...", String::from_utf8_lossy(&text.as_bytes()[..7]))
}

/// Returns the entries whose keys are strings.
fn named<'t>(view: View<'t>) -> impl Iterator<Item = (&'t str, View<'t>)> {
    let entries = view.entries().into_iter();
    entries.filter_map(|(key, value)| Some((key.text()?, value)))
}

/// Whether a key here is unknown: what seems to be missing may be under it.
fn has_unread_keys(view: View<'_>) -> bool {
    use super::keys::{KNOWN, OURS};
    let is_known = |key: &str| KNOWN.contains(&key) || OURS.contains(&key);
    view.entries()
        .iter()
        .any(|(key, _)| !key.text().is_some_and(is_known))
}
