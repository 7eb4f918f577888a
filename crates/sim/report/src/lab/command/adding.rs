//! Flag `--add-nodes`: nodes that are added during a run.

use std::fmt;

use anteroom_limit::time::{DurationUs, TimestampUs};

use super::parse_duration;
use crate::lab::routing::Grown;
use crate::lab::run::NODES_MAX;

/// Number of added nodes and their time after the start: `2@4m`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Added {
    nodes: u32,
    after: DurationUs,
}

impl Added {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let split = text.split_once('@');
        let (nodes, after) = split.ok_or("write a number and a time, such as 2@4m")?;
        let nodes: u32 = nodes
            .parse()
            .ok()
            .filter(|nodes| (1..NODES_MAX).contains(nodes))
            .ok_or_else(|| format!("{nodes:?} nodes are not from 1 to {}", NODES_MAX - 1))?;
        Ok(Self {
            nodes,
            after: parse_duration(after)?,
        })
    }
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, after } = self;
        write!(f, "{nodes}@{}ms", after.0 / 1_000)
    }
}

/// Returns the number of nodes after all additions.
pub(super) fn in_all(nodes: u32, added: &[Added]) -> anyhow::Result<u32> {
    let more = added.iter().map(|added| u64::from(added.nodes));
    let all = u64::from(nodes) + more.sum::<u64>();
    let fits = u32::try_from(all).ok().filter(|all| *all <= NODES_MAX);
    fits.ok_or_else(|| anyhow::anyhow!("--add-nodes: {all} nodes in all; at most {NODES_MAX}"))
}

/// Returns the numbers of nodes by time, the start first; empty if none is added.
pub(super) fn grown(
    nodes: u32,
    added: &[Added],
    (begin, end): (TimestampUs, TimestampUs),
) -> anyhow::Result<Vec<Grown>> {
    if added.is_empty() {
        return Ok(Vec::new());
    }
    let mut added = added.to_vec();
    added.sort_by_key(|added| added.after);
    let mut grown = vec![Grown {
        at: TimestampUs(0),
        nodes,
    }];
    let mut nodes = nodes;
    for one in added {
        let at = begin + one.after;
        anyhow::ensure!(
            at <= end,
            "--add-nodes {one}: requests come for {} only",
            end.since(begin)
        );
        nodes += one.nodes;
        grown.push(Grown { at, nodes });
    }
    Ok(grown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_added_in_time_order_to_the_present_ones() {
        let added = ["4@7m", "2@4m"].map(|text| Added::parse(text).unwrap());
        assert_eq!(in_all(2, &added).unwrap(), 8);
        let at = |mins: u64| TimestampUs(1_000_000 + mins * 60_000_000);
        let grown = grown(2, &added, (at(0), at(9))).unwrap();
        let found: Vec<(TimestampUs, u32)> = grown.iter().map(|one| (one.at, one.nodes)).collect();
        assert_eq!(found, [(TimestampUs(0), 2), (at(4), 4), (at(7), 8)]);
        assert_eq!(added[0].to_string(), "4@420000ms");
    }

    #[test]
    fn invalid_additions_are_reported() {
        for (text, expected) in [
            ("2", "such as 2@4m"),
            ("0@4m", "from 1 to 999"),
            ("-1@4m", "from 1 to 999"),
            ("2@4", "units"),
        ] {
            let error = Added::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let added = [Added::parse("999@4m").unwrap()];
        assert_eq!(in_all(1, &added).unwrap(), 1_000);
        assert!(in_all(2, &added).is_err());
        let minute = (TimestampUs(0), TimestampUs(60_000_000));
        let error = grown(1, &added, minute).unwrap_err().to_string();
        assert!(error.ends_with("requests come for 60 s only"), "{error}");
    }
}
