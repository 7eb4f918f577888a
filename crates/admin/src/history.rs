//! History of a room, for handlers and commands: points over time, and reports.
//!
//! It reads the rows of all nodes from the store. Those of the running minute are not written yet.

use anteroom_history::report::Report;
use anteroom_history::{Point, Query, QueryError, points};
use anteroom_node::RoomHandle;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::StoreError;

/// Length of a minute.
const MINUTE: DurationMs = DurationMs::from_secs(60);

/// Error of reading a history.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The time or the step makes no sense.
    #[error("cannot answer the query")]
    Query(#[from] QueryError),
    /// The room has no such event.
    #[error("the room has no event of this name")]
    NoEvent {
        /// Names of its events.
        events: Vec<String>,
    },
    /// The event has not begun.
    #[error("the event has not begun")]
    NotBegun {
        /// Begin of its prequeue.
        begins_at: Timestamp,
    },
    /// The store cannot be read.
    #[error("cannot read the history")]
    Store(#[source] StoreError),
}

/// History of a room.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomHistory {
    /// Time and step, as far as there are rows for them.
    pub query: Query,
    /// Points, merged over all nodes, in the order of time.
    pub points: Vec<Point>,
}

/// Time that a report is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReportOf<'a> {
    /// Time between two points in time.
    Span(Timestamp, Timestamp),
    /// An event of the room: from its prequeue to its end, or to now if it still runs.
    Event(&'a str),
}

/// Reads the history of a room between two times, with points of so many minutes. Without a step
/// there are at most 300 points.
///
/// # Errors
///
/// [`HistoryError`].
pub async fn history_of(
    room: &RoomHandle,
    (from, until): (Timestamp, Timestamp),
    step: Option<u64>,
) -> Result<RoomHistory, HistoryError> {
    let until = until.ceil_to(MINUTE).minute();
    let query = Query::new(from.minute(), until, step, room.now().minute())?;
    let rows = room.history_rows(&query).await;
    let rows = rows.map_err(HistoryError::Store)?;
    Ok(RoomHistory {
        query,
        points: points(&rows, &query),
    })
}

/// Makes the report of a room, with the points that it is about. It checks single minutes as long
/// as they are kept, and quarters of an hour afterwards.
///
/// # Errors
///
/// [`HistoryError`].
pub async fn report_of(
    room: &RoomHandle,
    of: ReportOf<'_>,
) -> Result<(Report, RoomHistory), HistoryError> {
    let (event, from, until) = match of {
        ReportOf::Span(from, until) => (None, from, until),
        ReportOf::Event(name) => {
            let (from, until) = span_of(room, name)?;
            (Some(name), from, until)
        }
    };
    // Limits are for a minute, so minutes are asked for as long as they fit.
    let minutes = until.since(from).0 / MINUTE.0;
    let step = if minutes <= 2_880 { 1 } else { 15 };
    let history = history_of(room, (from, until), Some(step)).await?;
    let name = room.name();
    let report = Report::of(name.as_str(), event, &history.query, &history.points);
    Ok((report, history))
}

/// Returns the time of an event, up to now.
fn span_of(room: &RoomHandle, name: &str) -> Result<(Timestamp, Timestamp), HistoryError> {
    let config = room.config();
    let mut events = config.events.iter();
    let Some(event) = events.find(|event| event.name.as_str() == name) else {
        let events = config.events.iter();
        return Err(HistoryError::NoEvent {
            events: events.map(|event| event.name.as_str().to_owned()).collect(),
        });
    };
    let now = room.wall_now();
    let (from, ends_at) = (event.times.prequeue_at, event.times.ends_at);
    if from >= now {
        return Err(HistoryError::NotBegun { begins_at: from });
    }
    Ok((from, ends_at.map_or(now, |ends_at| ends_at.min(now))))
}
