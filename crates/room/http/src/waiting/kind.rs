//! Kind of a request: whether its sender can use a page, JSON, or only a status.
//!
//! The head of the request alone decides; its body is never read. Slots and the content of the
//! response are not known here.

use anteroom_proxy::header_view::HeaderView;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, UPGRADE};
use http::{HeaderName, Method};

/// Use that a browser makes of the response. Only browsers send it, over HTTPS or to localhost.
pub(super) const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const SEC_PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
const PURPOSE: HeaderName = HeaderName::from_static("purpose");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Kind of response that a request without a slot gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestKind {
    /// A navigation: waiting page.
    Page,
    /// A navigation that sent a form: waiting page with a notice that nothing was forwarded.
    PageAfterPost,
    /// A request for exactly JSON where the room offers it: JSON with the status of the page, as
    /// clients of hosted waiting rooms expect.
    Json,
    /// A script that accepts HTML and may show it: waiting page, with a status that it cannot take
    /// for success.
    ScriptPage,
    /// A program that reads, writes or opens a channel (`fetch`, an app, WebSocket, gRPC,
    /// preflight): JSON, with a status that it cannot take for success.
    Data,
    /// A part of a page (an image, a script, a font): no body, and a status that the browser cannot
    /// take for success.
    Asset,
}

impl RequestKind {
    /// Sorts a request by its method and headers: by `Sec-Fetch-Mode` and `Sec-Fetch-Dest` where
    /// the browser sends them, by `Accept` otherwise.
    ///
    /// `json_enabled` is the room's `json_response_enabled`: a GET whose `Accept` is exactly
    /// `application/json` gets JSON even where the browser says that it navigates.
    #[must_use]
    pub fn of<'a>(method: &Method, headers: impl Into<HeaderView<'a>>, json_enabled: bool) -> Self {
        let headers = headers.into();
        if wants_another_protocol(headers) {
            return Self::Data;
        }
        let reads = method == Method::GET || method == Method::HEAD;
        if reads && json_enabled && accepts_exactly_json(headers) {
            return Self::Json;
        }
        let is_html = accepts(headers, b"text/html");
        // Old browsers, and browsers over plain HTTP, do not send `Sec-Fetch-Mode`.
        let is_navigation = navigates(headers).unwrap_or(is_html);
        match (reads, is_navigation) {
            (true, true) => Self::Page,
            (false, true) if method == Method::POST => Self::PageAfterPost,
            (false, _) => Self::Data,
            (true, false) if is_html => Self::ScriptPage,
            (true, false) if is_asset(headers) => Self::Asset,
            (true, false) => Self::Data,
        }
    }

    /// Whether the response is the waiting page.
    #[must_use]
    pub(crate) const fn is_page(self) -> bool {
        matches!(self, Self::Page | Self::PageAfterPost | Self::ScriptPage)
    }

    /// Whether a window shows the response to this request now. A script that gets a page throws it
    /// away, HEAD has none, and a page that was fetched in advance may never be shown.
    #[must_use]
    pub(crate) fn is_shown(self, method: &Method, headers: HeaderView<'_>) -> bool {
        let is_in_advance = || {
            let purposes = [SEC_PURPOSE, PURPOSE].map(|name| headers.get(&name));
            let is_prefetch = |value: &[u8]| value.starts_with(b"prefetch");
            purposes.into_iter().flatten().any(is_prefetch)
        };
        matches!(self, Self::Page | Self::PageAfterPost)
            && *method != Method::HEAD
            && !is_in_advance()
    }

    /// Whether the response has the status of the waiting page: a window shows it, or a program
    /// that reads the body gets it.
    #[must_use]
    pub(crate) const fn has_queueing_status(self) -> bool {
        matches!(self, Self::Page | Self::PageAfterPost | Self::Json)
    }
}

/// Whether a window shows the response; `None` if the browser does not say.
///
/// The mode comes first: a service worker that forwards a navigation keeps the mode, but not the
/// destination.
fn navigates(headers: HeaderView<'_>) -> Option<bool> {
    if let Some(mode) = headers.get(&SEC_FETCH_MODE) {
        return Some(mode == b"navigate");
    }
    let destination = headers.get(&SEC_FETCH_DEST)?;
    Some(matches!(destination, b"document" | b"iframe" | b"frame"))
}

/// Whether the browser loads a part of a page, so that the body of an error is never shown.
fn is_asset(headers: HeaderView<'_>) -> bool {
    if accepts(headers, b"application/json") {
        return false;
    }
    match headers.get(&SEC_FETCH_DEST) {
        Some(destination) => destination != b"empty",
        None => tokens(headers, &ACCEPT).any(|range| range.starts_with(b"image/")),
    }
}

/// Whether the client wants to switch to WebSocket or the like. `h2c` does not count: servers may
/// ignore it (RFC 9110, section 7.8), and some HTTP clients send it with every plain GET.
fn wants_another_protocol(headers: HeaderView<'_>) -> bool {
    let wants_upgrade = tokens(headers, &CONNECTION).any(|t| t.eq_ignore_ascii_case(b"upgrade"));
    wants_upgrade && tokens(headers, &UPGRADE).any(|t| !t.eq_ignore_ascii_case(b"h2c"))
}

fn accepts_exactly_json(headers: HeaderView<'_>) -> bool {
    let mut values = headers.get_all(&ACCEPT);
    let only = values.next();
    only.is_some_and(|v| v.eq_ignore_ascii_case(b"application/json")) && values.next().is_none()
}

/// Whether the client can read gzip. A proxy on the way that can only forward it has said so too.
#[must_use]
pub(crate) fn accepts_gzip(headers: HeaderView<'_>) -> bool {
    names(headers, &ACCEPT_ENCODING, b"gzip")
}

/// Whether `Accept` names this media type.
fn accepts(headers: HeaderView<'_>, wanted: &[u8]) -> bool {
    names(headers, &ACCEPT, wanted)
}

/// Whether a header names this value, and not with the weight 0.
fn names(headers: HeaderView<'_>, header: &HeaderName, wanted: &[u8]) -> bool {
    tokens(headers, header).any(|range| {
        let mut parts = range.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let media = parts.next().unwrap_or_default();
        media.eq_ignore_ascii_case(wanted) && !parts.any(is_weight_zero)
    })
}

/// Whether a parameter is `q=0`, `q=0.0` and so on: "anything but this" (RFC 9110, section 12.4.2).
fn is_weight_zero(parameter: &[u8]) -> bool {
    let (Some(b'q' | b'Q'), Some(b'=')) = (parameter.first(), parameter.get(1)) else {
        return false;
    };
    let weight = &parameter[2..];
    !weight.is_empty() && weight.iter().all(|&b| b == b'0' || b == b'.')
}

/// Returns the members of a comma-separated header, over all its lines. They are bytes and not
/// text, because a member that is not ASCII must not hide the rest of the line.
fn tokens<'a>(headers: HeaderView<'a>, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers
        .get_all(name)
        .flat_map(|value| value.split(|&b| b == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

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
    fn a_navigation_gets_the_page() {
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
        check("GET", &[("sec-fetch-mode", "navigate")], Page);
        check(
            "POST",
            &[("sec-fetch-dest", "document"), ("accept", BROWSER)],
            PageAfterPost,
        );
        check("POST", &[("accept", BROWSER)], PageAfterPost);
    }

    #[test]
    fn a_navigation_through_a_service_worker_gets_the_page() {
        let forwarded = [
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "empty"),
            ("accept", BROWSER),
        ];
        check("GET", &forwarded, RequestKind::Page);
        check("POST", &forwarded, RequestKind::PageAfterPost);
    }

    #[test]
    fn a_script_that_accepts_html_gets_the_page_but_not_its_status() {
        let accept = ("accept", "text/html, */*;q=0.01");
        let empty = ("sec-fetch-dest", "empty");
        check("GET", &[empty, accept], RequestKind::ScriptPage);
        let mode = ("sec-fetch-mode", "cors");
        check("GET", &[mode, empty, accept], RequestKind::ScriptPage);
        check("GET", &[mode, accept], RequestKind::ScriptPage);
        for kind in [RequestKind::ScriptPage, RequestKind::Page] {
            assert!(kind.is_page());
        }
        assert!(!RequestKind::ScriptPage.has_queueing_status());
    }

    #[test]
    fn a_page_is_shown_only_in_a_window() {
        let is_shown = |method: &str, name: &'static str, value: &'static str| {
            let method = method.parse().unwrap();
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(BROWSER));
            headers.insert(name, HeaderValue::from_static(value));
            RequestKind::of(&method, &headers, true).is_shown(&method, (&headers).into())
        };
        assert!(is_shown("GET", "sec-fetch-mode", "navigate"));
        assert!(is_shown("POST", "sec-fetch-mode", "navigate"));
        assert!(!is_shown("HEAD", "sec-fetch-mode", "navigate"));
        assert!(!is_shown("GET", "sec-fetch-mode", "cors"));
        assert!(!is_shown("GET", "sec-purpose", "prefetch;prerender"));
        assert!(!is_shown("GET", "purpose", "prefetch"));
    }

    #[test]
    fn a_part_of_a_page_gets_a_status_without_a_body() {
        use RequestKind::{Asset, Data};
        for destination in ["image", "script", "style", "font", "video", "worker"] {
            let headers = [("sec-fetch-dest", destination), ("accept", "*/*")];
            check("GET", &headers, Asset);
            let mode = ("sec-fetch-mode", "no-cors");
            check("GET", &[mode, headers[0], headers[1]], Asset);
        }
        check("HEAD", &[("sec-fetch-dest", "image")], Asset);
        check(
            "GET",
            &[("accept", "image/avif,image/webp,*/*;q=0.8")],
            Asset,
        );
        // A client that names JSON gets it, whatever the destination.
        let module = [
            ("sec-fetch-dest", "json"),
            ("accept", "application/json,*/*;q=0.5"),
        ];
        check("GET", &module, Data);
        check("POST", &[("sec-fetch-dest", "image")], Data);
    }

    #[test]
    fn a_program_that_reads_gets_json() {
        use RequestKind::Data;
        check("GET", &[], Data);
        check("HEAD", &[], Data);
        check("GET", &[("accept", "*/*")], Data);
        check(
            "GET",
            &[("accept", "application/json, text/plain, */*")],
            Data,
        );
        check("GET", &[("accept", "text/html;q=0, */*")], Data);
        check("GET", &[("accept", "text/html; level=1 ; q=0.000")], Data);
        check("GET", &[("accept", "text/htmlx")], Data);
        check("GET", &[("accept", "text/event-stream")], Data);
        check(
            "GET",
            &[("sec-fetch-dest", "empty"), ("accept", "*/*")],
            Data,
        );
        check(
            "GET",
            &[
                ("connection", "Upgrade, HTTP2-Settings"),
                ("upgrade", "h2c"),
            ],
            Data,
        );
        check("GET", &[("upgrade", "websocket")], Data);
    }

    #[test]
    fn a_program_that_writes_or_opens_a_channel_gets_json() {
        use RequestKind::Data;
        check("POST", &[], Data);
        check("POST", &[("accept", "application/json")], Data);
        check(
            "POST",
            &[("sec-fetch-dest", "empty"), ("accept", BROWSER)],
            Data,
        );
        check(
            "POST",
            &[("content-type", "application/grpc"), ("te", "trailers")],
            Data,
        );
        check("PUT", &[("accept", BROWSER)], Data);
        check("DELETE", &[("sec-fetch-dest", "document")], Data);
        check("OPTIONS", &[("accept", "*/*")], Data);
        check("BREW", &[], Data);
        let socket = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
        ];
        check("GET", &socket, Data);
        check("GET", &[socket[0], socket[1], ("accept", BROWSER)], Data);
    }

    #[test]
    fn exactly_json_beats_a_navigation_only_if_the_room_enables_it() {
        let exact = [
            ("sec-fetch-dest", "document"),
            ("accept", "application/json"),
        ];
        assert_eq!(kind("GET", &exact, false), RequestKind::Page);
        assert_eq!(kind("GET", &exact, true), RequestKind::Json);
        assert_eq!(kind("GET", &exact[1..], false), RequestKind::Data);
        assert_eq!(kind("GET", &exact[1..], true), RequestKind::Json);
        let longer = [("accept", "application/json, text/html")];
        assert_eq!(kind("GET", &longer, true), RequestKind::Page);
        assert_eq!(kind("POST", &exact, true), RequestKind::PageAfterPost);
    }

    #[test]
    fn gzip_is_sent_only_to_clients_that_name_it() {
        let check = |value: &'static str, expected| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(accepts_gzip((&headers).into()), expected, "{value}");
        };
        check("gzip, deflate, br, zstd", true);
        check("br;q=1.0, GZIP;q=0.8", true);
        check("identity", false);
        check("gzip;q=0", false);
        check("xgzip", false);
        assert!(!accepts_gzip((&HeaderMap::new()).into()));
    }

    #[test]
    fn invalid_bytes_do_not_hide_the_rest_of_a_header() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(b"\xff\xfe;q=\x80, text/html;q=").unwrap();
        headers.insert(ACCEPT, value);
        assert_eq!(
            RequestKind::of(&Method::GET, &headers, true),
            RequestKind::Page
        );
    }
}
