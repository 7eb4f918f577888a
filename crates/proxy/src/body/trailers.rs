//! Fields that may not be trailers.
//!
//! RFC 9110, section 6.5.1, forbids fields of framing, routing, controls, authentication and
//! content coding as trailers, because some readers merge trailers into the headers. The gateway's
//! own headers and claims about the client do not pass either.

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
    // Authentication.
    header::AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::WWW_AUTHENTICATE,
    header::COOKIE,
    header::SET_COOKIE,
    // Response metadata.
    header::AGE,
    header::DATE,
    header::EXPIRES,
    header::LOCATION,
    header::RETRY_AFTER,
    header::VARY,
    header::WARNING,
    header::SERVER,
    // Content.
    header::CONTENT_ENCODING,
    header::CONTENT_TYPE,
    header::CONTENT_RANGE,
    header::CONTENT_DISPOSITION,
    header::CONTENT_SECURITY_POLICY,
    header::STRICT_TRANSPORT_SECURITY,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// Removes all forbidden trailers.
pub(super) fn clean(trailers: &mut HeaderMap) {
    for name in &FORBIDDEN {
        trailers.remove(name);
    }
    forwarded::strip_own(trailers);
    forwarded::strip_hearsay(trailers);
    // The command header of the gateway has a second spelling. No client may name itself in
    // trailers.
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
    fn only_permitted_trailers_remain() {
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
