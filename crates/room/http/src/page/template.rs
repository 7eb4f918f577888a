//! Template of a page, whose constant parts are compressed once.
//!
//! Most bytes of a page are the same for all visitors: style, script, texts. The page of a visitor
//! knows where they are, so a packed page is put together from parts.

use std::io::{self, Write};
use std::sync::OnceLock;

use flate2::{Compress, Compression, FlushCompress};
use ramhorns::{Content, Template};
use smallvec::SmallVec;

/// Least size of a constant part that is compressed on its own, in bytes. Each ends with an empty
/// block of five bytes, and cannot refer to what came before it.
const CONSTANT_BYTES_MIN: usize = 256;

/// Bytes that blocks need beside their text.
const BLOCK_HEADERS_BYTES: usize = 64;

/// Template with its constant parts.
pub(crate) struct PageTemplate {
    template: Template<'static>,
    /// Constant parts in the order of the source.
    constants: Vec<Constant>,
}

/// Constant part of a template.
pub(crate) struct Constant {
    /// Place in the source, in bytes.
    start: usize,
    bytes: usize,
    /// Blocks of a deflate stream, made for the first page that needs them.
    deflated: OnceLock<Box<[u8]>>,
}

impl PageTemplate {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub(crate) fn new(source: String) -> Result<Self, ramhorns::Error> {
        // The engine leaves out blanks at the end.
        let constants = constants(source.trim_end());
        let template = Template::new(source)?;
        Ok(Self {
            template,
            constants,
        })
    }

    /// Returns the source.
    pub(crate) fn source(&self) -> &str {
        self.template.source()
    }

    /// Fills in the values of one visitor.
    pub(crate) fn render(&self, content: &impl Content) -> Page<'_> {
        let all: usize = self.constants.iter().map(|constant| constant.bytes).sum();
        let capacity = content.capacity_hint(&self.template).saturating_sub(all);
        let mut page = Page {
            template: self,
            own: Vec::with_capacity(capacity),
            constants: SmallVec::new(),
        };
        self.template
            .render_to_writer(&mut page, content)
            .expect("a page takes every text");
        page
    }

    /// Returns the number of the constant that `part` is. The engine writes a constant from where
    /// it is in the source.
    fn constant_of(&self, part: &[u8]) -> Option<usize> {
        let source = self.source().as_ptr().addr();
        let start = part.as_ptr().addr().checked_sub(source)?;
        let at = self
            .constants
            .binary_search_by_key(&start, |constant| constant.start);
        let at = at.ok()?;
        (self.constants[at].bytes == part.len()).then_some(at)
    }

    fn text_of(&self, constant: &Constant) -> &[u8] {
        &self.source().as_bytes()[constant.start..constant.start + constant.bytes]
    }
}

/// Returns a text as blocks of a deflate stream that end at a byte. None of them is the last one.
fn deflated(mut text: &[u8]) -> Box<[u8]> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut out = Vec::new();
    loop {
        out.reserve(text.len() + BLOCK_HEADERS_BYTES);
        let before = compress.total_in();
        let status = compress.compress_vec(text, &mut out, FlushCompress::Sync);
        status.expect("a compressor that has not ended takes every input");
        let taken = usize::try_from(compress.total_in() - before).unwrap_or(text.len());
        text = &text[taken..];
        // With room left, everything is out.
        if text.is_empty() && out.len() < out.capacity() {
            return out.into();
        }
    }
}

/// Returns the texts between tags that are worth it.
fn constants(source: &str) -> Vec<Constant> {
    let mut constants = Vec::new();
    let mut start = 0;
    while start < source.len() {
        let rest = &source[start..];
        let bytes = rest.find("{{").unwrap_or(rest.len());
        if bytes >= CONSTANT_BYTES_MIN {
            constants.push(Constant {
                start,
                bytes,
                deflated: OnceLock::new(),
            });
        }
        let tag = rest[bytes..].find("}}").unwrap_or(rest.len() - bytes);
        start += bytes + tag;
        // Tags without escaping end with three of them.
        start += source[start..].bytes().take_while(|b| *b == b'}').count();
    }
    constants
}

/// Page of one visitor: HTML in UTF-8.
pub(crate) struct Page<'t> {
    template: &'t PageTemplate,
    /// Texts of this visitor, without the constants between them.
    own: Vec<u8>,
    /// Constants: their places in `own`, and their numbers.
    constants: SmallVec<[(usize, usize); 8]>,
}

/// Part of a page.
#[derive(Clone, Copy)]
pub(crate) enum Part<'p> {
    /// Text of this visitor.
    Own(&'p [u8]),
    /// Constant text, and the same as blocks of a deflate stream. They end at a byte and need no
    /// text before.
    Constant(&'p [u8], &'p [u8]),
}

impl Page<'_> {
    /// Returns the size of the page in bytes.
    pub(crate) fn len(&self) -> usize {
        let constants = self.constants.iter();
        let constants = constants.map(|(_, number)| self.template.constants[*number].bytes);
        self.own.len() + constants.sum::<usize>()
    }

    /// Returns the text of the page.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        if self.constants.is_empty() {
            return self.own;
        }
        let mut text = Vec::with_capacity(self.len());
        let mut after = 0;
        for (at, number) in &self.constants {
            text.extend_from_slice(&self.own[after..*at]);
            text.extend_from_slice(self.template.text_of(&self.template.constants[*number]));
            after = *at;
        }
        text.extend_from_slice(&self.own[after..]);
        text
    }

    /// Returns the text of the page.
    pub(crate) fn into_text(self) -> String {
        String::from_utf8(self.into_bytes()).expect("template and values are texts")
    }

    /// Returns the parts of the page, in their order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut after = 0;
        let ends = self.constants.iter().map(Some).chain([None]);
        ends.flat_map(move |constant| {
            let at = constant.map_or(self.own.len(), |(at, _)| *at);
            let own = Part::Own(&self.own[after..at]);
            after = at;
            let constant = constant.map(|(_, number)| {
                let constant = &self.template.constants[*number];
                let text = self.template.text_of(constant);
                Part::Constant(text, constant.deflated.get_or_init(|| deflated(text)))
            });
            [Some(own), constant].into_iter().flatten()
        })
    }
}

impl Write for Page<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let may_be = part.len() >= CONSTANT_BYTES_MIN;
        let constant = may_be.then(|| self.template.constant_of(part));
        match constant.flatten() {
            Some(number) => self.constants.push((self.own.len(), number)),
            None => self.own.extend_from_slice(part),
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::fields::{ByName, Fields};

    struct Name(&'static str);

    impl Fields for Name {
        type Value<'v> = &'static str;

        fn field(&self, name: &str) -> Option<&'static str> {
            (name == "name").then_some(self.0)
        }
    }

    fn lengths(page: &Page<'_>) -> Vec<(bool, usize)> {
        let parts = page.parts().map(|part| match part {
            Part::Own(text) => (true, text.len()),
            Part::Constant(_, deflated) => (false, deflated.len()),
        });
        parts.collect()
    }

    #[test]
    fn long_texts_between_tags_are_compressed_once() {
        let (long, longer) = ("a".repeat(600), "b".repeat(5_000));
        let source = format!("{long}{{{{name}}}}short{{{{{{name}}}}}}{longer}{{{{! no text }}}}");
        let template = PageTemplate::new(source).unwrap();
        let page = template.render(&ByName(Name("<x>")));
        let lengths = lengths(&page);
        assert_eq!(lengths.len(), 5, "{lengths:?}");
        assert_eq!(
            [lengths[0], lengths[2], lengths[4]],
            [(true, 0), (true, 17), (true, 0)]
        );
        assert!(lengths[1].1 < 30 && lengths[3].1 < 40, "{lengths:?}");
        let expected = format!("{long}&lt;x&gt;short<x>{longer}");
        assert_eq!(page.len(), expected.len());
        let again = template.render(&ByName(Name("y")));
        let places = |page: &Page<'_>| {
            let parts = page.parts().filter_map(|part| match part {
                Part::Own(_) => None,
                Part::Constant(_, deflated) => Some(deflated.as_ptr().addr()),
            });
            parts.collect::<Vec<_>>()
        };
        assert_eq!(places(&page), places(&again));
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn a_value_that_looks_like_a_constant_is_none() {
        let text: &'static str = "a".repeat(600).leak();
        let template = PageTemplate::new(format!("{text}{{{{name}}}}")).unwrap();
        let page = template.render(&ByName(Name(text)));
        let lengths = lengths(&page);
        assert_eq!(lengths[2], (true, 600), "{lengths:?}");
    }

    #[test]
    fn a_hidden_constant_is_not_in_the_page() {
        let source = format!("{{{{^name}}}}{}{{{{/name}}}}.", "a".repeat(600));
        let template = PageTemplate::new(source).unwrap();
        let page = template.render(&ByName(Name("y")));
        assert_eq!(lengths(&page), [(true, 1)]);
        assert_eq!(page.into_text(), ".");
    }
}
