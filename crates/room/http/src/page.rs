//! Waiting page, in the visitor's language.
//!
//! Turns the facts of a finished decision into words, and the words into a page, our own or the
//! operator's. Deliberately absent: decisions, HTTP, cookies, clocks, files. The caller has all
//! facts and sends the page.

mod custom;
mod fields;
mod grammar;
mod html;
#[cfg(test)]
pub(crate) mod samples;
mod shown;
pub mod states;
mod template;
mod texts;
mod time_words;
mod view;
pub(crate) mod words;

pub use custom::{BYTES_MAX as CUSTOM_PAGE_BYTES_MAX, CustomPage, Mistake};
pub(crate) use html::{
    Links, Paths, SCRIPT, STYLE, TURN_SCRIPT, accent_style, escaped, page, prepare, reload_secs,
};
pub use shown::{PreviewState, preview};
pub(crate) use template::{Page, Part};
pub(crate) use texts::Texts;
pub use view::{TurnView, WaitingView};
pub(crate) use words::{TurnWords, Words};
