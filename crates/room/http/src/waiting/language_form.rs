//! Choice of the language of the page: a page with links, and the redirect of each of them.
//!
//! The links lead here and back, so that they work without scripts. A cookie keeps the choice, and
//! the proxy reads it as well: [`anteroom_proxy::language`].

use std::borrow::Cow;

use anteroom_config::language::Language;
use anteroom_proxy::header_view::HeaderView;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION, REFERER};
use http::uri::PathAndQuery;
use http::{Response, StatusCode, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::languages_page;
use super::position_endpoint::{language_of, room_of};

/// Path of the page and of the choice.
pub(crate) const PATH: &str = "/.well-known/anteroom/language";

/// Lifetime of the cookie in seconds: longer than a sale, and not for ever.
pub(crate) const COOKIE_AGE_SECONDS: u64 = 30 * 86_400;

/// Longest target of a redirect in bytes. Pages name shorter ones; longer ones come from `Referer`.
const FOLLOWED_BYTES_MAX: usize = 4_096;

/// Target of a redirect without a valid one.
const FRONT: &str = "/";

/// Characters that end a text or a tag in a page. Browsers may leave them unencoded in an address;
/// encoded they mean the same.
const QUOTES: &AsciiSet = &AsciiSet::EMPTY
    .add(b'\'')
    .add(b'"')
    .add(b'`')
    .add(b'<')
    .add(b'>');

/// Fields of a form: the language, and the path of its page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Choice {
    /// Chosen language.
    pub(crate) language: Language,
    /// Path and query of the page, always on this site.
    pub(crate) back: String,
}

impl Choice {
    /// Reads the query of a form (without `?`). Without a path in it, `Referer` is used if its host
    /// is `host`, that of the request. Returns `None` without a language of ours.
    #[must_use]
    pub(crate) fn of(query: &str, headers: HeaderView<'_>, host: &str) -> Option<Self> {
        let language = Language::of_tag(&field(query, "to")?)?;
        let back = back_of(query, headers, host);
        Some(Self { language, back })
    }
}

/// Returns the way back to the page.
fn back_of(query: &str, headers: HeaderView<'_>, host: &str) -> String {
    let back = field(query, "back").filter(|back| !back.is_empty());
    let back = back.or_else(|| referer(headers, host));
    safe_target(back.as_deref().unwrap_or(FRONT)).into_owned()
}

/// Returns a field of a query (without `?`).
pub(super) fn field(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    decoded(value)
}

/// Encodes a value of a query.
pub(super) fn encoded(value: &str) -> String {
    utf8_percent_encode(value, NON_ALPHANUMERIC).to_string()
}

/// Returns the query that the links of a page of `room` share: the room, the language, and the way
/// back.
pub(super) fn query_of(room: &str, language: Language, back: &str) -> String {
    format!("room={room}&lang={}&back={}", language.tag(), encoded(back))
}

/// Builds the page with all languages; `None` if the query chooses one, or names no room.
#[must_use]
pub(crate) fn languages(
    query: &str,
    headers: HeaderView<'_>,
    host: &str,
    default: Language,
) -> Option<Response<Bytes>> {
    if field(query, "to").is_some() {
        return None;
    }
    let room = room_of(query)?;
    let language = language_of(query).unwrap_or(default);
    let back = back_of(query, headers, host);
    Some(languages_page::page(&room, host, language, &back))
}

/// Decodes a value of a form.
fn decoded(value: &str) -> Option<String> {
    let value = value.replace('+', " ");
    let value = percent_decode_str(&value).decode_utf8().ok()?;
    Some(value.into_owned())
}

/// Returns the path and query of the page that led here, if it is on this host.
pub(crate) fn referer(headers: HeaderView<'_>, host: &str) -> Option<String> {
    let from: Uri = headers.text(&REFERER)?.parse().ok()?;
    let is_here = from
        .authority()
        .is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host));
    let target = from.path_and_query().filter(|_| is_here);
    target.map(PathAndQuery::to_string)
}

/// Returns an untrusted path and query for use in a page and in a redirect. Characters that could
/// end a text in a page are encoded; a target on another site becomes `/`.
pub(super) fn safe_target(target: &str) -> Cow<'_, str> {
    let encoded = Cow::from(utf8_percent_encode(target, QUOTES));
    if is_on_this_site(&encoded) {
        encoded
    } else {
        FRONT.into()
    }
}

/// Whether a browser takes the target for a path of this site. `//host` and `/\host` lead to
/// another one, and browsers drop leading blanks and line ends.
fn is_on_this_site(back: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    back.len() <= FOLLOWED_BYTES_MAX
        && back.starts_with('/')
        && !back.starts_with("//")
        && back.bytes().all(is_plain)
}

/// Redirects the browser to a path of this site, by GET. The caller adds cookies.
#[must_use]
pub(crate) fn redirect_back(back: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let back = HeaderValue::from_str(back);
    let back = back.unwrap_or(HeaderValue::from_static(FRONT));
    response.headers_mut().insert(LOCATION, back);
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn headers(lines: &[(http::HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[track_caller]
    fn check_back(query: &str, referer: Option<&str>, expected: &str) {
        let lines = referer.map(|from| (REFERER, from));
        let choice = Choice::of(query, (&headers(lines.as_slice())).into(), "shop.example");
        assert_eq!(choice.unwrap().back, expected, "{query} {referer:?}");
    }

    #[test]
    fn the_redirect_leads_to_the_page_of_the_form() {
        check_back(
            "room=shop&back=%2Flamps%3Fa%3D1%2B2%26b&to=de",
            None,
            "/lamps?a=1+2&b",
        );
        check_back("to=de&back=%2F", Some("http://shop.example/other"), "/");
        let from = Some("https://shop.example/lamps?a=b");
        check_back("to=de", from, "/lamps?a=b");
        check_back("to=de", None, "/");
        check_back("to=de", Some("https://other.example/lamps"), "/");
    }

    #[test]
    fn no_form_redirects_to_another_site() {
        for back in [
            "%2F%2Fevil.example",
            "%2F%5Cevil.example",
            "https:%2F%2Fevil.example",
            "evil.example",
            "%2F%0d%0aLocation:x",
            "+%2Flamps",
            "%2F%09%2Fevil.example",
            "%2F%ff",
        ] {
            check_back(&format!("to=de&back={back}"), None, "/");
        }
        let long = "a".repeat(5_000);
        check_back(&format!("to=de&back=/{long}"), None, "/");
    }

    #[test]
    fn a_target_cannot_end_a_text_and_its_encoding_is_idempotent() {
        let check = |target: &str, expected: &str| {
            assert_eq!(safe_target(target), expected, "{target}");
            assert_eq!(safe_target(expected), expected, "twice");
        };
        check("/lamps?colour=red&b=%27", "/lamps?colour=red&b=%27");
        check("/o'neill?q=\"a\"", "/o%27neill?q=%22a%22");
        check("/</script>`", "/%3C/script%3E%60");
        check("/caf\u{e9}", "/caf%C3%A9");
        for invalid in [
            "//evil.example/",
            "/\\evil.example",
            "/a\\'b",
            "*",
            "",
            "/\t/x",
        ] {
            check(invalid, "/");
        }
        let from = Some("https://shop.example/o'neill");
        check_back("to=de", from, "/o%27neill");
        check_back("to=de&back=/o'neill", None, "/o%27neill");
    }

    #[test]
    fn a_query_without_a_known_language_is_no_choice() {
        for query in ["", "to=", "to=tlh", "back=%2F", "to=de%00"] {
            assert_eq!(
                Choice::of(query, (&HeaderMap::new()).into(), "a"),
                None,
                "{query}"
            );
        }
    }

    #[test]
    fn the_page_has_a_link_for_each_language_that_leads_back_with_the_fragment() {
        let query = "room=shop&lang=de&back=%2Flamps%3Fa%3D1%23third";
        let page = languages(
            query,
            (&HeaderMap::new()).into(),
            "shop.example",
            Language::English,
        );
        let page = String::from_utf8(page.unwrap().body().to_vec()).unwrap();
        assert_eq!(page.matches(" hreflang=").count(), 18);
        let link = "?room=shop&amp;to=fr&amp;back=%2Flamps%3Fa%3D1%23third\"";
        assert!(page.contains(link), "{page}");
        assert!(page.contains("<html lang=\"de\""));
        let chosen = format!("{query}&to=fr");
        assert!(languages(&chosen, (&HeaderMap::new()).into(), "a", Language::English).is_none());
        check_back(
            "to=fr&back=%2Flamps%3Fa%3D1%23third",
            None,
            "/lamps?a=1#third",
        );
    }

    #[test]
    fn the_response_is_a_redirect_that_is_not_cached() {
        let choice = Choice::of("to=de&back=%2Flamps", (&HeaderMap::new()).into(), "a").unwrap();
        let response = redirect_back(&choice.back);
        assert_eq!(response.status(), 303);
        assert_eq!(response.headers()[LOCATION], "/lamps");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    }
}
