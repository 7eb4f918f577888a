//! Prose in the sources: pages, doc comments, and texts that programs print.
//!
//! `pulldown-cmark` parses Markdown, as mdBook does, and `syn` tokens of Rust. Code in prose counts
//! as one word.

use proc_macro2::{TokenStream, TokenTree};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::source::SourceFile;

/// Origin of a passage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// Page in Markdown.
    Page,
    /// First paragraph of a doc comment.
    Opening,
    /// Later paragraph of a doc comment.
    DocComment,
    /// String in Rust that is not in a test.
    Text,
}

/// Paragraph, item of a list, heading, cell of a table, or string.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Passage {
    pub(super) kind: Kind,
    /// Number of the first line, counted from 1.
    pub(super) line: usize,
    /// Words with one space between them; inline code is [`CODE`].
    pub(super) text: String,
}

/// Placeholder of inline code.
const CODE: &str = "`_`";

/// Fewest words of a string that is a sentence for people. Shorter ones are names and keys.
const TEXT_WORDS_MIN: usize = 4;

/// Returns the passages of a page or of a Rust file; none of any other file.
pub(super) fn passages(file: &SourceFile) -> Vec<Passage> {
    let lines: Vec<&str> = file.lines.iter().map(|line| line.text.as_str()).collect();
    let text = lines.join("\n");
    if file.has_extension(&["md"]) && !file.is_sample() {
        return markdown(&text, 1, Kind::Page);
    }
    // The compiler reports errors of syntax.
    let tokens = match text.parse() {
        Ok(tokens) if file.is_rust() => tokens,
        _ => return Vec::new(),
    };
    let mut rust = Rust {
        file,
        comment: None,
        passages: Vec::new(),
    };
    rust.read(tokens);
    rust.end_comment();
    rust.passages
}

/// Passages of Markdown that begins in `first_line`.
fn markdown(text: &str, first_line: usize, kind: Kind) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut open: Option<Passage> = None;
    let mut is_code = false;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    for (event, range) in events {
        let is_break = match &event {
            Event::Start(Tag::CodeBlock(_)) => {
                is_code = true;
                true
            }
            Event::End(TagEnd::CodeBlock) => {
                is_code = false;
                true
            }
            Event::Start(tag) => !is_inline(tag),
            Event::End(tag) => !is_inline_end(*tag),
            _ => false,
        };
        if is_break {
            passages.extend(open.take());
        }
        let words = match &event {
            Event::Text(words) if !is_code => words,
            Event::Code(_) => CODE,
            Event::SoftBreak | Event::HardBreak => " ",
            _ => continue,
        };
        let line = first_line + text[..range.start].matches('\n').count();
        let passage = open.get_or_insert(Passage {
            kind,
            line,
            text: String::new(),
        });
        passage.text.push_str(words);
    }
    passages.extend(open);
    passages
}

const fn is_inline(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. }
    )
}

const fn is_inline_end(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
    )
}

/// Reader of the tokens of a file.
struct Rust<'a> {
    file: &'a SourceFile,
    /// Doc comment that is being read.
    comment: Option<Comment>,
    passages: Vec<Passage>,
}

/// Doc comment with its position.
struct Comment {
    /// Number of its first line.
    line: usize,
    /// Whether it is about the item that encloses it (`//!`).
    is_inner: bool,
    text: String,
}

impl Rust<'_> {
    fn read(&mut self, tokens: TokenStream) {
        // Whether an attribute begins, and whether it belongs to the enclosing item.
        let (mut is_attribute, mut is_inner) = (false, false);
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    is_attribute = true;
                    continue;
                }
                TokenTree::Punct(punct) if is_attribute && punct.as_char() == '!' => {
                    is_inner = true;
                    continue;
                }
                TokenTree::Group(group) if is_attribute => {
                    let line = group.span().start().line;
                    match doc_line(group.stream()) {
                        Some(text) => self.add_comment(line, is_inner, &text),
                        None => self.read(group.stream()),
                    }
                }
                TokenTree::Group(group) => {
                    self.end_comment();
                    self.read(group.stream());
                    self.end_comment();
                }
                TokenTree::Literal(literal) => {
                    self.end_comment();
                    let line = literal.span().start().line;
                    if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                        self.add_text(line, &text.value());
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => self.end_comment(),
            }
            (is_attribute, is_inner) = (false, false);
        }
    }

    fn add_comment(&mut self, line: usize, is_inner: bool, text: &str) {
        let is_another = |comment: &Comment| comment.is_inner != is_inner;
        if self.comment.as_ref().is_some_and(is_another) {
            self.end_comment();
        }
        let comment = self.comment.get_or_insert(Comment {
            line,
            is_inner,
            text: String::new(),
        });
        comment.text.push_str(text);
        comment.text.push('\n');
    }

    fn end_comment(&mut self) {
        let Some(Comment { line, text, .. }) = self.comment.take() else {
            return;
        };
        let mut passages = markdown(&text, line, Kind::DocComment);
        if let Some(first) = passages.first_mut() {
            first.kind = Kind::Opening;
        }
        self.passages.extend(passages);
    }

    /// Adds the paragraphs of a string. An indented line shows code or a command. A line that
    /// begins with a small letter continues the previous one.
    fn add_text(&mut self, line: usize, text: &str) {
        let is_test = line
            .checked_sub(1)
            .and_then(|index| self.file.lines.get(index));
        if is_test.is_none_or(|line| line.is_test) {
            return;
        }
        let mut paragraphs: Vec<String> = Vec::new();
        let is_code = |line: &&str| line.starts_with("  ") || line.starts_with('|');
        for words in text.lines().filter(|line| !is_code(line)) {
            let is_continued = words.starts_with(|first: char| first.is_lowercase());
            match paragraphs.last_mut() {
                Some(last) if is_continued && !last.is_empty() => {
                    last.push(' ');
                    last.push_str(words);
                }
                _ => paragraphs.push(words.to_owned()),
            }
        }
        for paragraph in paragraphs {
            if paragraph.split_whitespace().count() >= TEXT_WORDS_MIN {
                self.passages.push(Passage {
                    kind: Kind::Text,
                    line,
                    text: paragraph,
                });
            }
        }
    }
}

/// Returns the text of `doc = "..."`, the compiler's form of a line of a doc comment.
fn doc_line(attribute: TokenStream) -> Option<String> {
    let mut tokens = attribute.into_iter();
    let is_doc = matches!(tokens.next()?, TokenTree::Ident(name) if name == "doc");
    let _equals = tokens.next()?;
    match tokens.next()? {
        TokenTree::Literal(literal) if is_doc => match syn::Lit::new(literal) {
            syn::Lit::Str(text) => {
                let text = text.value();
                Some(text.strip_prefix(' ').unwrap_or(&text).to_owned())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the sentences of a passage. A colon ends one if a new one follows.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    for (at, _) in text.match_indices(['.', '!', '?', ':']) {
        let end = at + 1;
        let rest = text[end..].trim_start_matches(['"', '”', ')', '*']);
        let Some(next) = rest.strip_prefix(char::is_whitespace) else {
            continue;
        };
        let next = next.trim_start().chars().next();
        if next.is_some_and(|first| !first.is_lowercase()) {
            sentences.push(text[begin..end].trim());
            begin = end;
        }
    }
    sentences.push(text[begin..].trim());
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> Vec<(Kind, usize, String)> {
        passages(&SourceFile::new(path, text))
            .into_iter()
            .map(|passage| (passage.kind, passage.line, passage.text))
            .collect()
    }

    #[test]
    fn a_page_is_read_without_its_code() {
        let page = "# Title\n\nRun `x` [now](a.md)\nand *wait*.\n\n- one\n- two\n\n\
                    ```\ncode\n```\n\n\
                    | a | b |\n|---|---|\n| c | d |\n";
        let page = texts("docs/a.md", page);
        let page: Vec<(usize, &str)> = page
            .iter()
            .map(|(_, n, text)| (*n, text.as_str()))
            .collect();
        assert_eq!(
            page,
            [
                (1, "Title"),
                (3, "Run `_` now and wait."),
                (6, "one"),
                (7, "two"),
                (13, "a"),
                (13, "b"),
                (15, "c"),
                (15, "d"),
            ]
        );
    }

    #[test]
    fn rust_is_read_by_its_doc_comments_and_texts() {
        let source = "//! Opens.\n//!\n//! Goes on.\n\n/// Says it.\n#[must_use]\n\
                      fn a() -> &'static str {\n    \"four words or more\"\n}\n\
                      const KEY: &str = \"a key\";\n\
                      #[cfg(test)]\nmod tests {\n    const A: &str = \"what a test \
                      says here\";\n}\n";
        let found = texts("crates/a/src/a.rs", source);
        assert_eq!(
            found,
            [
                (Kind::Opening, 1, "Opens.".to_owned()),
                (Kind::DocComment, 3, "Goes on.".to_owned()),
                (Kind::Opening, 5, "Says it.".to_owned()),
                (Kind::Text, 8, "four words or more".to_owned()),
            ]
        );
        assert_eq!(texts("crates/a/src/a.rs", "fn unclosed() {"), []);
    }

    #[test]
    fn a_printed_text_is_read_without_its_commands() {
        let source = "const A: &str = \"Opens a room and\\nwaits for it\\n  anteroom demo --a \
                      --b --c\\n\
                      Ends at once when told.\";";
        let found = texts("crates/a/src/a.rs", source);
        let found: Vec<&str> = found.iter().map(|(_, _, text)| text.as_str()).collect();
        assert_eq!(
            found,
            ["Opens a room and waits for it", "Ends at once when told."]
        );
    }

    #[test]
    fn sentences_end_at_their_marks_and_not_within_names() {
        let check = |text: &str, expected: &[&str]| assert_eq!(sentences(text), expected);
        check("One. Two! Three? Four", &["One.", "Two!", "Three?", "Four"]);
        check(
            "See a.md, e.g. this: that.",
            &["See a.md, e.g. this: that."],
        );
        check(
            "Two ways: First. (Then.) End",
            &["Two ways:", "First.", "(Then.", ") End"],
        );
    }
}
