//! Values of a template's variables, computed only when the template names them.
//!
//! A page has dozens of variables and a template names a few of them, so a map of all of them for
//! every visitor would be waste.

use ramhorns::encoding::Encoder;
use ramhorns::traits::ContentSequence;
use ramhorns::{Content, Section, Template};

/// Values by name.
pub(crate) trait Fields {
    /// Type of a value.
    type Value<'v>: Content
    where
        Self: 'v;

    /// Returns the value of this name, if there is such a name.
    fn field(&self, name: &str) -> Option<Self::Value<'_>>;
}

/// Adapter of fields to the template engine.
pub(crate) struct ByName<F>(pub(crate) F);

/// Bytes of values for which a page has capacity before its buffer grows.
const VALUES_BYTES: usize = 1_024;

impl<F: Fields> ByName<F> {
    /// Writes the value of this name. Returns whether there is such a name.
    fn write_field<E>(
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
        self.write_field(name, |value| value.render_escaped(encoder))
    }

    fn render_field_unescaped<E: Encoder>(
        &self,
        _: u64,
        name: &str,
        encoder: &mut E,
    ) -> Result<bool, E::Error> {
        self.write_field(name, |value| value.render_unescaped(encoder))
    }

    fn render_field_section<C: ContentSequence, E: Encoder>(
        &self,
        _: u64,
        name: &str,
        section: Section<'_, C>,
        encoder: &mut E,
    ) -> Result<bool, E::Error> {
        self.write_field(name, |value| value.render_section(section, encoder))
    }

    fn render_field_inverse<C: ContentSequence, E: Encoder>(
        &self,
        _: u64,
        name: &str,
        section: Section<'_, C>,
        encoder: &mut E,
    ) -> Result<bool, E::Error> {
        self.write_field(name, |value| value.render_inverse(section, encoder))
    }
}

/// Writes a text with HTML's characters escaped, double quotes included. Most texts have none of
/// them, and the engine would test each character.
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
