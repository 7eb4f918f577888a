//! Handlers of the history of a room: points over time, and reports.
//!
//! [`crate::history`] reads the rows and merges them. This module reads the parameters and writes
//! the response in the format that the client asks for.

use std::sync::Arc;

use anteroom_config::time_text::{self, rfc3339_secs};
use anteroom_history::report::{self, Report};
use anteroom_history::{HistoryPoint, QueryError, csv};
use anteroom_node::RoomHandle;
use anteroom_room::time::{DurationMs, Timestamp};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::api_error::{ApiError, ErrorBody, ProblemBody};
use crate::api_state::{Inner, room_of};
use crate::api_v1::parameters::parameters;
use crate::command::actor;
use crate::deadline::COMMAND_TIMEOUT;
use crate::history::{HistoryError, ReportOf, RoomHistory, history_of, report_of};
use crate::tokens::Role;

/// Time that is shown if a request says nothing else: what an operator wants to see first.
const SHOWN: DurationMs = DurationMs::from_secs(3_600);

/// Name of a room in a path.
type Name = Result<Path<String>, PathRejection>;

/// Body with the history of a room.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryBody {
    /// Name of the room.
    pub(crate) room: String,
    /// Begin of the first point.
    pub(crate) from: String,
    /// End of the last point.
    pub(crate) until: String,
    /// Minutes of each point.
    pub(crate) step_minutes: u64,
    /// Points in the order of time. There is none where no node has written a row.
    pub(crate) points: Vec<HistoryPoint>,
}

/// Format of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Format {
    Json,
    Csv,
    Text,
    Html,
}

impl Format {
    /// Formats of a history. The first one is the default.
    const OF_HISTORY: &[Self] = &[Self::Json, Self::Csv, Self::Html];
    /// Formats of a report. The first one is the default.
    const OF_REPORT: &[Self] = &[Self::Json, Self::Text, Self::Html];

    const fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Text => "text",
            Self::Html => "html",
        }
    }
}

/// Reads parameters, and collects all mistakes in them.
#[derive(Default)]
struct Reader {
    problems: Vec<ProblemBody>,
}

impl Reader {
    fn refuse(&mut self, key: &str, problem: &str) {
        let problem = ProblemBody::at(format!("/{key}"), format!("{key}: {problem}"));
        self.problems.push(problem);
    }

    fn time(&mut self, key: &str, text: Option<&str>) -> Option<Timestamp> {
        let text = text?;
        let time = time_text::parse(text);
        if time.is_none() {
            let allowed = "allowed is a time such as 2030-01-31T10:00:00+01:00";
            self.refuse(key, &format!("found {text:?}; {allowed}"));
        }
        time
    }

    fn step(&mut self, text: Option<&str>) -> Option<u64> {
        let text = text?;
        let step = text.parse().ok();
        if step.is_none() {
            let allowed = "allowed is a number of minutes from 1 to 1440";
            self.refuse("step", &format!("found {text:?}; {allowed}"));
        }
        step
    }

    fn format(&mut self, text: Option<&str>, allowed: &[Format]) -> Format {
        let Some(text) = text else {
            return allowed.first().copied().unwrap_or(Format::Json);
        };
        let mut formats = allowed.iter();
        if let Some(format) = formats.find(|format| format.word() == text) {
            return *format;
        }
        let words: Vec<&str> = allowed.iter().map(|format| format.word()).collect();
        let allowed = words.join(", ");
        self.refuse("format", &format!("found {text:?}; allowed are {allowed}"));
        Format::Json
    }

    fn finish(self) -> Result<(), ApiError> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let problems = self.problems;
        Err(ApiError::NotAllowed { problems })
    }
}

/// Returns the history of a room, merged over all nodes.
///
/// A node writes a row a minute. Without `from` and `to` the response is about the last hour.
#[utoipa::path(
    get,
    path = "/rooms/{room}/history",
    tag = "history",
    params(
        ("room" = String, Path, description = "Name of the room"),
        ("from" = Option<String>, Query, description = "Begin (RFC 3339)"),
        ("to" = Option<String>, Query, description = "End (RFC 3339)"),
        ("step" = Option<u64>, Query, description = "Minutes of a point, 1 to 1440"),
        ("format" = Option<String>, Query, description = "`json`, `csv`, or `html` with charts"),
    ),
    responses(
        (status = 200, description = "Points in the order of time", content(
            (HistoryBody = "application/json"),
            (String = "text/csv"),
            (String = "text/html"),
        )),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["viewer"])),
)]
pub(crate) async fn show_history(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Response, ApiError> {
    actor(&inner, &request, Role::Viewer).await?;
    let room = room_of(&inner.node, name)?;
    let [from, to, step, format] = parameters(&request, ["from", "to", "step", "format"])?;
    let mut reader = Reader::default();
    let from = reader.time("from", from.as_deref());
    let to = reader.time("to", to.as_deref());
    let step = reader.step(step.as_deref());
    let format = reader.format(format.as_deref(), Format::OF_HISTORY);
    reader.finish()?;
    let span = span_of(&room, from, to);
    let history = in_time(history_of(&room, span, step), "step").await?;
    Ok(match format {
        Format::Csv => typed("text/csv; charset=utf-8", csv(&history.points)),
        Format::Html => {
            let report = Report::of(room.name().as_str(), None, &history.query, &history.points);
            page(report::html(&report, &history.query, &history.points))
        }
        Format::Json | Format::Text => Json(body_of(&room, &history)).into_response(),
    })
}

/// Returns the report of an event, or of any other time.
///
/// It says whether the limits held, how long visitors waited, and how true announced waits were.
/// Without parameters it is about the last hour.
#[utoipa::path(
    get,
    path = "/rooms/{room}/report",
    tag = "history",
    params(
        ("room" = String, Path, description = "Name of the room"),
        ("event" = Option<String>, Query, description = "Name of an event that has begun"),
        ("from" = Option<String>, Query, description = "Begin (RFC 3339), without `event`"),
        ("to" = Option<String>, Query, description = "End (RFC 3339), without `event`"),
        ("format" = Option<String>, Query, description = "`json`, `text`, or `html` with charts"),
    ),
    responses(
        (status = 200, description = "The report", content(
            (Report = "application/json"),
            (String = "text/plain"),
            (String = "text/html"),
        )),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["viewer"])),
)]
pub(crate) async fn show_report(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Response, ApiError> {
    actor(&inner, &request, Role::Viewer).await?;
    let room = room_of(&inner.node, name)?;
    let names = ["event", "from", "to", "format"];
    let [event, from_text, to_text, format] = parameters(&request, names)?;
    let mut reader = Reader::default();
    let from = reader.time("from", from_text.as_deref());
    let to = reader.time("to", to_text.as_deref());
    let format = reader.format(format.as_deref(), Format::OF_REPORT);
    let event = event.as_deref();
    if event.is_some() && (from_text.is_some() || to_text.is_some()) {
        reader.refuse("event", "allowed is either an event, or `from` and `to`");
    }
    reader.finish()?;
    let of = event.map_or_else(
        || {
            let (from, to) = span_of(&room, from, to);
            ReportOf::Span(from, to)
        },
        ReportOf::Event,
    );
    let (report, history) = in_time(report_of(&room, of), "from").await?;
    Ok(match format {
        Format::Text => typed("text/plain; charset=utf-8", report::text(&report)),
        Format::Html => page(report::html(&report, &history.query, &history.points)),
        Format::Json | Format::Csv => Json(report).into_response(),
    })
}

/// Returns the time that a request is about: the last hour, or the hour before `to`.
fn span_of(
    room: &RoomHandle,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> (Timestamp, Timestamp) {
    let to = to.unwrap_or_else(|| room.now());
    let from = from.unwrap_or_else(|| Timestamp(to.0.saturating_sub(SHOWN.0)));
    (from, to)
}

/// Reads a history before the deadline. `length` is the parameter that makes it shorter.
async fn in_time<T>(
    read: impl Future<Output = Result<T, HistoryError>>,
    length: &str,
) -> Result<T, ApiError> {
    let Ok(done) = timeout(COMMAND_TIMEOUT, read).await else {
        return Err(ApiError::StoreUnavailable);
    };
    done.map_err(|error| refused(error, length))
}

fn refused(error: HistoryError, length: &str) -> ApiError {
    let (key, message) = match error {
        HistoryError::NoEvent { events } => {
            let events = if events.is_empty() {
                "none".to_owned()
            } else {
                events.join(", ")
            };
            return ApiError::UnknownEvent { events };
        }
        HistoryError::Store(_) => return ApiError::StoreUnavailable,
        HistoryError::NotBegun { begins_at } => {
            let begins_at = rfc3339_secs(begins_at);
            let message = format!("it begins at {begins_at}; allowed is one that has begun");
            ("event", message)
        }
        HistoryError::Query(error @ QueryError::Empty) => ("to", error.to_string()),
        HistoryError::Query(error @ QueryError::TooMany { .. }) => (length, error.to_string()),
        HistoryError::Query(error) => ("step", error.to_string()),
    };
    let mut reader = Reader::default();
    reader.refuse(key, &message);
    let problems = reader.problems;
    ApiError::NotAllowed { problems }
}

fn body_of(room: &RoomHandle, history: &RoomHistory) -> HistoryBody {
    let query = &history.query;
    HistoryBody {
        room: room.name().to_string(),
        from: rfc3339_secs(query.from.starts_at()),
        until: rfc3339_secs(query.until.starts_at()),
        step_minutes: query.step,
        points: history.points.iter().map(HistoryPoint::from).collect(),
    }
}

fn typed(content_type: &'static str, body: String) -> Response {
    let headers = [(CONTENT_TYPE, HeaderValue::from_static(content_type))];
    (headers, body).into_response()
}

/// Returns a page, which has its styles and charts inside and fetches nothing.
fn page(html: String) -> Response {
    let mut response = typed("text/html; charset=utf-8", html);
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    response
}
