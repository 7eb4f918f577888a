//! Number of nodes and data centers of a demo.
//!
//! Numbers only: the code that starts the nodes knows their kind and the stores that they need.

use std::fmt;

/// Nodes and data centers of a demo.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layout {
    /// Data centers; at least 1.
    pub data_centers: u32,
    /// Nodes in each of them; at least 1.
    pub nodes_in_each: u32,
}

impl Layout {
    /// One node that shares its limits with no other.
    pub const ALONE: Self = Self {
        data_centers: 1,
        nodes_in_each: 1,
    };

    /// Returns the number of nodes.
    #[must_use]
    pub const fn nodes(self) -> u32 {
        self.data_centers.saturating_mul(self.nodes_in_each)
    }

    /// Whether there is only one node, which needs no shared store.
    #[must_use]
    pub const fn is_alone(self) -> bool {
        self.nodes() == 1
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        let (nodes, data_centers) = (self.nodes(), self.data_centers);
        write!(
            f,
            "{nodes} node{} in {data_centers} data center{}",
            plural(nodes),
            plural(data_centers)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_counts_and_names_its_nodes() {
        let check = |data_centers, nodes_in_each, is_alone, text: &str| {
            let layout = Layout {
                data_centers,
                nodes_in_each,
            };
            assert_eq!(layout.is_alone(), is_alone, "{text}");
            assert_eq!(layout.to_string(), text);
        };
        check(1, 1, true, "1 node in 1 data center");
        check(1, 3, false, "3 nodes in 1 data center");
        check(2, 1, false, "2 nodes in 2 data centers");
        check(2, 3, false, "6 nodes in 2 data centers");
        assert!(Layout::ALONE.is_alone());
    }
}
