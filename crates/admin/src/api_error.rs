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
    /// The token has a lower role than the request needs.
    Role { problem: String },
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
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::UnknownRoom { .. } | Self::UnknownLimit { .. } | Self::UnknownPath => {
                StatusCode::NOT_FOUND
            }
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::Role { .. } | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::Malformed { .. } => StatusCode::BAD_REQUEST,
            Self::NotAllowed { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::StoreUnavailable | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::PathTooLong => StatusCode::URI_TOO_LONG,
            Self::Body => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Metrics => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the code for programs, and the message.
    pub(crate) const fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::UnknownRoom { .. } => ("unknown_room", "no room has this name"),
            Self::UnknownLimit { .. } => ("unknown_limit", "no limit has this name"),
            Self::UnknownPath => ("unknown_path", "unknown path; GET / lists all paths"),
            Self::Method => (
                "method_not_allowed",
                "method not allowed; GET / lists all paths",
            ),
            Self::NoToken => (
                "no_token",
                "this needs the header `Authorization: Bearer` with a valid token",
            ),
            Self::Role { .. } => ("role_too_low", "this needs a token with a higher role"),
            Self::Malformed { .. } => (
                "not_understood",
                "the body is not the expected JSON; GET / shows an example",
            ),
            Self::NotAllowed { .. } => ("not_allowed", "nothing was changed"),
            Self::StoreUnavailable => (
                "store_unavailable",
                "the store is unavailable; the change may not have been made",
            ),
            Self::CrossSite => (
                "cross_site",
                "requests from pages of other sites are not allowed",
            ),
            Self::Host => (
                "host_not_allowed",
                "unknown host name; use an IP address, or list the name in server.admin_hosts",
            ),
            Self::Busy => ("busy", "too many requests at once; retry"),
            Self::PathTooLong => ("path_too_long", "the path is longer than any valid one"),
            Self::Body => ("body_not_allowed", "the body is too long or not expected"),
            Self::Metrics => ("metrics_unavailable", "cannot encode the metrics"),
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
            Self::Role { problem } => Some(std::slice::from_ref(problem)),
            Self::NotAllowed { problems } => Some(problems.as_slice()),
            Self::Malformed { error } => Some(std::slice::from_ref(error)),
            _ => None,
        };
        let status = self.status();
        let (error, message) = self.words();
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
