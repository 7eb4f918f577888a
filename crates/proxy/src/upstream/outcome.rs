//! Outcome of a request at an origin, and its meaning for the origin's health.

use http::StatusCode;

/// Outcome of a request at an origin.
///
/// It is known with the head of a response; a body that breaks later has no effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The origin responded with this status.
    Answered(StatusCode),
    /// The connection or its TLS handshake failed or was not ready within `origin_connect`.
    ConnectFailed,
    /// The head of the response was not there within `origin_response`.
    TimedOut,
    /// The origin closed the connection, or its response is not HTTP or too large.
    Broken,
    /// The visitor left after a long wait in which the origin sent no responses at all.
    Abandoned,
}

/// Meaning of an outcome for an origin's health.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sign {
    /// The origin responds, including with 500: a broken page does, and a visitor can request it as
    /// often as they like.
    Good,
    /// The origin or its backend cannot serve: 502, 503, 504.
    GatewayError,
    /// The origin does not respond.
    NoResponse,
}

impl Outcome {
    /// Stable words for metrics, in the order of [`Outcome::index`].
    pub const NAMES: [&'static str; 6] = [
        "answered",
        "server_error",
        "connect_failed",
        "timed_out",
        "broken",
        "abandoned",
    ];

    /// Returns the index of the outcome in [`Outcome::NAMES`].
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::Answered(status) if status.is_server_error() => 1,
            Self::Answered(_) => 0,
            Self::ConnectFailed => 2,
            Self::TimedOut => 3,
            Self::Broken => 4,
            Self::Abandoned => 5,
        }
    }

    /// Returns the stable word for metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    pub(crate) fn sign(self) -> Sign {
        match self {
            Self::Answered(
                StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT,
            ) => Sign::GatewayError,
            Self::Answered(_) => Sign::Good,
            Self::ConnectFailed | Self::TimedOut | Self::Broken | Self::Abandoned => {
                Sign::NoResponse
            }
        }
    }

    /// Returns a description for operators, if there is no error with more detail.
    pub(crate) const fn description(self) -> Option<&'static str> {
        match self {
            Self::Answered(_) => None,
            Self::ConnectFailed => Some("no connection"),
            Self::TimedOut => Some("no head of a response in time"),
            Self::Broken => Some("a response that cannot be passed on"),
            Self::Abandoned => Some("no responses at all while a visitor waited and left"),
        }
    }
}
