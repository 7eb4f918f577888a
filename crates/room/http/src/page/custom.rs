//! Page of an operator: a Mustache template with the variables that templates of hosted waiting
//! rooms know, and ours.
//!
//! The template is checked when the configuration is read, and each mistake has its line. An
//! unknown variable is a mistake as well: it would be an empty spot on the night of the sale.

mod preview;
mod scan;
mod script;
mod variables;

use std::sync::Arc;

use crate::page::fields::ByName;
use crate::page::html::Links;
use crate::page::template::{Page, PageTemplate};
use crate::page::view::WaitingView;
pub use scan::Mistake;
use variables::Variables;

/// Largest template in bytes, the same as in hosted waiting rooms. Each waiting visitor gets it
/// whole.
pub const BYTES_MAX: usize = 1_048_576;

/// Most mistakes of a template that are reported. More of them usually have one cause.
const MISTAKES_MAX: usize = 20;

/// Checked template.
#[derive(Clone)]
pub struct CustomPage {
    template: Arc<PageTemplate>,
    has_script: bool,
}

impl std::fmt::Debug for CustomPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CustomPage({} bytes)", self.template.source().len())
    }
}

impl CustomPage {
    /// Parses and checks a template.
    ///
    /// # Errors
    ///
    /// Every [`Mistake`] in it, in the order of its lines.
    pub fn new(source: &str) -> Result<Self, Vec<Mistake>> {
        if source.len() > BYTES_MAX {
            let message = format!("{} bytes, at most {BYTES_MAX} are allowed", source.len());
            return Err(vec![Mistake { line: 1, message }]);
        }
        let mistakes = scan::mistakes(source);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Self::parsed(source).map_err(|mistake| vec![mistake])
    }

    /// Parses a template whose tags are checked.
    fn parsed(source: &str) -> Result<Self, Mistake> {
        let template = PageTemplate::new(scan::with_marked_scripts(source));
        let template = template.map_err(|error| Mistake {
            line: 1,
            message: error.to_string(),
        })?;
        Ok(Self {
            template: Arc::new(template),
            has_script: scan::has_script(source),
        })
    }

    /// Whether the page has our script, which polls and reloads by itself.
    #[must_use]
    pub(crate) const fn has_script(&self) -> bool {
        self.has_script
    }

    /// Returns what is odd in the pages of a template without mistakes, state by state.
    #[must_use]
    pub fn remarks(source: &str) -> Vec<Mistake> {
        preview::remarks(source)
    }

    /// Returns all mistakes of a template.
    #[must_use]
    pub fn mistakes(source: &str) -> Vec<Mistake> {
        Self::new(source).err().unwrap_or_default()
    }

    /// Renders the page of one visitor.
    #[must_use]
    pub(crate) fn page(
        &self,
        view: &WaitingView<'_>,
        links: Links<'_>,
        after_post: bool,
    ) -> Page<'_> {
        let variables = Variables::new(view, links, after_post);
        self.template.render(&ByName(variables))
    }
}

#[cfg(test)]
mod tests;
