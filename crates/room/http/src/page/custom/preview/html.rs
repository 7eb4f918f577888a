//! Parser of a page: the errors of its HTML, and the elements with their lines.
//!
//! The tree itself is not kept.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, local_name, ns, parse_document};

use crate::page::custom::script::PREFIX;

/// Element of a page, in the order of the source.
pub(super) struct Element {
    pub(super) line: usize,
    /// Value of its `id`; empty if it has none.
    pub(super) id: String,
    /// Whether it is the page's script.
    pub(super) is_script_of_ours: bool,
}

/// Findings of a parser in a page.
#[derive(Default)]
pub(super) struct Parsed {
    /// Errors with their lines.
    pub(super) errors: Vec<(usize, String)>,
    pub(super) elements: Vec<Element>,
    /// Whether the page has more elements than are checked.
    pub(super) is_cut: bool,
}

/// Most elements of a page that are checked. The time for nested ones grows with their square.
const ELEMENTS_MAX: usize = 2_000;

/// Part of a page that is parsed at a time, in bytes.
const CHUNK: usize = 4_096;

/// Parses a page as a browser does.
pub(super) fn parse(page: &str) -> Parsed {
    let mut parser = parse_document(Sink::default(), ParseOpts::default());
    let mut rest = page;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK));
        parser.process(StrTendril::from(chunk));
        rest = after;
        let sink = &parser.tokenizer.sink.sink;
        if sink.parsed.borrow().elements.len() > ELEMENTS_MAX {
            let what = format!("more than {ELEMENTS_MAX} elements; the rest was not checked");
            sink.parse_error(what.into());
            sink.parsed.borrow_mut().is_cut = true;
            break;
        }
    }
    parser.finish()
}

/// Node: an element, or another one without a name.
type Node = Rc<Option<QualName>>;

/// Receiver of the parser's calls.
#[derive(Default)]
struct Sink {
    line: Cell<usize>,
    document: Node,
    parsed: RefCell<Parsed>,
}

impl TreeSink for Sink {
    type Handle = Node;
    type Output = Parsed;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Parsed {
        self.parsed.into_inner()
    }

    fn parse_error(&self, message: Cow<'static, str>) {
        let error = (self.line.get(), message.into_owned());
        self.parsed.borrow_mut().errors.push(error);
    }

    fn set_current_line(&self, line: u64) {
        self.line.set(usize::try_from(line).unwrap_or(usize::MAX));
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> Node {
        let value = |name: &str| {
            let mut found = attributes.iter();
            let found = found.find(|attribute| &*attribute.name.local == name);
            found.map(|attribute| attribute.value.to_string())
        };
        self.parsed.borrow_mut().elements.push(Element {
            line: self.line.get(),
            id: value("id").unwrap_or_default(),
            is_script_of_ours: value("data-prefix").is_some_and(|prefix| prefix == PREFIX),
        });
        Rc::new(Some(name))
    }

    fn elem_name<'a>(&'a self, node: &'a Node) -> ExpandedName<'a> {
        const NONE: ExpandedName<'static> = ExpandedName {
            ns: &ns!(),
            local: &local_name!(""),
        };
        Option::as_ref(node).map_or(NONE, QualName::expanded)
    }

    fn same_node(&self, one: &Node, other: &Node) -> bool {
        Rc::ptr_eq(one, other)
    }

    fn get_document(&self) -> Node {
        Rc::clone(&self.document)
    }

    fn get_template_contents(&self, _: &Node) -> Node {
        Node::default()
    }

    fn create_comment(&self, _: StrTendril) -> Node {
        Node::default()
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Node {
        Node::default()
    }

    fn append(&self, _: &Node, _: NodeOrText<Node>) {}

    fn append_based_on_parent_node(&self, _: &Node, _: &Node, _: NodeOrText<Node>) {}

    fn append_before_sibling(&self, _: &Node, _: NodeOrText<Node>) {}

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn add_attrs_if_missing(&self, _: &Node, _: Vec<Attribute>) {}

    fn remove_from_parent(&self, _: &Node) {}

    fn reparent_children(&self, _: &Node, _: &Node) {}

    fn set_quirks_mode(&self, _: QuirksMode) {}
}
