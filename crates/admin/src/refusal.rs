//! Which HTTP status goes with what? This file chooses, and only this one.

use anteroom_node::CommandOutcome;
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};

use crate::bodies::RefusalBody;

/// The status of an answer about health.
pub(crate) const fn status_of_health(is_healthy: bool) -> StatusCode {
    if is_healthy {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

/// The status of a command that was obeyed: it may hold at this node only.
pub(crate) const fn status_of_command(obeyed: CommandOutcome) -> StatusCode {
    match obeyed {
        CommandOutcome::Written => StatusCode::OK,
        CommandOutcome::Held { .. } | CommandOutcome::Ended => StatusCode::ACCEPTED,
    }
}

/// Why a request gets no answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// No room has this name; these are the names that there are.
    UnknownRoom { rooms: Vec<String> },
    /// No limit has this name; these are the names that there are.
    UnknownLimit { limits: Vec<String> },
    /// Nothing is at this path.
    UnknownPath,
    /// What is at this path is asked for in another way.
    Method,
    /// Something would be changed, and no token that holds was shown.
    NoToken,
    /// The body is none that can be understood.
    NotUnderstood { why: String },
    /// What is said is not allowed; everything that is wrong with it.
    NotAllowed { problems: Vec<String> },
    /// The store does not answer.
    StoreAway,
    /// A page of another site asks, through an operator's browser.
    CrossSite,
    /// The name that is asked for is none of this address.
    Host,
    /// As many requests are worked on as may be.
    Busy,
    /// No path here is that long.
    PathTooLong,
    /// Nothing here takes a body.
    Body,
    /// Metrics could not be written down.
    Metrics,
}

impl Refusal {
    const fn status(&self) -> StatusCode {
        match self {
            Self::UnknownRoom { .. } | Self::UnknownLimit { .. } | Self::UnknownPath => {
                StatusCode::NOT_FOUND
            }
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::CrossSite => StatusCode::FORBIDDEN,
            Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::NotUnderstood { .. } => StatusCode::BAD_REQUEST,
            Self::NotAllowed { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::StoreAway | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::PathTooLong => StatusCode::URI_TOO_LONG,
            Self::Body => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Metrics => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    const fn code(&self) -> &'static str {
        match self {
            Self::UnknownRoom { .. } => "unknown_room",
            Self::UnknownLimit { .. } => "unknown_limit",
            Self::UnknownPath => "unknown_path",
            Self::Method => "method_not_allowed",
            Self::NoToken => "no_token",
            Self::NotUnderstood { .. } => "not_understood",
            Self::NotAllowed { .. } => "not_allowed",
            Self::StoreAway => "store_unavailable",
            Self::CrossSite => "cross_site",
            Self::Host => "host_not_allowed",
            Self::Busy => "busy",
            Self::PathTooLong => "path_too_long",
            Self::Body => "body_not_allowed",
            Self::Metrics => "metrics_unavailable",
        }
    }

    const fn message(&self) -> &'static str {
        match self {
            Self::UnknownRoom { .. } => "no room has this name",
            Self::UnknownLimit { .. } => "no limit has this name",
            Self::UnknownPath => "nothing is here; GET / lists what there is",
            Self::Method => "this is asked for in another way; GET / lists what there is",
            Self::NoToken => "this needs the header `Authorization: Bearer` with a valid token",
            Self::NotUnderstood { .. } => {
                "the body is not the JSON that belongs here; GET / shows it"
            }
            Self::NotAllowed { .. } => "nothing was changed",
            Self::StoreAway => "the store does not answer; nothing is known to have changed",
            Self::CrossSite => "pages of other sites may not ask",
            Self::Host => {
                "this host name is not known here; ask by address, or list it in server.admin_hosts"
            }
            Self::Busy => "too many requests at once; ask again",
            Self::PathTooLong => "the path is longer than any that there is",
            Self::Body => "the body is longer than any that makes sense, or does not belong here",
            Self::Metrics => "cannot write the metrics down",
        }
    }
}

impl IntoResponse for Refusal {
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
            Self::NotUnderstood { why } => Some(std::slice::from_ref(why)),
            _ => None,
        };
        let body = RefusalBody {
            error: self.code(),
            message: self.message(),
            rooms,
            limits,
            problems,
        };
        let mut response = (self.status(), Json(body)).into_response();
        if self == Self::NoToken {
            let headers = response.headers_mut();
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
