//! Check that all keys are known. The reference service does not check whether a known key has an
//! effect where it is, so that gives a notice only.

use std::collections::HashMap;

use super::Report;
use crate::config::mistake::Defect;
use crate::config::notice::Remark;
use crate::config::yaml::{Plain, Shape, View, as_go_prints};

/// Keys that the reference service knows.
pub(crate) const KNOWN: &[&str] = &[
    "domain",
    "key",
    "value",
    "descriptors",
    "rate_limit",
    "unit",
    "requests_per_unit",
    "unlimited",
    "shadow_mode",
    "quota_mode",
    "name",
    "replaces",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
];

/// Keys of our own, under `rate_limit` only.
pub(crate) const OURS: &[&str] = &["algorithm", "burst", "sub_windows", "initial_burst"];

/// Kind of a map, by the key before it.
#[derive(Clone, Copy, Eq, PartialEq)]
enum MapKind {
    Root,
    Descriptor,
    RateLimit,
    Replaces,
    /// Map in a position where none belongs.
    Unknown,
}

impl MapKind {
    /// Returns the keys that have an effect here.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Root => &["domain", "descriptors"],
            Self::Descriptor => &[
                "key",
                "value",
                "rate_limit",
                "descriptors",
                "shadow_mode",
                "quota_mode",
                "detailed_metric",
                "value_to_metric",
                "share_threshold",
                "metadata",
            ],
            Self::RateLimit => &[
                "unit",
                "requests_per_unit",
                "unlimited",
                "name",
                "replaces",
                "algorithm",
                "burst",
                "sub_windows",
                "initial_burst",
            ],
            Self::Replaces => &["name"],
            Self::Unknown => &[],
        }
    }

    /// Returns the kind of map under a key here.
    fn under(self, key: &str) -> Self {
        match (self, key) {
            (Self::Root | Self::Descriptor, "descriptors") => Self::Descriptor,
            (Self::Descriptor, "rate_limit") => Self::RateLimit,
            (Self::RateLimit, "replaces") => Self::Replaces,
            _ => Self::Unknown,
        }
    }

    /// Returns where a key has an effect that has none here.
    fn belongs(self, key: &str) -> Option<&'static str> {
        if self == Self::Unknown || self.keys().contains(&key) {
            return None;
        }
        Some(match key {
            "domain" => "at the beginning of the file",
            "name" => "under 'rate_limit' or 'replaces'",
            _ if Self::RateLimit.keys().contains(&key) => "under 'rate_limit'",
            _ => "beside 'key', in a descriptor",
        })
    }
}

/// Checks every key of a file.
pub(super) fn check(root: View<'_>, report: &mut Report) {
    if let Shape::Map = root.shape() {
        check_map(root, MapKind::Root, report);
    }
}

fn check_map(map: View<'_>, kind: MapKind, report: &mut Report) {
    note_repeated(map, report);
    let entries = map.entries();
    // Of a repeated key only the last one is checked, like in the reference.
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (index, (key, _)) in entries.iter().enumerate() {
        if let Some(key) = key.text() {
            last.insert(key, index);
        }
    }
    for (index, (key, value)) in entries.into_iter().enumerate() {
        let Some(name) = key.text() else {
            let shown = as_go_prints(key);
            report.mistake(key.line(), Defect::KeyNotText { key: shown });
            continue;
        };
        if last.get(name) != Some(&index) {
            continue;
        }
        let is_ours = kind == MapKind::RateLimit && OURS.contains(&name);
        if !KNOWN.contains(&name) && !is_ours {
            let key_name = name.to_owned();
            report.mistake(key.line(), Defect::UnknownKey { key: key_name });
            continue;
        }
        if let Some(belongs) = kind.belongs(name) {
            let key_name = name.to_owned();
            let remark = Remark::Misplaced {
                key: key_name,
                belongs,
            };
            report.notice(key.line(), remark);
        }
        if name != "metadata" {
            check_value(value, kind.under(name), report);
        }
    }
}

fn check_value(value: View<'_>, kind: MapKind, report: &mut Report) {
    match value.shape() {
        Shape::Map => check_map(value, kind, report),
        Shape::List => {
            for element in value.elements() {
                if let Shape::Map = element.shape() {
                    check_map(element, kind, report);
                    continue;
                }
                let shown = as_go_prints(element);
                report.mistake(element.line(), Defect::ElementNotMap { element: shown });
            }
        }
        Shape::Scalar(scalar) => {
            if matches!(scalar.plain, Plain::Float(_) | Plain::Uint(_)) {
                let shown = as_go_prints(value);
                report.mistake(value.line(), Defect::ValueOfNoUse { value: shown });
            }
        }
    }
}

/// Reports repeated keys: they are legal in the reference, and never meant.
fn note_repeated(map: View<'_>, report: &mut Report) {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    for (key, _) in map.own_entries() {
        let Some(name) = key.text().filter(|_| !key.is_merge()) else {
            continue;
        };
        let times = seen.entry(name).or_default();
        *times += 1;
        if *times == 2 {
            let key_name = name.to_owned();
            report.notice(key.line(), Remark::Repeated { key: key_name });
        }
    }
}
