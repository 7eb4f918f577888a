//! Reader of the headers that the gateway sends to the origin with each request.
//!
//! The origin must be reachable only through the gateway. This module cannot distinguish a forged
//! header from a true one.

use anteroom_room::id::VisitorId;
use anteroom_room::time::Timestamp;
use http::{HeaderMap, HeaderName};

use super::ON_THE_WAY_MAX;

/// The visitor, as 32 hex digits.
pub const VISITOR: HeaderName = HeaderName::from_static("anteroom-visitor");
/// End of the visitor's seat, in Unix milliseconds.
pub const SEAT_ENDS: HeaderName = HeaderName::from_static("anteroom-seat-ends");
/// Time of the admission, in Unix milliseconds; it lies in the minute whose limit it used.
pub const ACCEPTED_AT: HeaderName = HeaderName::from_static("anteroom-accepted-at");
/// The room that the visitor was admitted to.
pub const ROOM: HeaderName = HeaderName::from_static("anteroom-room");

/// One request of an admitted visitor, as the gateway describes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OriginRequest {
    /// The visitor.
    pub visitor: VisitorId,
    /// End of the visitor's seat.
    pub seat_ends_at: Timestamp,
    /// Time of the visitor's admission.
    pub accepted_at: Timestamp,
}

impl OriginRequest {
    /// Reads the headers; `None` unless each is there exactly once and well formed, and the room is
    /// `room`.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap, room: &str) -> Option<Self> {
        if the_only(headers, &ROOM)? != room {
            return None;
        }
        Some(Self {
            visitor: parse_visitor(the_only(headers, &VISITOR)?)?,
            seat_ends_at: parse_millis(the_only(headers, &SEAT_ENDS)?)?,
            accepted_at: parse_millis(the_only(headers, &ACCEPTED_AT)?)?,
        })
    }

    /// Whether it is late if the visitor sent it at `sent_at`.
    #[must_use]
    pub fn is_late(&self, sent_at: Timestamp) -> bool {
        sent_at.since(self.seat_ends_at) > ON_THE_WAY_MAX
    }
}

/// Returns the value of a header that is there exactly once.
pub(crate) fn the_only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok()
}

fn parse_visitor(text: &str) -> Option<VisitorId> {
    // `from_str_radix` would also accept a sign.
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = u128::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
    Some(VisitorId(bits.to_be_bytes()))
}

/// Reads a time in Unix milliseconds.
pub(crate) fn parse_millis(text: &str) -> Option<Timestamp> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "000102030405060708090a0b0c0d0e0f";

    fn headers(lines: &[(&HeaderName, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|&(name, value)| (name.clone(), value.parse().unwrap()))
            .collect()
    }

    fn complete() -> HeaderMap {
        headers(&[
            (&VISITOR, ID),
            (&SEAT_ENDS, "1700000010000"),
            (&ACCEPTED_AT, "1700000000000"),
            (&ROOM, "demo"),
        ])
    }

    #[test]
    fn four_valid_headers_describe_a_request() {
        let sighting = OriginRequest::from_headers(&complete(), "demo").unwrap();
        assert_eq!(sighting.visitor.0[15], 0x0f);
        assert_eq!(sighting.seat_ends_at, Timestamp(1_700_000_010_000));
        assert_eq!(sighting.accepted_at, Timestamp(1_700_000_000_000));
    }

    #[test]
    fn a_missing_doubled_or_malformed_header_is_rejected() {
        for name in [VISITOR, SEAT_ENDS, ACCEPTED_AT, ROOM] {
            let mut without = complete();
            without.remove(&name);
            assert_eq!(
                OriginRequest::from_headers(&without, "demo"),
                None,
                "no {name}"
            );
            let mut doubled = complete();
            let value = doubled[&name].clone();
            doubled.append(&name, value);
            assert_eq!(
                OriginRequest::from_headers(&doubled, "demo"),
                None,
                "two {name}"
            );
        }
        for (name, value) in [
            (VISITOR, "+00102030405060708090a0b0c0d0e0f"),
            (VISITOR, "0001"),
            (VISITOR, "g00102030405060708090a0b0c0d0e0f"),
            (SEAT_ENDS, "+5"),
            (SEAT_ENDS, ""),
            (ACCEPTED_AT, "99999999999999999999"),
            (ROOM, "other"),
        ] {
            let mut wrong = complete();
            wrong.insert(&name, value.parse().unwrap());
            assert_eq!(
                OriginRequest::from_headers(&wrong, "demo"),
                None,
                "{name}: {value}"
            );
        }
    }
}
