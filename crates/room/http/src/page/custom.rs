//! Page of an operator: a Mustache template with the variables that templates of hosted waiting
//! rooms know, and ours.
//!
//! The template is checked when the configuration is read, and each mistake has its line. An
//! unknown variable is a mistake as well: it would be an empty spot on the night of the sale.

mod scan;
mod variables;

use std::sync::Arc;

use ramhorns::Template;

use crate::page::fields::ByName;
use crate::page::html::Links;
use crate::page::view::WaitingView;
pub use scan::Mistake;
use variables::Variables;

/// Largest template in bytes, the same as in hosted waiting rooms. Each waiting visitor gets it
/// whole.
pub const BYTES_MAX: usize = 1_048_576;

/// Checked template.
#[derive(Clone)]
pub struct CustomPage {
    template: Arc<Template<'static>>,
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
        let template = Template::new(source.to_owned()).map_err(|error| {
            let message = error.to_string();
            vec![Mistake { line: 1, message }]
        })?;
        Ok(Self {
            template: Arc::new(template),
        })
    }

    /// Returns all mistakes of a template.
    #[must_use]
    pub fn mistakes(source: &str) -> Vec<Mistake> {
        Self::new(source).err().unwrap_or_default()
    }

    /// Renders the page of one visitor.
    #[must_use]
    pub(crate) fn html(
        &self,
        view: &WaitingView<'_>,
        links: Links<'_>,
        after_post: bool,
    ) -> String {
        let variables = Variables::new(view, links, after_post);
        self.template.render(&ByName(variables))
    }
}

#[cfg(test)]
mod tests;
