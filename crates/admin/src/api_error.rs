//! Errors of the admin API and their HTTP statuses. No other file chooses a status.

use anteroom_node::CommandOutcome;
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};

use anteroom_config::Problem;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api_v1::pointer;

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

/// Word for a change that the state of the deployment forbids.
pub(crate) const FORBIDDEN: &str = "forbidden";

/// Body of an error response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// Word for programs.
    error: &'static str,
    /// Description for people.
    message: &'static str,
    /// Rooms of this node, after a request for an unknown one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rooms: Vec<String>,
    /// Limits of this node, after a request for an unknown one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<String>,
    /// All mistakes of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ProblemBody>,
}

/// Mistake of a request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// Description for people: what was found, and what is allowed.
    message: String,
    /// JSON pointer of the field in the body, or of the parameter of a query: `/to`. Absent if the
    /// mistake is about none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

impl ProblemBody {
    pub(crate) fn about_all(message: String) -> Self {
        Self {
            message,
            pointer: None,
        }
    }

    /// Creates a problem of the part of a body at `pointer`.
    pub(crate) fn at(pointer: String, message: String) -> Self {
        Self {
            message,
            pointer: Some(pointer),
        }
    }

    /// Returns the problem with its pointer from a part of the body on, if it is in that part.
    pub(crate) fn within(mut self, prefix: &str) -> Self {
        let rest = self
            .pointer
            .as_deref()
            .and_then(|pointer| pointer.strip_prefix(prefix));
        if let Some(rest) = rest.map(str::to_owned) {
            self.pointer = (!rest.is_empty()).then_some(rest);
        }
        self
    }
}

impl From<&Problem> for ProblemBody {
    fn from(problem: &Problem) -> Self {
        Self {
            message: problem.to_string(),
            pointer: (!problem.key.is_empty()).then(|| pointer(&problem.key)),
        }
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
    Malformed { problem: ProblemBody },
    /// The command is not allowed.
    NotAllowed { problems: Vec<ProblemBody> },
    /// The room has no event of this name, but these.
    UnknownEvent { events: String },
    /// The object does not exist.
    NotFound,
    /// The object has changed since the client read it.
    Changed { tag: String },
    /// Change that the state of the room forbids: it is one of the file, or people wait.
    Forbidden { problem: String },
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
    /// Creates the error of a command that is not allowed for one reason.
    pub(crate) fn not_allowed(problem: String) -> Self {
        let problems = vec![ProblemBody::about_all(problem)];
        Self::NotAllowed { problems }
    }

    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::UnknownRoom { .. }
            | Self::UnknownLimit { .. }
            | Self::UnknownEvent { .. }
            | Self::UnknownPath
            | Self::NotFound => StatusCode::NOT_FOUND,
            Self::Changed { .. } => StatusCode::PRECONDITION_FAILED,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::Role { .. } | Self::CrossSite | Self::Forbidden { .. } => StatusCode::FORBIDDEN,
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
            Self::UnknownPath => (
                "unknown_path",
                "unknown path; GET /openapi.json lists all paths",
            ),
            Self::Method => (
                "method_not_allowed",
                "method not allowed; GET /openapi.json lists all paths",
            ),
            Self::NoToken => (
                "no_token",
                "this needs the header `Authorization: Bearer` with a valid token",
            ),
            Self::Role { .. } => ("role_too_low", "this needs a token with a higher role"),
            Self::Malformed { .. } => (
                "not_understood",
                "the body is not the expected JSON; GET /openapi.json describes it",
            ),
            Self::NotAllowed { .. } => (
                "not_allowed",
                "the request has mistakes; nothing was changed",
            ),
            Self::UnknownEvent { .. } => ("unknown_event", "no event of the room has this name"),
            Self::NotFound => ("not_found", "there is no such object"),
            Self::Changed { .. } => (
                "has_changed",
                "it has changed since you read it; nothing was changed",
            ),
            Self::Forbidden { .. } => (FORBIDDEN, "this is not allowed here"),
            Self::StoreUnavailable => (
                "store_unavailable",
                "the store is unavailable; a change may not have been made",
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
        let status = self.status();
        let (error, message) = self.words();
        let mut body = ErrorBody {
            error,
            message,
            rooms: Vec::new(),
            limits: Vec::new(),
            problems: Vec::new(),
        };
        let has_no_token = self == Self::NoToken;
        match self {
            Self::UnknownRoom { rooms } => body.rooms = rooms,
            Self::UnknownLimit { limits } => body.limits = limits,
            Self::NotAllowed { problems } => body.problems = problems,
            Self::Role { problem } | Self::Forbidden { problem } => {
                body.problems = vec![ProblemBody::about_all(problem)];
            }
            Self::Malformed { problem } => body.problems = vec![problem],
            Self::UnknownEvent { events } => {
                body.problems = vec![ProblemBody::about_all(format!("there are: {events}"))];
            }
            Self::Changed { tag } => {
                body.problems = vec![ProblemBody::about_all(format!("it is now {tag}"))];
            }
            _ => {}
        }
        let mut response = (status, Json(body)).into_response();
        if has_no_token {
            let headers = response.headers_mut();
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
