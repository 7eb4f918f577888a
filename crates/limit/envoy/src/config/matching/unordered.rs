//! Ordering of entries that come without one.
//!
//! A map names the buckets of Envoy's quota service: keys with values, in no order. Files define an
//! order. So at each descriptor all remaining entries are tried in alphabetical order of their
//! keys, until a walk uses all of them and ends at a limit or an unlimited descriptor. The first
//! such walk is taken.

use super::request::{ENTRIES_MAX, Entry};
use crate::config::descriptors::{Level, RateLimits};

/// Most steps of a search for one bucket. Only hostile files need more: those with many descriptors
/// of the same keys, nested in all orders.
const STEPS_MAX: usize = 1_000;

impl RateLimits {
    /// Returns these entries in the order in which they match a limit; `None` if they match none.
    #[must_use]
    pub fn in_order<'r>(&self, domain: &str, entries: &[Entry<'r>]) -> Option<Vec<Entry<'r>>> {
        let level = self.domain(domain)?;
        if entries.is_empty() || entries.len() > ENTRIES_MAX {
            return None;
        }
        let mut left = entries.to_vec();
        left.sort_by_key(|entry| (entry.key, entry.value));
        let mut walk = Vec::with_capacity(left.len());
        let mut steps = STEPS_MAX;
        find_walk(level, &mut left, &mut walk, &mut steps).then_some(walk)
    }
}

/// Whether a walk from here uses all remaining entries; `walk` is that walk then. Recurses as deep
/// as a bucket has entries.
fn find_walk<'r>(
    level: &Level,
    left: &mut Vec<Entry<'r>>,
    walk: &mut Vec<Entry<'r>>,
    steps: &mut usize,
) -> bool {
    for at in 0..left.len() {
        let Some(fewer) = steps.checked_sub(1) else {
            return false;
        };
        *steps = fewer;
        let entry = left[at];
        let Some((descriptor, _)) = level.find(entry.key, entry.value) else {
            continue;
        };
        left.remove(at);
        walk.push(entry);
        let is_end = left.is_empty() && descriptor.node.rule.is_some();
        if is_end || find_walk(&descriptor.node.nested, left, walk, steps) {
            return true;
        }
        walk.pop();
        left.insert(at, entry);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{File, SameDomain, read};

    fn limits(text: &str) -> RateLimits {
        let file = File {
            name: "edge.yaml",
            bytes: text.as_bytes(),
        };
        read(&[file], SameDomain::Refused).unwrap().limits
    }

    const FILE: &str = "
domain: edge
descriptors:
- key: tenant
  rate_limit: {unit: minute, requests_per_unit: 1}
  descriptors:
  - key: path
    rate_limit: {unit: minute, requests_per_unit: 2}
- key: a
  descriptors:
  - key: tenant
    value: vip
    rate_limit: {unlimited: true}
- key: only
  descriptors:
  - key: above
    rate_limit: {unit: minute, requests_per_unit: 3}
";

    fn check(domain: &str, pairs: &[(&str, &str)], expected: Option<&[&str]>) {
        let entries = pairs.iter().map(|&(key, value)| Entry { key, value });
        let entries: Vec<Entry<'_>> = entries.collect();
        let walk = limits(FILE).in_order(domain, &entries);
        let keys = walk
            .as_ref()
            .map(|walk| walk.iter().map(|entry| entry.key).collect::<Vec<_>>());
        assert_eq!(keys.as_deref(), expected, "{pairs:?}");
    }

    #[test]
    fn entries_are_ordered_like_the_file() {
        check(
            "edge",
            &[("path", "/"), ("tenant", "x")],
            Some(&["tenant", "path"]),
        );
        check(
            "edge",
            &[("tenant", "vip"), ("a", "1")],
            Some(&["a", "tenant"]),
        );
        check("edge", &[("tenant", "x")], Some(&["tenant"]));
    }

    #[test]
    fn entries_without_a_match_have_no_order() {
        check("edge", &[], None);
        check("edge", &[("path", "/")], None);
        check("edge", &[("tenant", "x"), ("a", "1")], None);
        check("edge", &[("only", "")], None);
        check(
            "edge",
            &[("tenant", "x"), ("path", "/"), ("more", "")],
            None,
        );
        check("other", &[("tenant", "x")], None);
    }

    #[test]
    fn an_exponential_search_is_cut_off() {
        // Any of twenty entries matches at each of twenty levels, and no walk ends at a limit.
        let mut text = "domain: edge\ndescriptors:\n".to_owned();
        for depth in 0..20 {
            let indent = "  ".repeat(depth);
            text.push_str(&format!("{indent}- key: \"k*\"\n{indent}  descriptors:\n"));
        }
        text.push_str(&format!("{}- key: end\n", "  ".repeat(20)));
        let keys: Vec<String> = (0..20).map(|at| format!("k{at}")).collect();
        let entries = keys.iter().map(|key| Entry { key, value: "" });
        let entries: Vec<Entry<'_>> = entries.collect();
        assert_eq!(limits(&text).in_order("edge", &entries), None);
    }
}
