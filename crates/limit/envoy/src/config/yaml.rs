//! YAML files as trees of lists, maps and scalars, by the rules of go's `yaml.v2`, which the
//! reference service uses.
//!
//! Only the first document of a file is read. An alias refers to the node that it names, so a tree
//! is no larger than its file. Its expanded size is bounded ([`NODES_MAX`], [`DEPTH_MAX`]), so
//! every walk ends soon and needs little stack.

mod build;
mod complaint;
mod scalar;
mod shown;

pub(crate) use build::{Unreadable, parse_bytes};
pub(crate) use scalar::{Plain, Scalar};
pub(crate) use shown::{as_go_prints, as_go_writes};

/// Most nodes of a file, each counted as often as it is reached. Ten or twelve make a descriptor,
/// so this is more than [`crate::config::FILE_DESCRIPTORS_MAX`] of them have. Without the bound,
/// ten lines of aliases would take hours to walk.
pub(crate) const NODES_MAX: u64 = 2_000_000;

/// Deepest nesting of lists and maps. A nested descriptor takes two levels, and a request can match
/// a nesting of at most [`crate::config::ENTRIES_MAX`]; the rest is for metadata. Without the
/// bound, a file of brackets would exhaust the stack.
pub(crate) const DEPTH_MAX: usize = 128;

/// Most bytes of all words, each counted as often as it is reached: twice the longest file
/// ([`crate::config::FILE_BYTES_MAX`]). Without the bound, a long word and many aliases would fill
/// the memory with copies.
pub(crate) const TEXT_BYTES_MAX: usize = 32 << 20;

/// Parsed document.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    root: NodeId,
    /// Line of another document, which is ignored.
    pub(crate) further_document: Option<u32>,
}

/// Index of a node.
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

/// Node with everything below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'t> {
    tree: &'t Tree,
    id: NodeId,
}

/// Kind of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'t> {
    Scalar(&'t Scalar),
    List,
    Map,
}

impl Tree {
    /// Returns the root; a null if there is no document.
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

    /// Returns its line, from 1.
    pub(crate) fn line(self) -> u32 {
        self.node().line
    }

    /// Returns its kind.
    pub(crate) fn shape(self) -> Shape<'t> {
        match &self.node().kind {
            Kind::Scalar(scalar) => Shape::Scalar(scalar),
            Kind::List(_) => Shape::List,
            Kind::Map(_) => Shape::Map,
        }
    }

    /// Whether it is a null.
    pub(crate) fn is_null(self) -> bool {
        matches!(self.shape(), Shape::Scalar(scalar) if scalar.plain == Plain::Null)
    }

    /// Returns the text of a scalar, whatever it means.
    pub(crate) fn word(self) -> Option<&'t str> {
        match self.shape() {
            Shape::Scalar(scalar) => Some(&scalar.text),
            Shape::List | Shape::Map => None,
        }
    }

    /// Returns the text of a scalar that is a string.
    pub(crate) fn text(self) -> Option<&'t str> {
        match self.shape() {
            Shape::Scalar(scalar) if scalar.plain.is_text() => Some(&scalar.text),
            _ => None,
        }
    }

    /// Returns the elements of a list; none for other nodes.
    pub(crate) fn elements(self) -> impl ExactSizeIterator<Item = Self> {
        let ids: &'t [NodeId] = match &self.node().kind {
            Kind::List(ids) => ids,
            _ => &[],
        };
        ids.iter().map(move |id| self.at(*id))
    }

    /// Returns the keys and values of a map without merges; none for other nodes.
    pub(crate) fn own_entries(self) -> impl ExactSizeIterator<Item = (Self, Self)> {
        let ids: &'t [(NodeId, NodeId)] = match &self.node().kind {
            Kind::Map(ids) => ids,
            _ => &[],
        };
        ids.iter()
            .map(move |(key, value)| (self.at(*key), self.at(*value)))
    }

    /// Returns the keys and values with merged maps (`<<`) expanded. A later key wins, as in
    /// `yaml.v2`, even a merged one over one of the map itself.
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
            // The first of the merged maps wins, so it comes last.
            let merged: Vec<Self> = value.elements().collect();
            for map in merged.into_iter().rev() {
                map.collect_entries(entries);
            }
        }
    }

    /// Whether it is a key that merges another map in.
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
    fn the_first_document_is_read_and_the_next_one_noticed() {
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
    fn the_last_of_merged_and_own_keys_wins() {
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
