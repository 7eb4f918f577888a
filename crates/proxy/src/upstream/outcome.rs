//! What an origin did with a request, and what that says of its health.

use http::StatusCode;

/// What the origin did with a request.
///
/// It is told of an answer's head; a body that breaks later is not seen here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It answered, with this status.
    Answered(StatusCode),
    /// No connection within `origin_connect`, or no TLS on it.
    ConnectFailed,
    /// No head of an answer within `origin_response`.
    TimedOut,
    /// It closed the connection, or what it said is not HTTP, or more than is taken.
    Broken,
    /// The visitor left after a long wait in which the origin answered nobody.
    Abandoned,
}

/// What an outcome says about an origin's health.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sign {
    /// It answers. Also with 500: that is what a broken page says, and whoever finds one can ask
    /// for it as often as it likes.
    Well,
    /// It says that it, or who stands behind it, cannot answer: 502, 503, 504.
    Unfit,
    /// It does not answer.
    Silent,
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

    /// Which of [`Outcome::NAMES`] is its own.
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

    /// Stable word for metrics.
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
            ) => Sign::Unfit,
            Self::Answered(_) => Sign::Well,
            Self::ConnectFailed | Self::TimedOut | Self::Broken | Self::Abandoned => Sign::Silent,
        }
    }

    /// What operators are told where no error says more.
    pub(crate) const fn complaint(self) -> Option<&'static str> {
        match self {
            Self::Answered(_) => None,
            Self::ConnectFailed => Some("no connection"),
            Self::TimedOut => Some("no head of an answer in time"),
            Self::Broken => Some("an answer that cannot be passed on"),
            Self::Abandoned => Some("nobody was answered while a visitor waited, who has left"),
        }
    }
}
