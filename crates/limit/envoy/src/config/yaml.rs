//! What does a YAML file say? A tree of lists, maps and scalars, as go's `yaml.v2` takes them,
//! which is what the reference service reads with.
//!
//! Only the first document of a file counts. An alias is the node that it names, so a tree is no
//! larger than its file; how large it looks to whoever walks it is bounded ([`NODES_MAX`],
//! [`DEPTH_MAX`]), so every walk ends soon and none needs much stack.

mod build;
mod complaint;
mod scalar;
mod shown;

pub(crate) use build::{Unreadable, parse_bytes};
pub(crate) use scalar::{Plain, Scalar};
pub(crate) use shown::{as_go_prints, as_go_writes};

/// Most nodes of a file, each counted as often as it is reached. Ten or twelve make a descriptor,
/// so this is more than [`crate::config::FILE_DESCRIPTORS_MAX`] of them have; without it ten lines
/// of aliases would take hours to walk.
pub(crate) const NODES_MAX: u64 = 2_000_000;

/// Most lists and maps inside each other. A descriptor inside another takes two, and as many as can
/// be met by a request are inside each other at most ([`crate::config::ENTRIES_MAX`]); the rest is
/// for metadata. Without it a file of brackets would exhaust the stack of whoever walks it.
pub(crate) const DEPTH_MAX: usize = 128;

/// Most bytes of all words, each counted as often as it is reached: twice the longest file
/// ([`crate::config::FILE_BYTES_MAX`]). Without it a long word and many aliases would fill the
/// memory of whoever copies.
pub(crate) const TEXT_BYTES_MAX: usize = 32 << 20;

/// What a document says.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    root: NodeId,
    /// Where another document begins, which nobody reads.
    pub(crate) further_document: Option<u32>,
}

/// Where a node is among all nodes.
type NodeId = u32;

#[derive(Debug)]
struct Node {
    line: u32,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Scalar(Scalar),
    List(Vec<NodeId>),
    Map(Vec<(NodeId, NodeId)>),
}

/// A node and all that hangs on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'t> {
    tree: &'t Tree,
    id: NodeId,
}

/// What a node is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'t> {
    Scalar(&'t Scalar),
    List,
    Map,
}

impl Tree {
    /// What the document is as a whole; a null where there is no document.
    pub(crate) fn root(&self) -> View<'_> {
        View {
            tree: self,
            id: self.root,
        }
    }
}

impl<'t> View<'t> {
    fn node(self) -> &'t Node {
        &self.tree.nodes[self.id as usize]
    }

    fn at(self, id: NodeId) -> Self {
        Self { id, ..self }
    }

    /// Where it begins, from 1.
    pub(crate) fn line(self) -> u32 {
        self.node().line
    }

    /// What it is.
    pub(crate) fn shape(self) -> Shape<'t> {
        match &self.node().kind {
            Kind::Scalar(scalar) => Shape::Scalar(scalar),
            Kind::List(_) => Shape::List,
            Kind::Map(_) => Shape::Map,
        }
    }

    /// Whether it is a scalar that says nothing.
    pub(crate) fn is_null(self) -> bool {
        matches!(self.shape(), Shape::Scalar(scalar) if scalar.plain == Plain::Null)
    }

    /// The word, if it is a scalar, whatever it means.
    pub(crate) fn word(self) -> Option<&'t str> {
        match self.shape() {
            Shape::Scalar(scalar) => Some(&scalar.text),
            Shape::List | Shape::Map => None,
        }
    }

    /// The word, if it means a text.
    pub(crate) fn text(self) -> Option<&'t str> {
        match self.shape() {
            Shape::Scalar(scalar) if scalar.plain.is_text() => Some(&scalar.text),
            _ => None,
        }
    }

    /// What a list holds; nothing if it is no list.
    pub(crate) fn elements(self) -> impl ExactSizeIterator<Item = Self> {
        let ids: &'t [NodeId] = match &self.node().kind {
            Kind::List(ids) => ids,
            _ => &[],
        };
        ids.iter().map(move |id| self.at(*id))
    }

    /// Keys and values as they stand there; nothing if it is no map.
    pub(crate) fn own_entries(self) -> impl ExactSizeIterator<Item = (Self, Self)> {
        let ids: &'t [(NodeId, NodeId)] = match &self.node().kind {
            Kind::Map(ids) => ids,
            _ => &[],
        };
        ids.iter()
            .map(move |(key, value)| (self.at(*key), self.at(*value)))
    }

    /// Keys and values with what is merged (`<<`) in its place. A key that comes later wins, as in
    /// `yaml.v2`, also a merged one over one that stands there.
    pub(crate) fn entries(self) -> Vec<(Self, Self)> {
        let mut entries = Vec::with_capacity(self.own_entries().len());
        self.collect_entries(&mut entries);
        entries
    }

    fn collect_entries(self, entries: &mut Vec<(Self, Self)>) {
        for (key, value) in self.own_entries() {
            if !key.is_merge() {
                entries.push((key, value));
                continue;
            }
            value.collect_entries(entries);
            // What stands first wins, so it comes last.
            let merged: Vec<Self> = value.elements().collect();
            for map in merged.into_iter().rev() {
                map.collect_entries(entries);
            }
        }
    }

    /// Whether, as a key, it merges another map in.
    pub(crate) fn is_merge(self) -> bool {
        matches!(self.shape(), Shape::Scalar(scalar) if scalar.is_merge())
    }
}

#[cfg(test)]
mod tests {
    use super::build::parse;
    use super::*;

    fn check(text: &str, expected: &str) {
        let tree = parse(text).unwrap();
        assert_eq!(as_go_prints(tree.root()), expected, "{text}");
    }

    #[test]
    fn the_first_document_is_read_and_the_place_of_the_next_told() {
        check("a: [b, {c: d}]", "map[a:[b map[c:d]]]");
        check("", "<nil>");
        check("# nothing", "<nil>");
        check("---\na: b\n---\n]]", "map[a:b]");
        assert_eq!(parse("a: b\n").unwrap().further_document, None);
        assert_eq!(parse("a: b\n---\nc: d").unwrap().further_document, Some(2));
    }

    #[test]
    fn an_alias_is_what_it_names() {
        check("a: &x [b]\nc: *x", "map[a:[b] c:[b]]");
        check("a: &x b\n*x : c", "map[a:b b:c]");
    }

    #[test]
    fn what_comes_last_wins_among_merged_and_own_keys() {
        check(
            "x: &x {a: 1, b: 1}\nz: {a: 2, <<: *x}",
            "map[x:map[a:1 b:1] z:map[a:1 b:1]]",
        );
        check(
            "x: &x {a: 1, b: 1}\nz: {<<: *x, a: 2}",
            "map[x:map[a:1 b:1] z:map[a:2 b:1]]",
        );
        check("<<: [{a: 1}, {a: 2, b: 2}]", "map[a:1 b:2]");
        check("\"<<\": 1", "map[<<:1]");
    }
}
