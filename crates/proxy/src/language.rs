//! In which language is somebody answered?
//!
//! A choice made in a page is kept in a cookie of its own, which the origin never sees; without one
//! the browser's wishes count, then a default. How a choice is made is up to the page.

mod accept;

use anteroom_config::language::Language;
use http::HeaderMap;
use http::header::{ACCEPT_LANGUAGE, HeaderValue};

use crate::cookies;
use accept::language_of;

/// The cookie of a choice. No room's cookie has a dot in its name; and what begins like this is
/// kept from the origin.
pub const COOKIE: &str = "__anteroom_.lang";

/// The language for whoever sent these headers.
#[must_use]
pub fn of_headers(headers: &HeaderMap, default: Language) -> Language {
    // Browsers send one line; of several the first one speaks.
    of_wishes(chosen(headers), headers.get(ACCEPT_LANGUAGE)).unwrap_or(default)
}

/// The language that was chosen in a page's form.
#[must_use]
pub fn chosen(headers: &HeaderMap) -> Option<Language> {
    let values = cookies::values(headers, COOKIE);
    values.iter().find_map(|tag| Language::of_tag(tag))
}

/// A choice, or else what `Accept-Language` wishes for, if that is one of ours.
#[must_use]
pub(crate) fn of_wishes(
    chosen: Option<Language>,
    wishes: Option<&HeaderValue>,
) -> Option<Language> {
    chosen.or_else(|| language_of(wishes?.to_str().ok()?))
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE as COOKIE_HEADER;

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
