//! Envelope of responses: `success`, `errors`, `messages`, `result`, as clients of Cloudflare's API
//! expect it, with its error codes. No other file of this API chooses a status.

use anteroom_config::Problem;
use anteroom_store::ChangeError;
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{ETAG, HeaderValue, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::api_rooms::{Applied, RoomChangeError, RoomRefusal, SITE};
use crate::api_v1::pointer;

/// No such room, event, rule or zone.
const NOT_FOUND: u32 = 1001;
/// A value that is not allowed.
const INVALID: u32 = 1002;
/// A feature that this program does not have.
const NOT_ENTITLED: u32 = 1034;
/// A path or method that does not exist.
const NO_ROUTE: u32 = 7003;
/// No valid token, or one with a lower role.
const AUTHENTICATION: u32 = 10_000;
/// Everything else; Cloudflare has no code for it.
const OTHER: u32 = 1100;
/// Remark on a request that was carried out.
const REMARK: u32 = 1101;

/// Path of the rules of a room in the file.
pub(super) const RULES: &str = "bypass";

/// Response to a request that was carried out.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) result: Value,
    /// `result_info` of lists.
    pub(super) info: Option<Value>,
    pub(super) messages: Vec<String>,
    /// Tag of the room's state.
    pub(super) tag: Option<String>,
    /// Nodes that serve the change; Cloudflare's API has no such field.
    pub(super) applied: Option<Applied>,
}

impl Reply {
    pub(super) fn of(result: Value) -> Self {
        Self {
            result,
            ..Self::default()
        }
    }
}

/// Error with its place in the request's body.
#[derive(Debug, Serialize)]
struct WireError {
    code: u32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Value>,
}

/// Response to a request that was not carried out.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    errors: Vec<WireError>,
    /// Seconds after which the same request may be carried out.
    retry_after: Option<u16>,
}

impl Refusal {
    /// Adds the errors of another one.
    pub(super) fn add(&mut self, other: Self) {
        self.errors.extend(other.errors);
    }

    fn new(status: StatusCode, code: u32, message: impl Into<String>) -> Self {
        let error = WireError {
            code,
            message: message.into(),
            source: None,
        };
        Self {
            status,
            errors: vec![error],
            retry_after: None,
        }
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            NOT_FOUND,
            format!("{what} not found"),
        )
    }

    pub(super) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, NO_ROUTE, "No route for the URI")
    }

    pub(super) fn method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            NO_ROUTE,
            "Method not allowed for the URI",
        )
    }

    pub(super) fn forbidden(message: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, OTHER, message)
    }

    pub(super) fn precondition(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, OTHER, message)
    }

    pub(super) fn body(message: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID, message)
    }

    pub(super) fn invalid(mistakes: Mistakes) -> Self {
        let mut refusal = Self::body(String::new());
        refusal.errors = mistakes.0;
        refusal
    }

    pub(super) fn too_large() -> Self {
        let message = "the body has more than 2 MiB";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, INVALID, message)
    }
}

/// Mistakes in a body.
#[derive(Debug, Default)]
pub(super) struct Mistakes(Vec<WireError>);

impl Mistakes {
    /// Adds a value that is not allowed.
    pub(super) fn add(&mut self, key: &str, message: impl Into<String>) {
        self.push(INVALID, key, message.into());
    }

    /// Adds a feature that this program does not have.
    pub(super) fn add_missing_feature(&mut self, key: &str, message: &str) {
        let message = format!("Zone not entitled to this functionality: {message}");
        self.push(NOT_ENTITLED, key, message);
    }

    fn push(&mut self, code: u32, key: &str, message: String) {
        self.0.push(WireError {
            code,
            message,
            source: Some(json!({ "pointer": pointer(key) })),
        });
    }

    /// Refuses if there are any.
    pub(super) fn check(self) -> Result<(), Refusal> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Refusal::invalid(self))
        }
    }
}

/// Returns the mistakes of problems, without the name of the room. `prefix` is the path of the part
/// that the client sent.
pub(super) fn mistakes(problems: Vec<Problem>, prefix: &str) -> Mistakes {
    let mut mistakes = Mistakes::default();
    for mut problem in problems {
        problem.owner = None;
        if problem.key == SITE {
            // Here it is the zone in the path, which a host chooses.
            problem.key = "host".to_owned();
        }
        if let Some(bare) = problem.allowed.strip_suffix(" in quotes") {
            problem.allowed = bare.to_owned();
        }
        if let Some(key) = problem.key.strip_prefix(prefix) {
            // A rule is a text in the file, and an object here.
            let is_rule = prefix == RULES;
            problem.key = if is_rule { "expression" } else { key }.to_owned();
        }
        mistakes.add(&problem.key.clone(), problem.to_string());
    }
    mistakes
}

/// Returns the refusal of a change. `prefix` is the path of the part that the client sent.
pub(super) fn of_change(error: RoomChangeError, prefix: &str) -> Refusal {
    let refused = match error {
        ChangeError::Rejected(refused) => refused,
        error => {
            let cause = anteroom_store::chain(&error);
            tracing::warn!(cause, "a change of the rooms of the API failed");
            let mut refusal = Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                OTHER,
                "the store is unavailable; a change may not have been made",
            );
            refusal.retry_after = Some(1);
            return refusal;
        }
    };
    match refused {
        RoomRefusal::NotFound => Refusal::not_found("Object"),
        RoomRefusal::Changed { .. } => Refusal::precondition(refused.to_string()),
        RoomRefusal::NotAllowed(problems) => Refusal::invalid(mistakes(problems, prefix)),
        RoomRefusal::OlderNodes { .. } => Refusal::forbidden(refused.to_string()),
        other => Refusal::new(StatusCode::BAD_REQUEST, OTHER, other.to_string()),
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let (_, message) = error.words();
        let (code, retry_after) = match &error {
            ApiError::NoToken | ApiError::Role { .. } => (AUTHENTICATION, None),
            ApiError::Busy | ApiError::StoreUnavailable => (OTHER, Some(1)),
            _ => (OTHER, None),
        };
        let mut refusal = Self::new(error.status(), code, message);
        refusal.retry_after = retry_after;
        refusal
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let remark = |message: String| json!({ "code": REMARK, "message": message });
        let messages: Vec<Value> = self.messages.into_iter().map(remark).collect();
        let mut body = json!({
            "success": true,
            "errors": [],
            "messages": messages,
            "result": self.result,
        });
        if let Some(info) = self.info {
            body["result_info"] = info;
        }
        if let Some(applied) = self.applied {
            body["applied"] = json!(applied);
        }
        let mut response = Json(body).into_response();
        let tag = self.tag.map(|tag| format!("\"{tag}\""));
        if let Some(tag) = tag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({
            "success": false,
            "errors": self.errors,
            "messages": [],
            "result": null,
        });
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
