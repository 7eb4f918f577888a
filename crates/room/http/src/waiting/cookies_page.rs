//! Page for browsers that keep no cookies: what to do, and the way back.
//!
//! The script of the waiting page leads here. The way back is a request like any other: if there is
//! room, it enters.

use anteroom_config::language::Language;
use bytes::Bytes;
use http::Response;
use http::header::{HeaderValue, REFRESH};

use super::language_form::{field, safe_target};
use super::notice_page::{Notice, respond};
use crate::page::{Texts, escaped};

/// Path of the page, on every host that has a room.
pub(crate) const PATH: &str = "/.well-known/anteroom/cookies";

/// Interval in seconds at which the page tries again by itself.
const AGAIN_SECS: u64 = 20;

/// Builds the page.
#[must_use]
pub(crate) fn page(query: &str, host: &str, language: Language) -> Response<Bytes> {
    let texts = Texts::of(language);
    let back = field(query, "back").unwrap_or_default();
    let back = safe_target(&back);
    let steps = [texts.cookies_1, texts.cookies_2, texts.cookies_3];
    let steps = steps.map(|step| format!("<li>{step}"));
    let mut response = respond(&Notice {
        language,
        brand: host,
        heading: texts.heading_cookies,
        html: format!(
            "<p class=\"tag hold\">{}</p><p>{}</p><ol>{}</ol>\
             <a id=\"go\" class=\"btn\" href=\"{}\">{}</a><p class=\"soft\">{}</p>",
            texts.tag_cookies,
            texts.cookies,
            steps.concat(),
            escaped(&back),
            texts.cookies_try,
            texts.cookies_other,
        ),
    });
    let refresh = HeaderValue::try_from(format!("{AGAIN_SECS};url={back}"));
    if let Ok(refresh) = refresh {
        response.headers_mut().insert(REFRESH, refresh);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_leads_back_to_this_site_only() {
        let check = |back: &str, expected: &str| {
            let response = page(&format!("back={back}"), "shop.example", Language::English);
            let refresh = format!("20;url={expected}");
            assert_eq!(response.headers()[REFRESH], refresh, "{back}");
            let text = String::from_utf8(response.body().to_vec()).unwrap();
            assert!(text.contains(&format!("href=\"{expected}\"")), "{text}");
        };
        check("%2Flamps", "/lamps");
        check("%2F%2Fevil.example", "/");
        check("%2F%3Ca%3E%22", "/%3Ca%3E%22");
    }
}
