//! Choice of a visitor's language.
//!
//! A choice on a page is stored in its own cookie, which the origin never sees. Without one, the
//! browser's `Accept-Language` decides, then a default. The pages make the choice.

mod accept;

use anteroom_config::language::Language;
use http::header::ACCEPT_LANGUAGE;

use crate::cookies;
use crate::header_view::HeaderView;
use accept::language_of;

/// Name of the cookie with the choice. No room's cookie has a dot in its name, and this prefix is
/// hidden from the origin.
pub const COOKIE: &str = "__anteroom_.lang";

/// Returns the language for the sender of these headers.
#[must_use]
pub fn of_headers<'a>(headers: impl Into<HeaderView<'a>>, default: Language) -> Language {
    let headers = headers.into();
    // Browsers send one line; of several the first one counts.
    choose(chosen(headers), headers.text(&ACCEPT_LANGUAGE)).unwrap_or(default)
}

/// Returns the language that was chosen in a page's form.
#[must_use]
pub fn chosen<'a>(headers: impl Into<HeaderView<'a>>) -> Option<Language> {
    let values = cookies::values(headers, COOKIE);
    values.iter().find_map(|tag| Language::of_tag(tag))
}

/// Returns a choice, or else a supported language of `Accept-Language`.
#[must_use]
pub(crate) fn choose(chosen: Option<Language>, accept_language: Option<&str>) -> Option<Language> {
    chosen.or_else(|| language_of(accept_language?))
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE as COOKIE_HEADER;
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn headers(lines: &[(http::HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_choice_beats_a_preference_and_a_preference_the_default() {
        let check = |lines: &[(http::HeaderName, &str)], expected| {
            let found = of_headers(&headers(lines), Language::Dutch);
            assert_eq!(found, expected, "{lines:?}");
        };
        check(&[], Language::Dutch);
        check(&[(ACCEPT_LANGUAGE, "fi,de;q=0.5")], Language::German);
        check(&[(ACCEPT_LANGUAGE, "fi")], Language::Dutch);
        let chosen = (COOKIE_HEADER, "a=b; __anteroom_.lang=pl");
        check(&[(ACCEPT_LANGUAGE, "de"), chosen], Language::Polish);
        let odd = (COOKIE_HEADER, "__anteroom_.lang=tlh");
        check(&[(ACCEPT_LANGUAGE, "de"), odd], Language::German);
    }
}
