//! What stands in a template's places, worked out when a place asks for it.
//!
//! A page has dozens of variables and a template names a few of them. Whoever makes a map of all of
//! them for every visitor pays for each.

use ramhorns::encoding::Encoder;
use ramhorns::traits::ContentSequence;
use ramhorns::{Content, Section, Template};

/// Values by name.
pub(crate) trait Fields {
    /// One of them.
    type Value<'v>: Content
    where
        Self: 'v;

    /// The value of this name, if there is such a name.
    fn field(&self, name: &str) -> Option<Self::Value<'_>>;
}

/// Fields as a template engine takes them.
pub(crate) struct ByName<F>(pub(crate) F);

/// Bytes that what stands in the places may take before the page is moved to a larger buffer.
const VALUES_BYTES: usize = 1_024;

impl<F: Fields> ByName<F> {
    /// Whether there is such a name; if so, its value has been written.
    fn put<E>(
        &self,
        name: &str,
        write: impl FnOnce(F::Value<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        match self.0.field(name) {
            Some(value) => write(value).map(|()| true),
            None => Ok(false),
        }
    }
}

impl<F: Fields> Content for ByName<F> {
    fn capacity_hint(&self, template: &Template<'_>) -> usize {
        template.capacity_hint() + VALUES_BYTES
    }

    fn render_field_escaped<E: Encoder>(
        &self,
        _: u64,
        name: &str,
        encoder: &mut E,
    ) -> Result<bool, E::Error> {
        self.put(name, |value| value.render_escaped(encoder))
    }

    fn render_field_unescaped<E: Encoder>(
        &self,
        _: u64,
        name: &str,
        encoder: &mut E,
    ) -> Result<bool, E::Error> {
        self.put(name, |value| value.render_unescaped(encoder))
    }

    fn render_field_section<C: ContentSequence, E: Encoder>(
        &self,
        _: u64,
        name: &str,
        section: Section<'_, C>,
        encoder: &mut E,
    ) -> Result<bool, E::Error> {
        self.put(name, |value| value.render_section(section, encoder))
    }

    fn render_field_inverse<C: ContentSequence, E: Encoder>(
        &self,
        _: u64,
        name: &str,
        section: Section<'_, C>,
        encoder: &mut E,
    ) -> Result<bool, E::Error> {
        self.put(name, |value| value.render_inverse(section, encoder))
    }
}

/// Writes a text with what HTML gives a meaning escaped; for attributes in double quotes, too. Most
/// texts have nothing to escape, and the engine would look at each of their characters.
pub(crate) fn write_text<E: Encoder>(text: &str, encoder: &mut E) -> Result<(), E::Error> {
    let bytes = text.as_bytes();
    let is_plain =
        memchr::memchr3(b'<', b'>', b'&', bytes).is_none() && memchr::memchr(b'"', bytes).is_none();
    if is_plain {
        encoder.write_unescaped(text)
    } else {
        encoder.write_escaped(text)
    }
}
