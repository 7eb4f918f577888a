//! Which fields may stand behind a body?
//!
//! RFC 9110, section 6.5.1: not what frames or routes a message, asks for something, shows who one
//! is, or says how the content is to be read; some readers merge trailers into the headers. What is
//! ours and what a stranger says about itself does not pass either.

use http::HeaderMap;
use http::header::{self, HeaderName};

use crate::forwarded;

static FORBIDDEN: [HeaderName; 40] = [
    // Framing and routing.
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
    header::HOST,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    // Controls and conditions.
    header::CACHE_CONTROL,
    header::EXPECT,
    header::MAX_FORWARDS,
    header::PRAGMA,
    header::RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
    // Who somebody is.
    header::AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::WWW_AUTHENTICATE,
    header::COOKIE,
    header::SET_COOKIE,
    // What an answer is.
    header::AGE,
    header::DATE,
    header::EXPIRES,
    header::LOCATION,
    header::RETRY_AFTER,
    header::VARY,
    header::WARNING,
    header::SERVER,
    // How content is to be read.
    header::CONTENT_ENCODING,
    header::CONTENT_TYPE,
    header::CONTENT_RANGE,
    header::CONTENT_DISPOSITION,
    header::CONTENT_SECURITY_POLICY,
    header::STRICT_TRANSPORT_SECURITY,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// Removes what may not stand there.
pub(super) fn clean(trailers: &mut HeaderMap) {
    for name in &FORBIDDEN {
        trailers.remove(name);
    }
    forwarded::strip_own(trailers);
    forwarded::strip_hearsay(trailers);
    // What commands the gateway is spelled in one more way, and who may name the client in trailers
    // is nobody.
    trailers.remove("cf-waiting-room-command");
    for name in anteroom_config::TRUSTED_PROXY_HEADERS {
        trailers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_what_may_stand_behind_a_body_is_left() {
        let mut trailers = HeaderMap::new();
        let all = FORBIDDEN.iter().cloned();
        let more = [
            "anteroom-command",
            "x-forwarded-for",
            "x-real-ip",
            "content_length",
            "cf-waiting-room-command",
        ];
        for name in all.chain(more.map(HeaderName::from_static)) {
            trailers.append(name, HeaderValue::from_static("1"));
        }
        for kept in ["grpc-status", "digest", "x-sum", "server-timing"] {
            trailers.append(kept, HeaderValue::from_static("1"));
        }
        clean(&mut trailers);
        let mut left: Vec<_> = trailers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["digest", "grpc-status", "server-timing", "x-sum"]);
    }
}
