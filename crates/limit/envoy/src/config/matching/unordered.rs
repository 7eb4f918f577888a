//! In which order do entries lead to a limit, if they come without one?
//!
//! The buckets of Envoy's quota service are named by a map: keys with values, in no order. Files
//! say in which order they stand. So from each descriptor on all entries are tried that are left,
//! in alphabetical order of their keys, until one way takes them all and ends at a limit, or at
//! what is unlimited. The first such way holds.

use super::request::{ENTRIES_MAX, Entry};
use crate::config::descriptors::{Level, RateLimits};

/// Looks for one bucket, at most: files in which more are needed, because many descriptors with the
/// same keys stand inside each other in all orders, are made to be so.
const LOOKS_MAX: usize = 1_000;

impl RateLimits {
    /// These entries in the order in which they lead to a limit; `None` if they lead to none.
    #[must_use]
    pub fn in_order<'r>(&self, domain: &str, entries: &[Entry<'r>]) -> Option<Vec<Entry<'r>>> {
        let level = self.domain(domain)?;
        if entries.is_empty() || entries.len() > ENTRIES_MAX {
            return None;
        }
        let mut left = entries.to_vec();
        left.sort_by_key(|entry| (entry.key, entry.value));
        let mut way = Vec::with_capacity(left.len());
        let mut looks = LOOKS_MAX;
        finds_way(level, &mut left, &mut way, &mut looks).then_some(way)
    }
}

/// Whether a way goes on from here that takes all that are left; `way` is that then. As deep as a
/// bucket has entries.
fn finds_way<'r>(
    level: &Level,
    left: &mut Vec<Entry<'r>>,
    way: &mut Vec<Entry<'r>>,
    looks: &mut usize,
) -> bool {
    for at in 0..left.len() {
        let Some(fewer) = looks.checked_sub(1) else {
            return false;
        };
        *looks = fewer;
        let entry = left[at];
        let Some((descriptor, _)) = level.find(entry.key, entry.value) else {
            continue;
        };
        left.remove(at);
        way.push(entry);
        let is_end = left.is_empty() && descriptor.node.rule.is_some();
        if is_end || finds_way(&descriptor.node.nested, left, way, looks) {
            return true;
        }
        way.pop();
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
        let way = limits(FILE).in_order(domain, &entries);
        let keys = way
            .as_ref()
            .map(|way| way.iter().map(|entry| entry.key).collect::<Vec<_>>());
        assert_eq!(keys.as_deref(), expected, "{pairs:?}");
    }

    #[test]
    fn entries_are_put_into_the_order_of_the_file() {
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
    fn what_leads_nowhere_has_no_order() {
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
    fn ways_without_end_are_not_followed() {
        // Any of twenty entries fits at each of twenty levels, and none of them ends.
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
