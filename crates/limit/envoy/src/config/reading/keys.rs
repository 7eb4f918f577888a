//! Are the keys such that somebody knows them? Anywhere: the reference service does not ask whether
//! a known key stands where it has an effect, so that is worth a notice and no more.

use std::collections::HashMap;

use super::Report;
use crate::config::mistake::Defect;
use crate::config::notice::Remark;
use crate::config::yaml::{Plain, Shape, View, as_go_prints};

/// The keys that the reference service knows.
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

/// The keys that we know besides, under `rate_limit` alone.
pub(crate) const OURS: &[&str] = &["algorithm", "burst", "sub_windows", "initial_burst"];

/// What kind of map this is, by the key before it.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Place {
    Root,
    Descriptor,
    RateLimit,
    Replaces,
    /// Where no map belongs.
    Nowhere,
}

impl Place {
    /// The keys that have an effect here.
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
            Self::Nowhere => &[],
        }
    }

    /// What kind of map stands under a key here.
    fn under(self, key: &str) -> Self {
        match (self, key) {
            (Self::Root | Self::Descriptor, "descriptors") => Self::Descriptor,
            (Self::Descriptor, "rate_limit") => Self::RateLimit,
            (Self::RateLimit, "replaces") => Self::Replaces,
            _ => Self::Nowhere,
        }
    }

    /// Where a key has an effect that has none here.
    fn belongs(self, key: &str) -> Option<&'static str> {
        if self == Self::Nowhere || self.keys().contains(&key) {
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

/// Looks at every key of a file.
pub(super) fn check(root: View<'_>, report: &mut Report) {
    if let Shape::Map = root.shape() {
        check_map(root, Place::Root, report);
    }
}

fn check_map(map: View<'_>, place: Place, report: &mut Report) {
    note_repeated(map, report);
    let entries = map.entries();
    // Of a key that comes again the last one is looked at alone, as by the reference.
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
        let is_ours = place == Place::RateLimit && OURS.contains(&name);
        if !KNOWN.contains(&name) && !is_ours {
            let key_name = name.to_owned();
            report.mistake(key.line(), Defect::UnknownKey { key: key_name });
            continue;
        }
        if let Some(belongs) = place.belongs(name) {
            let key_name = name.to_owned();
            let remark = Remark::Misplaced {
                key: key_name,
                belongs,
            };
            report.notice(key.line(), remark);
        }
        if name != "metadata" {
            check_value(value, place.under(name), report);
        }
    }
}

fn check_value(value: View<'_>, place: Place, report: &mut Report) {
    match value.shape() {
        Shape::Map => check_map(value, place, report),
        Shape::List => {
            for element in value.elements() {
                if let Shape::Map = element.shape() {
                    check_map(element, place, report);
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

/// A key that stands twice in one map is legal in the reference, and never meant.
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
