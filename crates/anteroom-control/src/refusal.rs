//! Which HTTP status goes with what? This file chooses, and only this one.

use axum::Json;
use axum::http::StatusCode;
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

/// Why a request gets no answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// No room has this name; these are the names that there are.
    UnknownRoom { rooms: Vec<String> },
    /// Nothing is at this path.
    UnknownPath,
    /// What is at this path is asked for in another way.
    Method,
    /// Something would be changed, and nothing shows that an operator wants it.
    NotOperator,
    /// The store does not answer.
    StoreAway,
    /// A page of another site asks, through an operator's browser.
    CrossSite,
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
            Self::UnknownRoom { .. } | Self::UnknownPath => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::CrossSite | Self::NotOperator => StatusCode::FORBIDDEN,
            Self::StoreAway => StatusCode::SERVICE_UNAVAILABLE,
            Self::PathTooLong => StatusCode::URI_TOO_LONG,
            Self::Body => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Metrics => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    const fn code(&self) -> &'static str {
        match self {
            Self::UnknownRoom { .. } => "unknown_room",
            Self::UnknownPath => "unknown_path",
            Self::Method => "method_not_allowed",
            Self::NotOperator => "not_an_operator",
            Self::StoreAway => "store_away",
            Self::CrossSite => "cross_site",
            Self::PathTooLong => "path_too_long",
            Self::Body => "body_not_allowed",
            Self::Metrics => "metrics_unavailable",
        }
    }

    const fn message(&self) -> &'static str {
        match self {
            Self::UnknownRoom { .. } => "no room has this name",
            Self::UnknownPath => "nothing is here; GET / lists what there is",
            Self::Method => "this is asked for in another way; GET / lists what there is",
            Self::NotOperator => "what changes something needs the header anteroom-operator",
            Self::StoreAway => "the store does not answer; nothing was changed",
            Self::CrossSite => "pages of other sites may not ask",
            Self::PathTooLong => "the path is longer than any that there is",
            Self::Body => "a request here has no body",
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
        let body = RefusalBody {
            error: self.code(),
            message: self.message(),
            rooms,
        };
        (self.status(), Json(body)).into_response()
    }
}
