//! What can the sender of this request make use of: a page, JSON, or only a refusal?
//!
//! Decided from the request head alone. Whether there is a slot, and what the answer says, is not
//! known here. The body of a request is never looked at.

use http::header::{ACCEPT, CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderName, Method};

/// What the browser wants to do with the answer; sent by every current browser, by nobody else.
pub(super) const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// What a request without a slot gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestKind {
    /// Somebody looks at a screen: the waiting page.
    Page,
    /// Somebody looks at a screen and has just sent a form: the waiting page, which says that
    /// nothing was passed on.
    PageAfterPost,
    /// A program reads something: JSON with the room's queueing status.
    Json,
    /// A program wants to change something or to open a channel (script POST, WebSocket, gRPC,
    /// preflight): 429 with JSON, so that nobody takes the answer for success.
    Refused,
}

impl RequestKind {
    /// Sorts a request by its method and headers.
    ///
    /// `json_enabled` is the room's `json_response_enabled`: a GET whose `Accept` is exactly
    /// `application/json` gets JSON even where the browser says that it navigates.
    #[must_use]
    pub fn of(method: &Method, headers: &HeaderMap, json_enabled: bool) -> Self {
        if asks_for_another_protocol(headers) {
            return Self::Refused;
        }
        let reads = method == Method::GET || method == Method::HEAD;
        if reads && json_enabled && accepts_exactly_json(headers) {
            return Self::Json;
        }
        match (reads, navigation(headers)) {
            (true, Navigation::Yes | Navigation::Html) => Self::Page,
            (true, Navigation::No) => Self::Json,
            (false, Navigation::Yes) if method == Method::POST => Self::PageAfterPost,
            (false, _) => Self::Refused,
        }
    }
}

/// Whether the answer will be shown in a window.
enum Navigation {
    /// The browser says so, or it is too old to say and accepts HTML.
    Yes,
    /// A script that accepts HTML. Reading, it may well show it, so it gets the page; writing, it
    /// is a program, and the page's status could pass for success.
    Html,
    No,
}

fn navigation(headers: &HeaderMap) -> Navigation {
    let accepts_html = accepts_html(headers);
    match headers.get(SEC_FETCH_DEST).map(|dest| dest.as_bytes()) {
        Some(b"document" | b"iframe" | b"frame") => Navigation::Yes,
        None if accepts_html => Navigation::Yes,
        Some(_) if accepts_html => Navigation::Html,
        _ => Navigation::No,
    }
}

/// A switch to WebSocket or the like. `h2c` is only an offer that RFC 9110 (section 7.8) lets a
/// server ignore, and some HTTP clients make it with every plain GET.
fn asks_for_another_protocol(headers: &HeaderMap) -> bool {
    let wants_upgrade = tokens(headers, &CONNECTION).any(|t| t.eq_ignore_ascii_case(b"upgrade"));
    wants_upgrade && tokens(headers, &UPGRADE).any(|t| !t.eq_ignore_ascii_case(b"h2c"))
}

fn accepts_exactly_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter();
    let only = values.next();
    only.is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"application/json"))
        && values.next().is_none()
}

fn accepts_html(headers: &HeaderMap) -> bool {
    tokens(headers, &ACCEPT).any(|range| {
        let mut parts = range.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let media = parts.next().unwrap_or_default();
        media.eq_ignore_ascii_case(b"text/html") && !parts.any(is_weight_zero)
    })
}

/// `q=0`, `q=0.0` and so on: "anything but this" (RFC 9110, section 12.4.2).
fn is_weight_zero(parameter: &[u8]) -> bool {
    let (Some(b'q' | b'Q'), Some(b'=')) = (parameter.first(), parameter.get(1)) else {
        return false;
    };
    let weight = &parameter[2..];
    !weight.is_empty() && weight.iter().all(|&b| b == b'0' || b == b'.')
}

/// The members of a comma-separated header, over all its lines. Bytes, not text: what is not
/// ASCII must not hide the rest of the line.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&b| b == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    fn kind(method: &str, headers: &[(&'static str, &str)], json_enabled: bool) -> RequestKind {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        RequestKind::of(&method.parse().unwrap(), &map, json_enabled)
    }

    #[track_caller]
    fn check(method: &str, headers: &[(&'static str, &str)], expected: RequestKind) {
        for json_enabled in [false, true] {
            let found = kind(method, headers, json_enabled);
            assert_eq!(found, expected, "{method} {headers:?} json={json_enabled}");
        }
    }

    #[test]
    fn somebody_who_looks_at_a_screen_gets_the_page() {
        use RequestKind::{Page, PageAfterPost};
        check("GET", &[("sec-fetch-dest", "document")], Page);
        check("GET", &[("sec-fetch-dest", "iframe")], Page);
        check("HEAD", &[("sec-fetch-dest", "document")], Page);
        check("GET", &[("accept", BROWSER)], Page);
        check("GET", &[("accept", "TEXT/HTML")], Page);
        check(
            "GET",
            &[("accept", "image/png"), ("accept", "text/html")],
            Page,
        );
        check(
            "GET",
            &[
                ("sec-fetch-dest", "empty"),
                ("accept", "text/html, */*;q=0.01"),
            ],
            Page,
        );
        check(
            "POST",
            &[("sec-fetch-dest", "document"), ("accept", BROWSER)],
            PageAfterPost,
        );
        check("POST", &[("accept", BROWSER)], PageAfterPost);
    }

    #[test]
    fn a_program_that_reads_gets_json() {
        use RequestKind::Json;
        check("GET", &[], Json);
        check("HEAD", &[], Json);
        check("GET", &[("accept", "*/*")], Json);
        check("GET", &[("accept", "application/json")], Json);
        check("GET", &[("accept", "text/html;q=0, */*")], Json);
        check("GET", &[("accept", "text/html; level=1 ; q=0.000")], Json);
        check("GET", &[("accept", "text/htmlx")], Json);
        check("GET", &[("accept", "text/event-stream")], Json);
        check(
            "GET",
            &[("sec-fetch-dest", "image"), ("accept", "image/avif,*/*")],
            Json,
        );
        check(
            "GET",
            &[("sec-fetch-dest", "empty"), ("accept", "*/*")],
            Json,
        );
        check(
            "GET",
            &[
                ("connection", "Upgrade, HTTP2-Settings"),
                ("upgrade", "h2c"),
            ],
            Json,
        );
        check("GET", &[("upgrade", "websocket")], Json);
    }

    #[test]
    fn a_program_that_writes_or_opens_a_channel_is_refused() {
        use RequestKind::Refused;
        check("POST", &[], Refused);
        check("POST", &[("accept", "application/json")], Refused);
        check(
            "POST",
            &[("sec-fetch-dest", "empty"), ("accept", BROWSER)],
            Refused,
        );
        check(
            "POST",
            &[("content-type", "application/grpc"), ("te", "trailers")],
            Refused,
        );
        check("PUT", &[("accept", BROWSER)], Refused);
        check("DELETE", &[("sec-fetch-dest", "document")], Refused);
        check("OPTIONS", &[("accept", "*/*")], Refused);
        check("BREW", &[], Refused);
        let socket = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
        ];
        check("GET", &socket, Refused);
        check("GET", &[socket[0], socket[1], ("accept", BROWSER)], Refused);
    }

    #[test]
    fn exactly_json_beats_a_navigation_only_where_the_room_says_so() {
        let exact = [
            ("sec-fetch-dest", "document"),
            ("accept", "application/json"),
        ];
        assert_eq!(kind("GET", &exact, false), RequestKind::Page);
        assert_eq!(kind("GET", &exact, true), RequestKind::Json);
        let longer = [("accept", "application/json, text/html")];
        assert_eq!(kind("GET", &longer, true), RequestKind::Page);
        assert_eq!(kind("POST", &exact, true), RequestKind::PageAfterPost);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_the_rest_of_a_header() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(b"\xff\xfe;q=\x80, text/html;q=").unwrap();
        headers.insert(ACCEPT, value);
        assert_eq!(
            RequestKind::of(&Method::GET, &headers, true),
            RequestKind::Page
        );
    }
}
