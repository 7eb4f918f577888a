//! What was read: domains, the descriptors in them, and the limits of those.
//!
//! # Why keys and values are kept apart
//!
//! The reference service joins them by `_` and looks that up, so that to it a descriptor with the
//! key `a_b` is the same as one with the key `a` and the value `b`. Here the two stand beside each
//! other. Files in which no such pair meets mean the same to both.

use std::collections::HashMap;

use crate::config::algorithm::AlgorithmChoice;
use crate::config::metadata::Metadata;
use crate::config::unit::Unit;
use crate::config::wildcard::Pattern;

/// The limits of all domains. Made by [`crate::config::read`].
///
/// # Invariants
///
/// - No two descriptors beside each other have the same key and the same value.
/// - Descriptors are no deeper inside each other than a request can go
///   ([`crate::config::ENTRIES_MAX`]).
#[derive(Debug, Default)]
pub struct RateLimits {
    domains: HashMap<Box<str>, Level>,
}

/// A limit as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// How many requests; 0 means that each is over the limit.
    pub requests_per_unit: u32,
    /// In which time.
    pub unit: Unit,
    /// What others call it who replace it; empty if nothing was said.
    pub name: Box<str>,
    /// The limits that do not count where this one does.
    pub replaces: Box<[Box<str>]>,
    /// Whether it is counted and told to nobody.
    pub is_shadow: bool,
    /// Whether it refuses only together with all others of its kind.
    pub is_quota: bool,
    /// Whether each value is measured by itself.
    pub has_detailed_metric: bool,
    /// How it is counted.
    pub algorithm: AlgorithmChoice,
    /// What is told to whoever passes.
    pub metadata: Metadata,
    /// Domain, keys and values as they stand in the file, joined: `domain.key_value.key`.
    pub metric: Box<str>,
}

/// What a descriptor says about requests that meet it.
#[derive(Debug)]
pub(crate) enum Rule {
    /// As many as will.
    Unlimited {
        /// The limits that do not count where this one does.
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

/// A descriptor without its place.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) rule: Option<Rule>,
    pub(crate) nested: Level,
    pub(crate) has_value_in_metric: bool,
    pub(crate) is_shared: bool,
}

/// A descriptor at its place.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) key: Box<str>,
    /// Empty if it holds for every value.
    pub(crate) value: Box<str>,
    /// If there is a `*`: what a value looks like, or, if the `*` is in the key, key and value
    /// joined.
    pattern: Option<Pattern>,
    pub(crate) node: Node,
}

/// Descriptors beside each other.
#[derive(Debug, Default)]
pub(crate) struct Level {
    /// In the order of the files.
    descriptors: Vec<Descriptor>,
    /// Which of them have this key. Keys and values come from outside, so the hash is the standard
    /// one, which nobody can foresee.
    by_key: HashMap<Box<str>, OfKey>,
    /// Those with a `*` in their key.
    wild_keys: Vec<u32>,
}

/// Descriptors with one key, by their place among all beside each other.
#[derive(Debug, Default)]
struct OfKey {
    /// The one without a value.
    bare: Option<u32>,
    /// Those with a value, also with one that is a pattern.
    by_value: HashMap<Box<str>, u32>,
    /// Those with a pattern for a value.
    wild_values: Vec<u32>,
}

/// How a descriptor was found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MatchKind {
    /// It has the value.
    Value,
    /// It has a pattern that the value fits.
    Pattern,
    /// It has the key and no value.
    Key,
}

impl RateLimits {
    /// Whether no file was read, or none with a domain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// All limits, domain by domain in alphabetical order, of each in the order of the files. What
    /// is unlimited is not among them.
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

    /// Whether a descriptor with this key and this value, or without one, is here.
    pub(crate) fn holds(&self, key: &str, value: &str) -> bool {
        let of_key = self.by_key.get(key);
        of_key.is_some_and(|of_key| match value {
            "" => of_key.bare.is_some(),
            value => of_key.by_value.contains_key(value),
        })
    }

    /// Adds a descriptor, unless its place is taken.
    pub(crate) fn add(&mut self, key: &str, value: &str, node: Node) {
        if self.holds(key, value) {
            return;
        }
        let index = u32::try_from(self.descriptors.len()).expect("their number is bounded");
        let of_key = self.by_key.entry(key.into()).or_default();
        match value {
            "" => of_key.bare = Some(index),
            value => {
                of_key.by_value.insert(value.into(), index);
            }
        }
        let pattern = if key.contains('*') {
            self.wild_keys.push(index);
            Pattern::new(&joined(key, value))
        } else {
            let pattern = Pattern::new(value);
            of_key
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

    /// The descriptor that an entry of a request meets: the one with its value, or else the first
    /// one in the order of the files whose pattern it fits, or else the one with its key and no
    /// value.
    pub(crate) fn find(&self, key: &str, value: &str) -> Option<(&Descriptor, MatchKind)> {
        let of_key = self.by_key.get(key);
        let exact = of_key.and_then(|of_key| of_key.by_value.get(value));
        if let Some(index) = exact {
            return Some((self.at(*index), MatchKind::Value));
        }
        let by_value = of_key.and_then(|of_key| self.first_fitting(&of_key.wild_values, value));
        let by_key = if self.wild_keys.is_empty() {
            None
        } else {
            self.first_fitting(&self.wild_keys, &format!("{key}_{value}"))
        };
        // Whichever stands first.
        let wild = match (by_value, by_key) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if let Some(index) = wild {
            return Some((self.at(index), MatchKind::Pattern));
        }
        let bare = of_key.and_then(|of_key| of_key.bare)?;
        Some((self.at(bare), MatchKind::Key))
    }

    fn first_fitting(&self, indices: &[u32], text: &str) -> Option<u32> {
        let fits = |index: &&u32| {
            let pattern = self.at(**index).pattern.as_ref();
            pattern.is_some_and(|pattern| pattern.matches(text))
        };
        indices.iter().find(fits).copied()
    }
}

impl Descriptor {
    /// What stands for the value of an entry with this key where the value itself does not count.
    pub(crate) fn stand_in<'a>(&'a self, key: &str) -> std::borrow::Cow<'a, str> {
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

/// Key and value as the reference joins them.
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
        // A pattern that comes word for word is a value.
        check(&level, "k", "*b", Some(("k", "*b", MatchKind::Value)));
    }

    #[test]
    fn of_several_patterns_the_first_one_holds() {
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
    fn a_star_in_a_key_fits_as_in_the_reference() {
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
    fn a_place_is_taken_once() {
        let level = level(&[("a", ""), ("a", "b"), ("a", ""), ("a", "b")]);
        assert_eq!(level.descriptors.len(), 2);
        assert!(level.holds("a", "") && level.holds("a", "b"));
        assert!(!level.holds("a", "c") && !level.holds("b", ""));
    }

    #[test]
    fn a_pattern_stands_in_for_a_value() {
        let check = |key: &str, value: &str, of: &str, expected: &str| {
            let level = level(&[(key, value)]);
            assert_eq!(level.descriptors[0].stand_in(of), expected);
        };
        check("k", "foo*", "k", "foo*");
        check("a*", "", "abc", "a*");
        check("a_*", "", "a", "*");
    }
}
