//! Domains, their descriptors, and the limits of those.
//!
//! # Why keys and values are kept apart
//!
//! The reference service joins them by `_` and looks that up. To it a descriptor with the key `a_b`
//! equals one with the key `a` and the value `b`. Here the two are different. Files without such
//! pairs mean the same to both.

use std::collections::HashMap;

use crate::config::algorithm::AlgorithmChoice;
use crate::config::metadata::Metadata;
use crate::config::unit::Unit;
use crate::config::wildcard::Pattern;

/// Limits of all domains. Made by [`crate::config::read`].
///
/// # Invariants
///
/// - No two descriptors of one list have the same key and the same value.
/// - Descriptors are nested no deeper than a request can go ([`crate::config::ENTRIES_MAX`]).
#[derive(Debug, Default)]
pub struct RateLimits {
    domains: HashMap<Box<str>, Level>,
}

/// Limit as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Requests per unit; with 0 each request is over the limit.
    pub requests_per_unit: u32,
    /// Unit of time.
    pub unit: Unit,
    /// Name by which other limits replace it; empty if it has none.
    pub name: Box<str>,
    /// Names of the limits that do not apply where this one does.
    pub replaces: Box<[Box<str>]>,
    /// Whether it is counted but never rejects.
    pub is_shadow: bool,
    /// Whether it rejects only together with all other quota limits.
    pub is_quota: bool,
    /// Whether each value has metrics of its own.
    pub has_detailed_metric: bool,
    /// Algorithm.
    pub algorithm: AlgorithmChoice,
    /// Metadata for admitted requests.
    pub metadata: Metadata,
    /// Domain, keys and values of the file, joined: `domain.key_value.key`.
    pub metric: Box<str>,
}

/// Rule of a descriptor for requests that match it.
#[derive(Debug)]
pub(crate) enum Rule {
    /// All requests are admitted.
    Unlimited {
        /// Names of the limits that do not apply where this one does.
        replaces: Box<[Box<str>]>,
    },
    Limited(Box<Limit>),
}

impl Rule {
    pub(crate) fn replaces(&self) -> &[Box<str>] {
        match self {
            Self::Unlimited { replaces } => replaces,
            Self::Limited(limit) => &limit.replaces,
        }
    }
}

/// Content of a descriptor, without its key and value.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) rule: Option<Rule>,
    pub(crate) nested: Level,
    pub(crate) has_value_in_metric: bool,
    pub(crate) is_shared: bool,
}

/// Descriptor with its key and value.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) key: Box<str>,
    /// Value; empty if it matches every value.
    pub(crate) value: Box<str>,
    /// Pattern, if there is a `*`: that of the value, or, if the `*` is in the key, that of key and
    /// value joined.
    pattern: Option<Pattern>,
    pub(crate) node: Node,
}

/// List of descriptors.
#[derive(Debug, Default)]
pub(crate) struct Level {
    /// Descriptors in the order of the files.
    descriptors: Vec<Descriptor>,
    /// Indices of descriptors by key. Keys and values come from clients, so the hash is the
    /// standard one, which nobody can predict.
    by_key: HashMap<Box<str>, KeyIndex>,
    /// Indices of descriptors with a `*` in their key.
    wild_keys: Vec<u32>,
}

/// Indices of the descriptors with one key.
#[derive(Debug, Default)]
struct KeyIndex {
    /// Descriptor without a value.
    bare: Option<u32>,
    /// Descriptors with a value, including patterns.
    by_value: HashMap<Box<str>, u32>,
    /// Descriptors with a pattern as their value.
    wild_values: Vec<u32>,
}

/// Way in which a descriptor matched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MatchKind {
    /// Match by the exact value.
    Value,
    /// Match by a pattern.
    Pattern,
    /// Match by the key alone; the descriptor has no value.
    Key,
}

impl RateLimits {
    /// Whether there is no domain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// Returns all limits by domain in alphabetical order, each domain in the order of the files.
    /// Unlimited descriptors are not included.
    #[must_use]
    pub fn limits(&self) -> Vec<&Limit> {
        let mut domains: Vec<_> = self.domains.iter().collect();
        domains.sort_by_key(|(name, _)| *name);
        let mut limits = Vec::new();
        for (_, level) in domains {
            level.collect_limits(&mut limits);
        }
        limits
    }

    pub(crate) fn has_domain(&self, domain: &str) -> bool {
        self.domains.contains_key(domain)
    }

    pub(crate) fn domain(&self, domain: &str) -> Option<&Level> {
        self.domains.get(domain)
    }

    pub(crate) fn domain_mut(&mut self, domain: &str) -> &mut Level {
        self.domains.entry(domain.into()).or_default()
    }
}

impl Level {
    fn collect_limits<'l>(&'l self, limits: &mut Vec<&'l Limit>) {
        for Descriptor { node, .. } in &self.descriptors {
            if let Some(Rule::Limited(limit)) = &node.rule {
                limits.push(limit);
            }
            node.nested.collect_limits(limits);
        }
    }

    /// Whether there is a descriptor with this key and this value, or without a value.
    pub(crate) fn holds(&self, key: &str, value: &str) -> bool {
        let key_index = self.by_key.get(key);
        key_index.is_some_and(|key_index| match value {
            "" => key_index.bare.is_some(),
            value => key_index.by_value.contains_key(value),
        })
    }

    /// Adds a descriptor, unless there is one with this key and value.
    pub(crate) fn add(&mut self, key: &str, value: &str, node: Node) {
        if self.holds(key, value) {
            return;
        }
        let index = u32::try_from(self.descriptors.len()).expect("their number is bounded");
        let key_index = self.by_key.entry(key.into()).or_default();
        match value {
            "" => key_index.bare = Some(index),
            value => {
                key_index.by_value.insert(value.into(), index);
            }
        }
        let pattern = if key.contains('*') {
            self.wild_keys.push(index);
            Pattern::new(&joined(key, value))
        } else {
            let pattern = Pattern::new(value);
            key_index
                .wild_values
                .extend(pattern.is_some().then_some(index));
            pattern
        };
        self.descriptors.push(Descriptor {
            key: key.into(),
            value: value.into(),
            pattern,
            node,
        });
    }

    fn at(&self, index: u32) -> &Descriptor {
        &self.descriptors[index as usize]
    }

    /// Returns the descriptor that an entry of a request matches: the one with its value, or else
    /// the first one in the order of the files whose pattern matches, or else the one with its key
    /// and no value.
    pub(crate) fn find(&self, key: &str, value: &str) -> Option<(&Descriptor, MatchKind)> {
        let key_index = self.by_key.get(key);
        let exact = key_index.and_then(|key_index| key_index.by_value.get(value));
        if let Some(index) = exact {
            return Some((self.at(*index), MatchKind::Value));
        }
        let by_value =
            key_index.and_then(|key_index| self.first_match(&key_index.wild_values, value));
        let by_key = if self.wild_keys.is_empty() {
            None
        } else {
            self.first_match(&self.wild_keys, &format!("{key}_{value}"))
        };
        // The one that is first in the files.
        let wild = match (by_value, by_key) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if let Some(index) = wild {
            return Some((self.at(index), MatchKind::Pattern));
        }
        let bare = key_index.and_then(|key_index| key_index.bare)?;
        Some((self.at(bare), MatchKind::Key))
    }

    fn first_match(&self, indices: &[u32], text: &str) -> Option<u32> {
        let fits = |index: &&u32| {
            let pattern = self.at(**index).pattern.as_ref();
            pattern.is_some_and(|pattern| pattern.matches(text))
        };
        indices.iter().find(fits).copied()
    }
}

impl Descriptor {
    /// Returns the pattern that replaces the value of an entry with this key.
    pub(crate) fn pattern_for<'a>(&'a self, key: &str) -> std::borrow::Cow<'a, str> {
        if *self.key == *key && !self.value.is_empty() {
            return (&*self.value).into();
        }
        let joined = joined(&self.key, &self.value);
        let rest = joined
            .strip_prefix(key)
            .and_then(|rest| rest.strip_prefix('_'));
        rest.map_or_else(|| joined.clone(), str::to_owned).into()
    }
}

/// Joins key and value like the reference.
pub(crate) fn joined(key: &str, value: &str) -> String {
    if value.is_empty() {
        key.to_owned()
    } else {
        format!("{key}_{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(descriptors: &[(&str, &str)]) -> Level {
        let mut level = Level::default();
        for (key, value) in descriptors {
            level.add(key, value, Node::default());
        }
        level
    }

    fn check(level: &Level, key: &str, value: &str, expected: Option<(&str, &str, MatchKind)>) {
        let found = level.find(key, value);
        let found = found.map(|(found, how)| (&*found.key, &*found.value, how));
        assert_eq!(found, expected, "{key} {value}");
    }

    #[test]
    fn values_go_before_patterns_and_patterns_before_bare_keys() {
        let level = level(&[("k", ""), ("k", "a*"), ("k", "ab"), ("k", "*b")]);
        check(&level, "k", "ab", Some(("k", "ab", MatchKind::Value)));
        check(&level, "k", "axb", Some(("k", "a*", MatchKind::Pattern)));
        check(&level, "k", "xb", Some(("k", "*b", MatchKind::Pattern)));
        check(&level, "k", "x", Some(("k", "", MatchKind::Key)));
        check(&level, "k", "", Some(("k", "", MatchKind::Key)));
        check(&level, "other", "ab", None);
        // A pattern that is sent literally is a value.
        check(&level, "k", "*b", Some(("k", "*b", MatchKind::Value)));
    }

    #[test]
    fn the_first_of_several_patterns_wins() {
        let first = level(&[("k", "*b"), ("k", "a*")]);
        check(&first, "k", "ab", Some(("k", "*b", MatchKind::Pattern)));
        let second = level(&[("k", "a*"), ("k", "*b")]);
        check(&second, "k", "ab", Some(("k", "a*", MatchKind::Pattern)));
        let key = level(&[("*", ""), ("k", "a*")]);
        check(&key, "k", "ab", Some(("*", "", MatchKind::Pattern)));
        let value = level(&[("k", "a*"), ("*", "")]);
        check(&value, "k", "ab", Some(("k", "a*", MatchKind::Pattern)));
        check(&value, "j", "ab", Some(("*", "", MatchKind::Pattern)));
    }

    #[test]
    fn a_star_in_a_key_matches_like_the_reference() {
        let level = level(&[("user*", ""), ("a*", "b")]);
        check(&level, "user", "", Some(("user*", "", MatchKind::Pattern)));
        check(
            &level,
            "user_id",
            "7",
            Some(("user*", "", MatchKind::Pattern)),
        );
        check(&level, "axx", "b", Some(("a*", "b", MatchKind::Pattern)));
        check(&level, "axx", "c", None);
    }

    #[test]
    fn keys_and_values_that_look_alike_when_joined_stay_apart() {
        let level = level(&[("a_b", ""), ("a", "b"), ("a", "b_c"), ("a_b", "c")]);
        check(&level, "a_b", "x", Some(("a_b", "", MatchKind::Key)));
        check(&level, "a", "b", Some(("a", "b", MatchKind::Value)));
        check(&level, "a", "b_c", Some(("a", "b_c", MatchKind::Value)));
        check(&level, "a_b", "c", Some(("a_b", "c", MatchKind::Value)));
        check(&level, "a", "x", None);
    }

    #[test]
    fn a_duplicate_descriptor_is_not_added() {
        let level = level(&[("a", ""), ("a", "b"), ("a", ""), ("a", "b")]);
        assert_eq!(level.descriptors.len(), 2);
        assert!(level.holds("a", "") && level.holds("a", "b"));
        assert!(!level.holds("a", "c") && !level.holds("b", ""));
    }

    #[test]
    fn a_pattern_stands_in_for_a_value() {
        let check = |key: &str, value: &str, of: &str, expected: &str| {
            let level = level(&[(key, value)]);
            assert_eq!(level.descriptors[0].pattern_for(of), expected);
        };
        check("k", "foo*", "k", "foo*");
        check("a*", "", "abc", "a*");
        check("a_*", "", "a", "*");
    }
}
