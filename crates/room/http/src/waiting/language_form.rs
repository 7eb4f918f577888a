//! How does a visitor choose the language of the page?
//!
//! The form of the page leads here and back, so that it works without scripts. The choice is kept
//! in a cookie that the proxy reads, too: [`anteroom_proxy::language`].

use std::borrow::Cow;

use anteroom_config::language::Language;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION, REFERER};
use http::uri::PathAndQuery;
use http::{HeaderMap, Response, StatusCode, Uri};
use percent_encoding::{AsciiSet, percent_decode_str, utf8_percent_encode};

/// Where the page's form goes.
pub(crate) const PATH: &str = "/.well-known/anteroom/language";

/// How long a choice is remembered: beyond the sale, and not for ever.
pub(crate) const COOKIE_AGE_SECONDS: u64 = 30 * 86_400;

/// Longest way back that is followed. Pages name shorter ones; a longer one comes from browsers
/// that say where they were.
const FOLLOWED_BYTES_MAX: usize = 4_096;

/// Where a way leads that is none.
const FRONT: &str = "/";

/// What ends a text or a tag in a page. Browsers may leave it as it is in an address; it names the
/// same when it is encoded.
const QUOTES: &AsciiSet = &AsciiSet::EMPTY
    .add(b'\'')
    .add(b'"')
    .add(b'`')
    .add(b'<')
    .add(b'>');

/// What a form says: which language, and where its page was.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Choice {
    /// The language.
    pub(crate) language: Language,
    /// Path and query of the page; on this site, whatever stood in the form.
    pub(crate) back: String,
}

impl Choice {
    /// Reads the query of a form (without `?`). Where it does not say where the page was, the
    /// browser may: `host` is the one that was asked. `None` if it names no language of ours.
    #[must_use]
    pub(crate) fn of(query: &str, headers: &HeaderMap, host: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .and_then(|(_, value)| decoded(value))
        };
        let language = Language::of_tag(&field("to")?)?;
        let back = field("back").or_else(|| referer(headers, host));
        let back = way_back(back.as_deref().unwrap_or(FRONT)).into_owned();
        Some(Self { language, back })
    }
}

/// A value of a form, as browsers write it.
fn decoded(value: &str) -> Option<String> {
    let value = value.replace('+', " ");
    let value = percent_decode_str(&value).decode_utf8().ok()?;
    Some(value.into_owned())
}

fn referer(headers: &HeaderMap, host: &str) -> Option<String> {
    let from: Uri = headers.get(REFERER)?.to_str().ok()?.parse().ok()?;
    let is_here = from
        .authority()
        .is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host));
    let target = from.path_and_query().filter(|_| is_here);
    target.map(PathAndQuery::to_string)
}

/// The way back to a path and query that a stranger named: the same without a character that could
/// end a text in a page, or `/` where it would lead to another site.
pub(super) fn way_back(target: &str) -> Cow<'_, str> {
    let encoded = Cow::from(utf8_percent_encode(target, QUOTES));
    if is_on_this_site(&encoded) {
        encoded
    } else {
        FRONT.into()
    }
}

/// Whether a browser takes it for a path here: `//host` and `/\host` lead elsewhere, and a blank or
/// a line end would be dropped in front of what then begins otherwise.
fn is_on_this_site(back: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    back.len() <= FOLLOWED_BYTES_MAX
        && back.starts_with('/')
        && !back.starts_with("//")
        && back.bytes().all(is_plain)
}

/// Sends the browser back to where the form was, by GET. The caller adds the cookie.
#[must_use]
pub(crate) fn go_back(choice: &Choice) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let back = HeaderValue::from_str(&choice.back);
    let back = back.unwrap_or(HeaderValue::from_static(FRONT));
    answer.headers_mut().insert(LOCATION, back);
    let no_store = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(CACHE_CONTROL, no_store);
    answer
}

#[cfg(test)]
mod tests {
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
        let choice = Choice::of(query, &headers(lines.as_slice()), "shop.example");
        assert_eq!(choice.unwrap().back, expected, "{query} {referer:?}");
    }

    #[test]
    fn the_way_back_is_the_page_that_the_form_was_on() {
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
    fn no_form_leads_to_another_site() {
        for back in [
            "%2F%2Fevil.example",
            "%2F%5Cevil.example",
            "https:%2F%2Fevil.example",
            "evil.example",
            "%2F%0d%0aLocation:x",
            "+%2Flamps",
            "%2F%09%2Fevil.example",
            "%2F%ff",
            "",
        ] {
            check_back(&format!("to=de&back={back}"), None, "/");
        }
        let long = "a".repeat(5_000);
        check_back(&format!("to=de&back=/{long}"), None, "/");
    }

    #[test]
    fn no_return_address_ends_its_text_and_encoding_keeps_the_way() {
        let check = |target: &str, expected: &str| {
            assert_eq!(way_back(target), expected, "{target}");
            assert_eq!(way_back(expected), expected, "twice");
        };
        check("/lamps?colour=red&b=%27", "/lamps?colour=red&b=%27");
        check("/o'neill?q=\"a\"", "/o%27neill?q=%22a%22");
        check("/</script>`", "/%3C/script%3E%60");
        check("/caf\u{e9}", "/caf%C3%A9");
        for elsewhere in [
            "//evil.example/",
            "/\\evil.example",
            "/a\\'b",
            "*",
            "",
            "/\t/x",
        ] {
            check(elsewhere, "/");
        }
        let from = Some("https://shop.example/o'neill");
        check_back("to=de", from, "/o%27neill");
        check_back("to=de&back=/o'neill", None, "/o%27neill");
    }

    #[test]
    fn without_a_language_of_ours_there_is_no_choice() {
        for query in ["", "to=", "to=tlh", "back=%2F", "to=de%00"] {
            assert_eq!(Choice::of(query, &HeaderMap::new(), "a"), None, "{query}");
        }
    }

    #[test]
    fn the_answer_is_a_way_back_that_nobody_keeps() {
        let choice = Choice::of("to=de&back=%2Flamps", &HeaderMap::new(), "a").unwrap();
        let answer = go_back(&choice);
        assert_eq!(answer.status(), 303);
        assert_eq!(answer.headers()[LOCATION], "/lamps");
        assert_eq!(answer.headers()[CACHE_CONTROL], "no-store");
    }
}
