//! Builder of trees, from the parser's events, with a stack of its own.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::scalar::{Scalar, resolve, resolve_tagged};
use super::{
    DEPTH_MAX, Kind, NODES_MAX, Node, NodeId, TEXT_BYTES_MAX, Tree, View, as_go_writes, complaint,
};

/// Error of building a tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Unreadable {
    /// Message of `yaml.v2`, and its line.
    Complaint { message: String, line: Option<u32> },
    /// Lists and maps are nested deeper than [`DEPTH_MAX`].
    TooDeep { line: u32 },
    /// One file has more than [`NODES_MAX`] nodes.
    TooManyNodes { line: u32 },
    /// Aliases of aliases expand to more than [`NODES_MAX`] nodes or [`TEXT_BYTES_MAX`] bytes.
    TooManyAliases { line: u32 },
}

/// Parses the first document of a file.
pub(crate) fn parse_bytes(bytes: &[u8]) -> Result<Tree, Unreadable> {
    let text = complaint::text_of(bytes)?;
    parse(text)
}

/// Parses the first document of a text.
pub(super) fn parse(text: &str) -> Result<Tree, Unreadable> {
    let bounds = Bounds {
        nodes: NODES_MAX,
        text_bytes: TEXT_BYTES_MAX,
    };
    parse_within(text, bounds)
}

/// Bounds of a file, with each word and each node counted as often as it is reached.
#[derive(Clone, Copy, Default)]
struct Bounds {
    nodes: u64,
    text_bytes: usize,
}

fn parse_within(text: &str, bounds: Bounds) -> Result<Tree, Unreadable> {
    let mut builder = Builder {
        bounds,
        ..Builder::default()
    };
    let mut parser = Parser::new_from_str(text);
    let further_document = loop {
        let (event, span) = match parser.next_event() {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Err(complaint::of(&error, text)),
            None => break None,
        };
        match event {
            Event::DocumentEnd => break further_document(&mut parser),
            event => builder.take(event, span, text)?,
        }
    };
    builder.finish(further_document)
}

/// Returns the line of another document, if there is one. Errors behind the first document are
/// ignored.
fn further_document<'i>(parser: &mut Parser<'i, saphyr_parser::StrInput<'i>>) -> Option<u32> {
    match parser.next_event() {
        Some(Ok((Event::DocumentStart(_), span))) => Some(line_of(span)),
        _ => None,
    }
}

fn line_of(span: Span) -> u32 {
    u32::try_from(span.start.line()).unwrap_or(u32::MAX)
}

/// List or map that is not complete.
struct Open {
    id: NodeId,
    anchor: usize,
    is_map: bool,
    children: Vec<NodeId>,
}

/// Size of a node, with aliases expanded.
#[derive(Clone, Copy)]
struct Extent {
    /// Nodes, itself included.
    nodes: u64,
    /// Depth of lists and maps, itself included.
    depth: usize,
    /// Bytes of all words.
    bytes: usize,
}

#[derive(Default)]
struct Builder {
    bounds: Bounds,
    nodes: Vec<Node>,
    /// Extents by node.
    extents: Vec<Extent>,
    open: Vec<Open>,
    anchors: HashMap<usize, NodeId>,
    root: Option<NodeId>,
    /// Error of a value. It waits, as it counts only if the whole file is YAML.
    complaint: Option<Unreadable>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span, text: &str) -> Result<(), Unreadable> {
        let line = line_of(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = self.scalar(&text, style, tag.as_deref(), line);
                let id = self.add(line, Kind::Scalar(scalar))?;
                self.anchors.insert(anchor, id);
                self.attach(id, line)
            }
            Event::SequenceStart(anchor, _) => self.begin(line, anchor, false),
            Event::MappingStart(anchor, _) => self.begin(line, anchor, true),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                if let Some(id) = self.anchors.get(&anchor) {
                    return self.attach(*id, line);
                }
                let name = complaint::anchor_at(text, span.start.index());
                self.complain(format!("anchor '{name}' value contains itself"), line);
                let id = self.add(line, Kind::Scalar(Scalar::null()))?;
                self.attach(id, line)
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd => Ok(()),
            Event::DocumentStart(_) | Event::DocumentEnd => Ok(()),
        }
    }

    fn complain(&mut self, message: String, line: u32) {
        let line = Some(line);
        self.complaint
            .get_or_insert(Unreadable::Complaint { message, line });
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, line: u32) -> Scalar {
        // In yaml.v2 a lone `!` removes the effect of quotes.
        let is_bare = tag.is_some_and(|tag| tag.handle.len() + tag.suffix.len() <= 1);
        let is_implicit = is_bare || tag.is_none() && style == ScalarStyle::Plain;
        let tag = tag.filter(|_| !is_bare).map(|tag| match &*tag.handle {
            "tag:yaml.org,2002:" => format!("!!{}", tag.suffix),
            handle => format!("{handle}{}", tag.suffix),
        });
        let plain = match &tag {
            None if is_implicit => resolve(text),
            None => super::Plain::Text,
            Some(tag) => resolve_tagged(tag, text).unwrap_or_else(|message| {
                self.complain(message, line);
                super::Plain::Text
            }),
        };
        Scalar {
            text: text.into(),
            plain,
            tag: tag.map(String::into_boxed_str),
            is_implicit,
        }
    }

    fn add(&mut self, line: u32, kind: Kind) -> Result<NodeId, Unreadable> {
        let (depth, bytes) = match &kind {
            Kind::Scalar(scalar) => (0, scalar.text.len()),
            Kind::List(_) | Kind::Map(_) => (1, 0),
        };
        let id = NodeId::try_from(self.nodes.len()).ok();
        let Some(id) = id.filter(|id| u64::from(*id) < self.bounds.nodes) else {
            return Err(Unreadable::TooManyNodes { line });
        };
        self.nodes.push(Node { line, kind });
        self.extents.push(Extent {
            nodes: 1,
            depth,
            bytes,
        });
        Ok(id)
    }

    fn begin(&mut self, line: u32, anchor: usize, is_map: bool) -> Result<(), Unreadable> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Unreadable::TooDeep { line });
        }
        let id = self.add(line, Kind::List(Vec::new()))?;
        // From here on the anchor has a new meaning.
        self.anchors.remove(&anchor);
        self.open.push(Open {
            id,
            anchor,
            is_map,
            children: Vec::new(),
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Unreadable> {
        let open = self.open.pop().expect("what ends has begun");
        let line = self.nodes[open.id as usize].line;
        let kind = if open.is_map {
            Kind::Map(self.pairs(&open.children))
        } else {
            Kind::List(open.children)
        };
        self.nodes[open.id as usize].kind = kind;
        self.anchors.insert(open.anchor, open.id);
        self.attach(open.id, line)
    }

    /// Pairs keys and values, which alternate.
    fn pairs(&mut self, children: &[NodeId]) -> Vec<(NodeId, NodeId)> {
        let pairs: Vec<(NodeId, NodeId)> = children
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[key, value]| (*key, *value))
            .collect();
        for (key, value) in &pairs {
            let line = self.nodes[*key as usize].line;
            match &self.nodes[*key as usize].kind {
                Kind::Scalar(key) => {
                    if key.is_merge() && !self.is_mergeable(*value) {
                        let message = "map merge requires map or sequence of maps as the value";
                        self.complain(message.to_owned(), line);
                    }
                }
                Kind::List(_) | Kind::Map(_) => {
                    let key = self.shown(*key);
                    self.complain(format!("invalid map key: {key}"), line);
                }
            }
        }
        pairs
    }

    fn is_mergeable(&self, value: NodeId) -> bool {
        let is_map = |id: &NodeId| matches!(self.nodes[*id as usize].kind, Kind::Map(_));
        match &self.nodes[value as usize].kind {
            Kind::Map(_) => true,
            Kind::List(elements) => elements.iter().all(is_map),
            Kind::Scalar(_) => false,
        }
    }

    /// Formats a key like go, if it is small enough to be read.
    fn shown(&mut self, key: NodeId) -> String {
        const NODES_SHOWN_MAX: u64 = 100;
        if self.complaint.is_some() || self.extents[key as usize].nodes > NODES_SHOWN_MAX {
            return String::new();
        }
        let tree = Tree {
            nodes: std::mem::take(&mut self.nodes),
            root: key,
            further_document: None,
        };
        let shown = as_go_writes(View {
            tree: &tree,
            id: key,
        });
        self.nodes = tree.nodes;
        shown
    }

    /// Adds a complete node to its parent.
    fn attach(&mut self, id: NodeId, line: u32) -> Result<(), Unreadable> {
        let Extent {
            nodes,
            depth,
            bytes,
        } = self.extents[id as usize];
        if self.open.len() + depth > DEPTH_MAX {
            return Err(Unreadable::TooDeep { line });
        }
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(id);
            return Ok(());
        };
        open.children.push(id);
        let extent = &mut self.extents[open.id as usize];
        extent.nodes += nodes;
        extent.bytes += bytes;
        extent.depth = extent.depth.max(depth + 1);
        if extent.nodes > self.bounds.nodes || extent.bytes > self.bounds.text_bytes {
            return Err(Unreadable::TooManyAliases { line });
        }
        Ok(())
    }

    fn finish(mut self, further_document: Option<u32>) -> Result<Tree, Unreadable> {
        if let Some(complaint) = self.complaint {
            return Err(complaint);
        }
        let root = match self.root {
            Some(root) => root,
            None => self.add(1, Kind::Scalar(Scalar::null()))?,
        };
        Ok(Tree {
            nodes: self.nodes,
            root,
            further_document,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Unreadable) {
        assert_eq!(parse(text).unwrap_err(), *expected);
    }

    fn complaint(message: &str, line: u32) -> Unreadable {
        Unreadable::Complaint {
            message: message.to_owned(),
            line: Some(line),
        }
    }

    #[test]
    fn a_wrong_value_has_the_message_of_yaml_v2() {
        let merge = "map merge requires map or sequence of maps as the value";
        let key = "invalid map key: map[interface {}]interface {}{\".Values.x\":interface {}(nil)}";
        check(
            "a: &a [*a]",
            &complaint("anchor 'a' value contains itself", 1),
        );
        check("a: 1\n<<: 5", &complaint(merge, 2));
        check("<<: [{}, 5]", &complaint(merge, 1));
        check("a: {{ .Values.x }}", &complaint(key, 1));
        check(
            "a:\n- !!int x",
            &complaint("cannot decode !!str `x` as a !!int", 2),
        );
    }

    #[test]
    fn a_file_that_is_no_yaml_is_reported_before_any_value() {
        let Unreadable::Complaint { message, .. } = parse("a: !!int x\nb: [").unwrap_err() else {
            panic!("another complaint");
        };
        assert!(!message.contains("decode"), "{message}");
    }

    #[test]
    fn nesting_is_bounded_also_through_aliases() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        check(&nested(DEPTH_MAX + 1), &Unreadable::TooDeep { line: 1 });
        let half = DEPTH_MAX / 2;
        let twice = |inner, outer| {
            let outer = format!("{}*x{}", "[".repeat(outer), "]".repeat(outer));
            format!("- &x {}\n- {outer}", nested(inner))
        };
        assert!(parse(&twice(half, half - 1)).is_ok());
        check(&twice(half, half), &Unreadable::TooDeep { line: 2 });
    }

    #[test]
    fn a_file_that_expands_to_millions_of_nodes_is_rejected_at_once() {
        let lines = (1..60).map(|level: u32| {
            let before = level - 1;
            format!("- &a{level} [*a{before}, *a{before}]\n")
        });
        let text = "- &a0 [x]\n".to_owned() + &lines.collect::<String>();
        assert!(matches!(
            parse(&text).unwrap_err(),
            Unreadable::TooManyAliases { .. }
        ));
    }

    #[test]
    fn nodes_and_words_at_their_bounds_are_read_and_no_more() {
        let check = |text: &str, nodes, text_bytes, expected: Option<Unreadable>| {
            let bounds = Bounds { nodes, text_bytes };
            assert_eq!(parse_within(text, bounds).err(), expected, "{text}");
        };
        check("[a,a]", 3, 2, None);
        check("[a,a]", 2, 2, Some(Unreadable::TooManyNodes { line: 1 }));
        let words = "- &a long\n- *a\n- *a\n";
        check(words, 4, 12, None);
        let too_many = Some(Unreadable::TooManyAliases { line: 3 });
        check(words, 4, 11, too_many.clone());
        check(words, 3, 12, too_many);
    }
}
