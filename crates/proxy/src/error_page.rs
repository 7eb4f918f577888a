//! Error pages of requests that end at the gateway.
//!
//! One small page per [`RequestError`], or JSON for clients that accept it. No scripts, no other
//! resources, no internals. The waiting page is not here.
//!
//! Pages for errors that visitors do not cause (502, 503, 504, 508) are in their language. The rest
//! is in English: mostly programs cause it.

mod texts;

use std::sync::LazyLock;

use anteroom_config::language::Language;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderValue, Response};

use crate::body::Body;
use crate::header_view::HeaderView;
use crate::language;
use crate::status::RequestError;
use texts::Texts;

/// Style of all our pages: colours, the card, headings and tags. The waiting page adds its own.
pub const STYLE: &str = include_str!("error_page/page.css");

/// Format of an error response.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Format {
    /// Page for people.
    #[default]
    Html,
    /// JSON for programs: `{"error": {"code": "...", "message": "..."}}`.
    Json,
}

impl Format {
    /// Chooses the format by the request's `Accept`: JSON only if it is named before (or without)
    /// HTML.
    ///
    /// Weights are ignored: browsers name HTML first, and programs that want JSON name nothing
    /// else.
    #[must_use]
    pub(crate) fn negotiated(headers: HeaderView<'_>) -> Self {
        Self::of(headers.text(&ACCEPT))
    }

    /// Chooses the format by the value of `Accept`.
    #[must_use]
    pub(crate) fn of(accept: Option<&str>) -> Self {
        let Some(accept) = accept else {
            return Self::Html;
        };
        for range in accept.split(',') {
            let kind = range.split(';').next().unwrap_or(range).trim();
            if kind.eq_ignore_ascii_case("text/html") {
                return Self::Html;
            }
            let is_json = kind
                .get(..12)
                .is_some_and(|start| start.eq_ignore_ascii_case("application/"))
                && kind.to_ascii_lowercase().ends_with("json");
            if is_json {
                return Self::Json;
            }
        }
        Self::Html
    }
}

/// Returns the error response for a request with these headers, in a suitable format and language.
#[must_use]
pub fn error_response<'a>(
    headers: impl Into<HeaderView<'a>>,
    refusal: RequestError,
) -> Response<Body> {
    error_response_or(headers, Language::English, refusal)
}

/// Returns the error response for a request with these headers, in the room's language if the
/// visitor prefers none of ours.
#[must_use]
pub fn error_response_or<'a>(
    headers: impl Into<HeaderView<'a>>,
    default: Language,
    refusal: RequestError,
) -> Response<Body> {
    let headers = headers.into();
    let language = language::of_headers(headers, default);
    response_in(language, refusal, Format::negotiated(headers))
}

/// Returns the error response in a language, or in English if the error has no texts in it. Bodies
/// are shared, not built.
#[must_use]
pub(crate) fn response_in(
    language: Language,
    refusal: RequestError,
    format: Format,
) -> Response<Body> {
    static ENGLISH: LazyLock<Vec<Bytes>> = LazyLock::new(|| all(html_in_english));
    static JSON: LazyLock<Vec<Bytes>> = LazyLock::new(|| all(json));
    let position = RequestError::ALL.iter().position(|each| *each == refusal);
    let of = |bodies: &[Bytes]| position.and_then(|at| bodies.get(at).cloned());
    let (body, kind) = match format {
        Format::Html => {
            let body = translated(refusal, language).or_else(|| of(&ENGLISH));
            (body, "text/html; charset=utf-8")
        }
        Format::Json => (of(&JSON), "application/json"),
    };
    let mut response = Response::new(Body::full(body.unwrap_or_default()));
    *response.status_mut() = refusal.status();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        VARY,
        HeaderValue::from_static("accept, accept-language, cookie"),
    );
    if let Some(secs) = refusal.retry_after_secs() {
        headers.insert(RETRY_AFTER, HeaderValue::from(secs));
    }
    response
}

fn all(write: fn(RequestError) -> String) -> Vec<Bytes> {
    let texts = RequestError::ALL.iter().map(|refusal| write(*refusal));
    texts.map(Bytes::from).collect()
}

/// Returns the page in a language; `None` if there are no texts for it.
fn translated(refusal: RequestError, language: Language) -> Option<Bytes> {
    static PAGES: LazyLock<Vec<(RequestError, Language, Bytes)>> = LazyLock::new(|| {
        let refusals = RequestError::ALL.into_iter();
        let each = refusals.flat_map(|refusal| Language::ALL.map(|language| (refusal, language)));
        let pages = each.filter_map(|(refusal, language)| {
            let (title, message) = words(refusal, language)?;
            let page = html(refusal, language, title, message);
            Some((refusal, language, Bytes::from(page)))
        });
        pages.collect()
    });
    let mut pages = PAGES.iter();
    let found = pages.find(|(of, language_of, _)| (*of, *language_of) == (refusal, language));
    found.map(|(_, _, page)| page.clone())
}

/// Returns title and message in a language.
fn words(refusal: RequestError, language: Language) -> Option<(&'static str, &'static str)> {
    let words = Texts::of(language);
    let title = match refusal {
        RequestError::BadGateway | RequestError::LoopDetected => words.unreachable,
        RequestError::GatewayTimeOut => words.slow,
        RequestError::Unavailable => words.unavailable,
        _ => return None,
    };
    Some((title, words.again))
}

fn html_in_english(refusal: RequestError) -> String {
    let (title, message) = (refusal.title(), refusal.message());
    html(refusal, Language::English, title, message)
}

/// Builds the page. The texts are ours and need no HTML escapes; a test checks this.
fn html(refusal: RequestError, language: Language, title: &str, message: &str) -> String {
    let status = refusal.status().as_u16();
    let tag = language.tag();
    let direction = if language.is_rtl() { "rtl" } else { "ltr" };
    format!(
        "<!doctype html>\n<html lang=\"{tag}\" dir=\"{direction}\">\n<head>\n\
         <meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}body{{padding-block:10vh}}\n</style>\n</head>\n\
         <body>\n<main>\n<p class=\"tag hold\">HTTP {status}</p>\n<h1>{title}</h1>\n\
         <p>{message}</p>\n</main>\n</body>\n</html>\n"
    )
}

fn json(refusal: RequestError) -> String {
    let (title, message) = (refusal.title(), refusal.message());
    let error = serde_json::json!({
        "error": { "code": refusal.code(), "message": format!("{title}. {message}") }
    });
    error.to_string()
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn json_is_for_clients_that_accept_it() {
        let check = |accept: &'static str, expected| {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(Format::negotiated((&headers).into()), expected, "{accept}");
        };
        check("application/json", Format::Json);
        check("Application/JSON;q=0.9, */*", Format::Json);
        check("application/problem+json", Format::Json);
        check(
            "text/html,application/xhtml+xml,application/json;q=0.9",
            Format::Html,
        );
        check("*/*", Format::Html);
        check("", Format::Html);
        check("applicatio", Format::Html);
        assert_eq!(Format::negotiated((&HeaderMap::new()).into()), Format::Html);
    }

    #[test]
    fn every_error_has_its_own_page() {
        for refusal in RequestError::ALL {
            assert!(refusal.status().is_client_error() || refusal.status().is_server_error());
            let page = html_in_english(refusal);
            for part in [
                "<html lang=\"en\" dir=\"ltr\">",
                "<title>",
                "<h1>",
                "color-scheme",
            ] {
                assert!(page.contains(part), "{refusal:?} lacks {part}");
            }
            assert!(
                !page.contains("http:") && !page.contains("src="),
                "{refusal:?}"
            );
            let text = format!("{}{}{}", refusal.title(), refusal.message(), refusal.code());
            assert!(!text.contains(['<', '&', '"']), "{text}");
            let error: serde_json::Value = serde_json::from_str(&json(refusal)).unwrap();
            assert_eq!(error["error"]["code"], refusal.code());
        }
    }

    #[test]
    fn errors_that_visitors_do_not_cause_are_in_their_language() {
        for refusal in [
            RequestError::BadGateway,
            RequestError::GatewayTimeOut,
            RequestError::LoopDetected,
            RequestError::Unavailable,
        ] {
            let title = refusal.title();
            let english = words(refusal, Language::English);
            assert_eq!(english.map(|(title, _)| title), Some(title), "{refusal:?}");
            for language in Language::ALL {
                let page = translated(refusal, language).expect("a page");
                let page = std::str::from_utf8(&page).expect("text");
                let tag = format!("<html lang=\"{}\"", language.tag());
                assert!(page.contains(&tag), "{page}");
                let is_english = language == Language::English;
                assert_eq!(page.contains(title), is_english, "{page}");
                let (title, message) = words(refusal, language).expect("texts");
                assert!(!title.contains(['<', '&']) && !message.contains(['<', '&']));
            }
        }
        let page = translated(RequestError::BadGateway, Language::Hebrew).expect("a page");
        assert!(
            std::str::from_utf8(&page)
                .expect("text")
                .contains("dir=\"rtl\"")
        );
        assert_eq!(translated(RequestError::NotFound, Language::German), None);
    }

    #[test]
    fn the_response_is_uncacheable_and_has_its_content_type() {
        let response = response_in(Language::English, RequestError::BadGateway, Format::Json);
        assert_eq!(response.status(), 502);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        assert!(http_body::Body::size_hint(response.body()).lower() > 0);
    }
}
