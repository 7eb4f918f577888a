//! Headers that the layer adds and removes: of requests to the origin, and of responses with a
//! ticket.

use anteroom_config::language::Language;
use anteroom_node::Pass;
use anteroom_room::origin::OriginOutcome as CoreOutcome;
use anteroom_room::room::request_flow::LOSS_RECENT;
use anteroom_room::time::DurationMs;
use http::Response;
use http::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};

use super::route_table::RoomRoute;
use crate::waiting::{WaitingView, language_form};
use anteroom_proxy::cookies::{self, Attributes};
use anteroom_proxy::forwarded::Scheme;
use anteroom_proxy::language;
use anteroom_proxy::reverse_proxy::OriginOutcome;

const ROOM: HeaderName = HeaderName::from_static("anteroom-room");
const VISITOR: HeaderName = HeaderName::from_static("anteroom-visitor");
const SEAT_ENDS: HeaderName = HeaderName::from_static("anteroom-seat-ends");
const ACCEPTED_AT: HeaderName = HeaderName::from_static("anteroom-accepted-at");
const VERDICT: HeaderName = HeaderName::from_static("anteroom-verdict");
const COMMANDS: [HeaderName; 2] = [
    HeaderName::from_static("anteroom-command"),
    HeaderName::from_static("cf-waiting-room-command"),
];

/// Time for which a browser keeps a ticket beyond its end, which is in the ticket itself. A visitor
/// who comes back with an ended one learns what it lost.
const COOKIE_SLACK: DurationMs = LOSS_RECENT;

/// Adds the visitor's headers for the origin. Copies from the client were removed before.
pub(super) fn add_visitor(route: &RoomRoute, pass: &Pass, headers: &mut HeaderMap) {
    visitor_headers(route, pass, |name, value| {
        // The name of the room is shared, and not copied.
        let value = if name == ROOM {
            Ok(route.name.clone())
        } else {
            HeaderValue::from_bytes(value)
        };
        if let Ok(value) = value {
            headers.insert(name, value);
        }
    });
}

/// Calls `put` for each header about the visitor.
pub(super) fn visitor_headers(
    route: &RoomRoute,
    pass: &Pass,
    mut put: impl FnMut(HeaderName, &[u8]),
) {
    let mut digits = itoa::Buffer::new();
    put(ROOM, route.name.as_bytes());
    put(VISITOR, &hex(&pass.ticket.visitor.0));
    put(SEAT_ENDS, digits.format(pass.seat_ends_at.0).as_bytes());
    if let Some(at) = pass.ticket.accepted_at {
        put(ACCEPTED_AT, digits.format(at.0).as_bytes());
    }
}

/// Adds the new ticket to the origin's response, obeys its commands, and reports its outcome.
pub(super) async fn finish<R>(
    route: &RoomRoute,
    pass: &Pass,
    scheme: Scheme,
    mut response: Response<R>,
) -> Response<R> {
    if let Some(outcome) = response.extensions().get::<OriginOutcome>() {
        note_outcome(route, *outcome);
    }
    let is_revoked = take_commands(response.headers_mut()) && route.config.origin_commands.revoke;
    if is_revoked {
        route.room.revoke(pass.ticket).await;
        let attributes = Attributes::of(&route.config.cookie, is_https(scheme), 0);
        let cookie = cookies::delete_cookie(&route.cookie_name, &attributes);
        response.headers_mut().append(SET_COOKIE, cookie);
        make_private(response.headers_mut());
        return response;
    }
    add_ticket(route, pass, scheme, response)
}

/// Reports the outcome of a request at its origin.
pub(super) fn note_outcome(route: &RoomRoute, outcome: OriginOutcome) {
    route.counters.count_outcome(outcome);
    // While health checks say that no origin is healthy, they outweigh single requests.
    if !route.upstream.group.is_down() {
        route.room.handle_origin_outcome(core_outcome(outcome));
    }
}

/// Adds the new ticket, if there is one, to a response, and keeps that out of shared caches.
pub(super) fn add_ticket<R>(
    route: &RoomRoute,
    pass: &Pass,
    scheme: Scheme,
    mut response: Response<R>,
) -> Response<R> {
    if let Some(ticket) = &pass.new_ticket {
        let max_age = pass.seat_ends_at.since(route.room.now()) + COOKIE_SLACK;
        set_ticket(route, response.headers_mut(), ticket, max_age, scheme);
        make_private(response.headers_mut());
    }
    response
}

/// Adds the cookie of a ticket.
fn set_ticket(
    route: &RoomRoute,
    headers: &mut HeaderMap,
    ticket: &str,
    max_age: DurationMs,
    scheme: Scheme,
) {
    let attributes = Attributes::of(&route.config.cookie, is_https(scheme), max_age.secs_ceil());
    headers.append(
        SET_COOKIE,
        cookies::set_cookie(&route.cookie_name, ticket, &attributes),
    );
}

/// Adds the cookie of the chosen language.
pub(super) fn set_language(
    route: &RoomRoute,
    headers: &mut HeaderMap,
    chosen: Language,
    scheme: Scheme,
) {
    let age = language_form::COOKIE_AGE_SECONDS;
    let attributes = Attributes::of(&route.config.cookie, is_https(scheme), age);
    let cookie = cookies::set_cookie(language::COOKIE, chosen.tag(), &attributes);
    headers.append(SET_COOKIE, cookie);
}

/// Adds the reason of waiting, and the new ticket if there is one.
pub(super) fn add_waiting<R>(
    route: &RoomRoute,
    mut response: Response<R>,
    ticket: Option<String>,
    scheme: Scheme,
    view: &WaitingView<'_>,
) -> Response<R> {
    mark_waiting(response.headers_mut(), view.reason());
    add_waiting_ticket(route, &mut response, ticket, scheme, view);
    response
}

/// Adds the new ticket of a waiting visitor, if there is one.
pub(super) fn add_waiting_ticket<R>(
    route: &RoomRoute,
    response: &mut Response<R>,
    ticket: Option<String>,
    scheme: Scheme,
    view: &WaitingView<'_>,
) {
    if let Some(ticket) = ticket {
        let max_age = view.position_grace + COOKIE_SLACK;
        set_ticket(route, response.headers_mut(), &ticket, max_age, scheme);
    }
}

/// Makes the browser forget its ticket.
pub(super) fn forget_ticket<R>(route: &RoomRoute, response: &mut Response<R>, scheme: Scheme) {
    let attributes = Attributes::of(&route.config.cookie, is_https(scheme), 0);
    let cookie = cookies::delete_cookie(&route.cookie_name, &attributes);
    response.headers_mut().append(SET_COOKIE, cookie);
}

/// Marks a response as the gateway's own, for programs and for readers of network logs.
fn mark_waiting(headers: &mut HeaderMap, reason: &'static str) {
    headers.insert(VERDICT, HeaderValue::from_static("queue"));
    const REASON: HeaderName = HeaderName::from_static("anteroom-reason");
    headers.insert(REASON, HeaderValue::from_static(reason));
}

/// Removes command headers. Returns whether one of them was `revoke`.
pub(super) fn take_commands(headers: &mut HeaderMap) -> bool {
    let mut is_revoke = false;
    for name in &COMMANDS {
        while let Some(value) = headers.remove(name) {
            is_revoke |= value
                .as_bytes()
                .trim_ascii()
                .eq_ignore_ascii_case(b"revoke");
        }
    }
    is_revoke
}

/// Headers that override `Cache-Control` for one kind of cache (RFC 9213).
const TARGETED: [HeaderName; 5] = [
    HeaderName::from_static("cdn-cache-control"),
    HeaderName::from_static("cloudflare-cdn-cache-control"),
    HeaderName::from_static("edge-control"),
    HeaderName::from_static("surrogate-control"),
    HeaderName::from_static("x-accel-expires"),
];

/// Keeps a response out of shared caches. Browsers may still cache it.
fn make_private(headers: &mut HeaderMap) {
    for name in &TARGETED {
        headers.remove(name);
    }
    let mut kept: Vec<&str> = Vec::new();
    for line in headers.get_all(CACHE_CONTROL) {
        let Ok(line) = line.to_str() else { continue };
        if line.contains('"') {
            // Quoted field names may contain commas. The strictest reading needs no parser.
            kept.push("no-cache");
            continue;
        }
        let directives = line.split(',').map(str::trim);
        kept.extend(directives.filter(|directive| {
            let name = directive.split('=').next().unwrap_or_default().trim();
            !["", "public", "private", "s-maxage", "proxy-revalidate"]
                .iter()
                .any(|dropped| name.eq_ignore_ascii_case(dropped))
        }));
    }
    kept.insert(0, "private");
    if let Ok(value) = HeaderValue::from_str(&kept.join(", ")) {
        headers.insert(CACHE_CONTROL, value);
    }
}

fn core_outcome(outcome: OriginOutcome) -> CoreOutcome {
    match outcome {
        OriginOutcome::Answered(status) if status.is_server_error() => CoreOutcome::ServerError,
        OriginOutcome::Answered(_) => CoreOutcome::Good,
        OriginOutcome::ConnectFailed
        | OriginOutcome::TimedOut
        | OriginOutcome::Broken
        | OriginOutcome::Abandoned => CoreOutcome::Unreachable,
    }
}

const fn is_https(scheme: Scheme) -> bool {
    matches!(scheme, Scheme::Https)
}

fn hex(bytes: &[u8; 16]) -> [u8; 32] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 32];
    for (at, byte) in bytes.iter().enumerate() {
        text[at * 2] = DIGITS[usize::from(byte >> 4)];
        text[at * 2 + 1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_with_a_ticket_stays_out_of_shared_caches() {
        let check = |lines: &[&'static str], expected: &str| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(CACHE_CONTROL, HeaderValue::from_static(line));
            }
            make_private(&mut headers);
            let all: Vec<_> = headers.get_all(CACHE_CONTROL).iter().collect();
            assert_eq!(all, [expected]);
        };
        check(&[], "private");
        check(&["public, max-age=60"], "private, max-age=60");
        check(&["Public", "S-MaxAge=9, no-store"], "private, no-store");
        check(&["private=\"x, y\", max-age=9"], "private, no-cache");
    }

    #[test]
    fn headers_for_single_caches_are_removed() {
        let mut headers = HeaderMap::new();
        headers.insert("cdn-cache-control", HeaderValue::from_static("max-age=600"));
        headers.insert("surrogate-control", HeaderValue::from_static("max-age=600"));
        make_private(&mut headers);
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn commands_are_removed_and_only_revoke_is_obeyed() {
        let check = |name: &'static str, value: &'static str, expected| {
            let mut headers = HeaderMap::new();
            headers.append(name, HeaderValue::from_static(value));
            assert_eq!(take_commands(&mut headers), expected, "{name}: {value}");
            assert!(headers.is_empty());
        };
        check("anteroom-command", "revoke", true);
        check("cf-waiting-room-command", " Revoke ", true);
        check("anteroom-command", "admit", false);
    }

    #[test]
    fn a_visitors_id_is_32_hex_digits() {
        let id = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0xfe, 0xff];
        assert_eq!(&hex(&id), b"000102030405060708090a0b0c0dfeff");
    }
}
