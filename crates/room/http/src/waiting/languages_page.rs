//! Page with a link for each language. The links lead to `language_form`, which leads back.

use anteroom_config::language::Language;
use bytes::Bytes;
use http::Response;

use super::language_form::{PATH, encoded};
use super::notice_page::{Notice, respond};
use crate::page::{Texts, escaped};

/// Builds the page for a visitor of `room`, with the way back.
pub(super) fn page(room: &str, host: &str, chosen: Language, back: &str) -> Response<Bytes> {
    let back = encoded(back);
    let links = Language::ALL.map(|language| {
        let (tag, name) = (language.tag(), Texts::of(language).name);
        let href = format!("{PATH}?room={room}&to={tag}&back={back}");
        let href = escaped(&href);
        let current = if language == chosen {
            " aria-current=\"true\""
        } else {
            ""
        };
        format!("<a href=\"{href}\" lang=\"{tag}\" hreflang=\"{tag}\"{current}>{name}</a>")
    });
    let heading = Texts::of(chosen).label_language;
    respond(&Notice {
        language: chosen,
        brand: host,
        heading,
        html: format!("<nav aria-labelledby=\"heading\">{}</nav>", links.concat()),
    })
}
