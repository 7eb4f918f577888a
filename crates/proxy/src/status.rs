//! Which HTTP status goes with what went wrong? This file chooses, and only this one.
//!
//! It says nothing about waiting: the status of the waiting page belongs to the room's config.

use http::StatusCode;

/// What `Retry-After` says. Sooner, and those who are refused come back before anything has
/// changed; later, and people have reloaded the page by hand.
const RETRY_AFTER_SECS: u16 = 10;

/// Why a request ends here, as far as a visitor may know.
///
/// What operators may know on top is in the logs and in
/// [`OriginOutcome`](crate::reverse_proxy::OriginOutcome).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The request is malformed, or means different things to different readers.
    BadRequest,
    /// No room covers it, or its room has no origin.
    NotFound,
    /// The client took too long over its body.
    RequestTimeOut,
    /// The body is over the limit.
    TooLarge,
    /// The path and query are over the limit.
    UriTooLong,
    /// More headers than the limit.
    TooManyHeaders,
    /// Its address has as many connections as it may have.
    TooManyConnections,
    /// An expectation that nobody meets (RFC 9110, section 10.1.1).
    ExpectationFailed,
    /// A method or transfer coding that this proxy does not speak.
    NotImplemented,
    /// The origin could not be reached, or what it said is not HTTP.
    BadGateway,
    /// Not now: this process is busy or on its way out.
    Unavailable,
    /// The origin did not answer in time.
    GatewayTimeOut,
    /// The origin leads back to this gateway.
    LoopDetected,
}

impl Refusal {
    /// All of them, in the order of their declaration.
    pub(crate) const ALL: [Self; 13] = [
        Self::BadRequest,
        Self::NotFound,
        Self::RequestTimeOut,
        Self::TooLarge,
        Self::UriTooLong,
        Self::TooManyHeaders,
        Self::TooManyConnections,
        Self::ExpectationFailed,
        Self::NotImplemented,
        Self::BadGateway,
        Self::Unavailable,
        Self::GatewayTimeOut,
        Self::LoopDetected,
    ];

    /// The status of the answer.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::RequestTimeOut => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::TooManyHeaders => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TooManyConnections => StatusCode::TOO_MANY_REQUESTS,
            Self::ExpectationFailed => StatusCode::EXPECTATION_FAILED,
            Self::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            Self::BadGateway => StatusCode::BAD_GATEWAY,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::GatewayTimeOut => StatusCode::GATEWAY_TIMEOUT,
            Self::LoopDetected => StatusCode::LOOP_DETECTED,
        }
    }

    /// After how many seconds it is worth while to try again, where that is known.
    #[must_use]
    pub(crate) const fn retry_after_secs(self) -> Option<u16> {
        match self {
            Self::Unavailable | Self::TooManyConnections => Some(RETRY_AFTER_SECS),
            _ => None,
        }
    }

    /// Stable name for JSON, logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::NotFound => "not_found",
            Self::RequestTimeOut => "request_time_out",
            Self::TooLarge => "too_large",
            Self::UriTooLong => "uri_too_long",
            Self::TooManyHeaders => "too_many_headers",
            Self::TooManyConnections => "too_many_connections",
            Self::ExpectationFailed => "expectation_failed",
            Self::NotImplemented => "not_implemented",
            Self::BadGateway => "bad_gateway",
            Self::Unavailable => "unavailable",
            Self::GatewayTimeOut => "gateway_time_out",
            Self::LoopDetected => "loop_detected",
        }
    }

    /// Headline, for people.
    #[must_use]
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "This request could not be understood",
            Self::NotFound => "There is nothing here",
            Self::RequestTimeOut => "The upload took too long",
            Self::TooLarge => "The upload is too large",
            Self::UriTooLong => "This address is too long",
            Self::TooManyHeaders => "This request carries too much",
            Self::TooManyConnections => "Too many connections come from your network",
            Self::ExpectationFailed | Self::NotImplemented => {
                "This kind of request is not supported"
            }
            Self::BadGateway | Self::LoopDetected => "The site could not be reached",
            Self::Unavailable => "The site is not available right now",
            Self::GatewayTimeOut => "The site took too long to answer",
        }
    }

    /// What the visitor can do about it, in one or two plain sentences.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::BadRequest | Self::UriTooLong => "Please check the address and try again.",
            Self::NotFound => "Please check the address.",
            Self::RequestTimeOut => "Please check your connection and try again.",
            Self::TooLarge => "Please send less at once.",
            Self::TooManyHeaders => "Deleting the cookies of this site may help.",
            Self::ExpectationFailed | Self::NotImplemented => "Please use an ordinary browser.",
            Self::BadGateway | Self::GatewayTimeOut | Self::LoopDetected => {
                "This is not your fault. Please try again in a minute."
            }
            Self::Unavailable | Self::TooManyConnections => "Please try again in a minute.",
        }
    }
}
