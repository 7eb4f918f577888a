//! Errors of requests and their HTTP statuses. No other file chooses a status.
//!
//! The status of the waiting page is not here: it belongs to the room's config.

use http::StatusCode;

/// Value of `Retry-After`, in seconds. If it is shorter, clients come back before anything has
/// changed; if it is longer, people have reloaded the page by hand.
const RETRY_AFTER_SECS: u16 = 10;

/// Error of a request that ends here, as far as a visitor may know.
///
/// Operators find more in the logs and in [`OriginOutcome`](crate::reverse_proxy::OriginOutcome).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum RequestError {
    /// The request is malformed, or means different things to different readers.
    BadRequest,
    /// The request has no room, or its room has no origin.
    NotFound,
    /// The client took too long over its body.
    RequestTimeOut,
    /// The body is over the limit.
    TooLarge,
    /// The path and query are over the limit.
    UriTooLong,
    /// The request has more headers than the limit.
    TooManyHeaders,
    /// The client's address has reached its limit of connections.
    TooManyConnections,
    /// The request has an unsupported expectation (RFC 9110, section 10.1.1).
    ExpectationFailed,
    /// The request has a method or transfer coding that this proxy does not support.
    NotImplemented,
    /// The origin could not be reached, or its response is not HTTP.
    BadGateway,
    /// This process is overloaded or about to end.
    Unavailable,
    /// The origin did not respond in time.
    GatewayTimeOut,
    /// The origin leads back to this gateway.
    LoopDetected,
}

impl RequestError {
    /// All variants, in the order of their declaration.
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

    /// Returns the status of the response.
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

    /// Returns the seconds after which a retry is useful, if they are known.
    #[must_use]
    pub(crate) const fn retry_after_secs(self) -> Option<u16> {
        match self {
            Self::Unavailable | Self::TooManyConnections => Some(RETRY_AFTER_SECS),
            _ => None,
        }
    }

    /// Returns the stable name for JSON, logs and metrics.
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

    /// Returns the headline for people.
    #[must_use]
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "This request could not be understood",
            Self::NotFound => "There is nothing here",
            Self::RequestTimeOut => "The upload took too long",
            Self::TooLarge => "The upload is too large",
            Self::UriTooLong => "This address is too long",
            Self::TooManyHeaders => "This request is too large",
            Self::TooManyConnections => "Too many connections come from your network",
            Self::ExpectationFailed | Self::NotImplemented => {
                "This kind of request is not supported"
            }
            Self::BadGateway | Self::LoopDetected => "The site could not be reached",
            Self::Unavailable => "The site is not available right now",
            Self::GatewayTimeOut => "The site took too long to answer",
        }
    }

    /// Returns the visitor's next step, in one or two plain sentences.
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
