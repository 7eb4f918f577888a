//! Errors of the admin API and their HTTP statuses. No other file chooses a status.

use anteroom_node::CommandOutcome;
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};

use crate::bodies::ErrorBody;

/// Returns the status of a response about health.
pub(crate) const fn status_of_health(is_healthy: bool) -> StatusCode {
    if is_healthy {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

/// Returns the status of a command that was executed, possibly at this node only.
pub(crate) const fn status_of_command(outcome: CommandOutcome) -> StatusCode {
    match outcome {
        CommandOutcome::Written => StatusCode::OK,
        CommandOutcome::Held { .. } | CommandOutcome::Ended => StatusCode::ACCEPTED,
    }
}

/// Error response to a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ApiError {
    /// Unknown room, with the names of the existing ones.
    UnknownRoom { rooms: Vec<String> },
    /// Unknown limit, with the names of the existing ones.
    UnknownLimit { limits: Vec<String> },
    /// Unknown path.
    UnknownPath,
    /// The path does not support this method.
    Method,
    /// The request needs a valid token.
    NoToken,
    /// The body cannot be parsed.
    Malformed { error: String },
    /// The command is not allowed.
    NotAllowed { problems: Vec<String> },
    /// The store is unavailable.
    StoreUnavailable,
    /// The request comes from a page of another site, through an operator's browser.
    CrossSite,
    /// The requested host name does not belong to this address.
    Host,
    /// The limit on concurrent requests is reached.
    Busy,
    /// The path is longer than any valid one.
    PathTooLong,
    /// The body is too long or not expected.
    Body,
    /// The metrics could not be encoded.
    Metrics,
}

impl ApiError {
    /// Returns the status, the code for programs, and the message.
    const fn row(&self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as Status;
        match self {
            Self::UnknownRoom { .. } => {
                (Status::NOT_FOUND, "unknown_room", "no room has this name")
            }
            Self::UnknownLimit { .. } => {
                (Status::NOT_FOUND, "unknown_limit", "no limit has this name")
            }
            Self::UnknownPath => (
                Status::NOT_FOUND,
                "unknown_path",
                "unknown path; GET / lists all paths",
            ),
            Self::Method => (
                Status::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "method not allowed; GET / lists all paths",
            ),
            Self::NoToken => (
                Status::UNAUTHORIZED,
                "no_token",
                "this needs the header `Authorization: Bearer` with a valid token",
            ),
            Self::Malformed { .. } => (
                Status::BAD_REQUEST,
                "not_understood",
                "the body is not the expected JSON; GET / shows an example",
            ),
            Self::NotAllowed { .. } => (
                Status::UNPROCESSABLE_ENTITY,
                "not_allowed",
                "nothing was changed",
            ),
            Self::StoreUnavailable => (
                Status::SERVICE_UNAVAILABLE,
                "store_unavailable",
                "the store is unavailable; the change may not have been made",
            ),
            Self::CrossSite => (
                Status::FORBIDDEN,
                "cross_site",
                "requests from pages of other sites are not allowed",
            ),
            Self::Host => (
                Status::MISDIRECTED_REQUEST,
                "host_not_allowed",
                "unknown host name; use an IP address, or list the name in server.admin_hosts",
            ),
            Self::Busy => (
                Status::SERVICE_UNAVAILABLE,
                "busy",
                "too many requests at once; retry",
            ),
            Self::PathTooLong => (
                Status::URI_TOO_LONG,
                "path_too_long",
                "the path is longer than any valid one",
            ),
            Self::Body => (
                Status::PAYLOAD_TOO_LARGE,
                "body_not_allowed",
                "the body is too long or not expected",
            ),
            Self::Metrics => (
                Status::INTERNAL_SERVER_ERROR,
                "metrics_unavailable",
                "cannot encode the metrics",
            ),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let rooms = match &self {
            Self::UnknownRoom { rooms } => Some(rooms.as_slice()),
            _ => None,
        };
        let limits = match &self {
            Self::UnknownLimit { limits } => Some(limits.as_slice()),
            _ => None,
        };
        let problems = match &self {
            Self::NotAllowed { problems } => Some(problems.as_slice()),
            Self::Malformed { error } => Some(std::slice::from_ref(error)),
            _ => None,
        };
        let (status, error, message) = self.row();
        let body = ErrorBody {
            error,
            message,
            rooms,
            limits,
            problems,
        };
        let mut response = (status, Json(body)).into_response();
        if self == Self::NoToken {
            let headers = response.headers_mut();
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
