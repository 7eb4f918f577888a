//! End of a wait by the visitor: the form of the page, and the page after it.
//!
//! The caller ends the wait and removes the cookie. The page's script leads all tabs to the page
//! after the end, by GET. That changes nothing.

use anteroom_config::language::Language;
use anteroom_proxy::header_view::HeaderView;
use bytes::Bytes;
use http::header::{HOST, ORIGIN};
use http::{HeaderName, Response, Uri};

use super::language_form::{field, redirect_back, safe_target};
use super::notice_page::{Notice, respond};
use crate::page::{Texts, escaped};

/// Path of the form, on every host that has a room.
pub(crate) const PATH: &str = "/.well-known/anteroom/leave";

/// Whether a form of this site sent the request. Another site must not end anybody's wait.
#[must_use]
pub(crate) fn is_of_this_site(headers: HeaderView<'_>, host: &str) -> bool {
    const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    if let Some(site) = headers.get(&SITE) {
        return site == b"same-origin";
    }
    // Browsers over plain HTTP send only this one.
    let authority = headers
        .text(&ORIGIN)
        .and_then(|origin| origin.parse::<Uri>().ok());
    let authority = authority.as_ref().and_then(Uri::authority);
    let typed = headers.text(&HOST);
    authority.is_some_and(|authority| {
        let is = |host: &str| authority.as_str().eq_ignore_ascii_case(host);
        is(host) || typed.is_some_and(is)
    })
}

/// Leads a visitor who still has a ticket back to the site.
#[must_use]
pub(crate) fn back(query: &str) -> Response<Bytes> {
    let back = field(query, "back").unwrap_or_default();
    redirect_back(&safe_target(&back))
}

/// Builds the page after the end: what happened, and a link to join again.
#[must_use]
pub(crate) fn left(query: &str, host: &str, language: Language) -> Response<Bytes> {
    let texts = Texts::of(language);
    let back = field(query, "back").unwrap_or_default();
    let back = safe_target(&back);
    let back = escaped(&back);
    let (tag, text, join) = (texts.tag_left, texts.left_text, texts.join);
    respond(&Notice {
        language,
        brand: host,
        heading: texts.heading_left,
        html: format!(
            "<p class=\"tag stop\">{tag}</p><p>{text}</p>\
             <a class=\"btn\" href=\"{back}\">{join}</a>"
        ),
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn only_a_form_of_the_same_site_ends_a_wait() {
        let check = |name: &'static str, value: &'static str, expected| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            let found = is_of_this_site((&headers).into(), "shop.example");
            assert_eq!(found, expected, "{name}: {value}");
        };
        check("sec-fetch-site", "same-origin", true);
        check("sec-fetch-site", "cross-site", false);
        check("sec-fetch-site", "same-site", false);
        check("origin", "https://shop.example", true);
        check("origin", "https://evil.example", false);
        check("origin", "null", false);
        assert!(!is_of_this_site((&HeaderMap::new()).into(), "shop.example"));
    }

    #[test]
    fn a_visitor_with_a_ticket_is_led_back_to_this_site_only() {
        let target = |query: &str| back(query).headers()["location"].clone();
        assert_eq!(target("back=%2Flamps%3Fa%3D1"), "/lamps?a=1");
        assert_eq!(target("back=%2F%2Fevil.example"), "/");
        assert_eq!(target(""), "/");
    }

    #[test]
    fn the_page_after_the_end_leads_back_to_this_site_only() {
        let page = |query: &str| {
            let response = left(query, "shop.example", Language::English);
            String::from_utf8(response.body().to_vec()).unwrap()
        };
        assert!(page("back=%2Flamps").contains("href=\"/lamps\""));
        assert!(page("back=%2F%2Fevil.example").contains("href=\"/\""));
        assert!(page("").contains("You left the line"));
    }
}
