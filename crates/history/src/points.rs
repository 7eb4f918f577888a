//! Points over time, merged over all nodes.

use std::collections::{BTreeMap, BTreeSet};

use anteroom_config::time_text::rfc3339_secs;
use anteroom_room::histogram::Histogram;
use anteroom_room::time::Minute;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::figures::{NodeFigures, RoomFigures, StatusClass};
use crate::row::Row;

/// Minutes of a row of a quarter of an hour.
const QUARTER: u64 = 15;
/// Minutes for which rows of single minutes are kept.
const MINUTES_KEPT: u64 = 48 * 60;
/// Most points of a query: more than 31 days of quarters of an hour, or 48 hours of minutes.
const POINTS_MAX: u64 = 3_000;
/// Points of a query without a step: enough for a chart.
const POINTS_SHOWN: u64 = 300;
/// Longest step: a day.
const STEP_MAX: u64 = 24 * 60;

/// Time and resolution that a reader asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Query {
    /// First minute, a multiple of the step.
    pub from: Minute,
    /// First minute after the last point.
    pub until: Minute,
    /// Minutes of a point: below 15, or a multiple of 15.
    pub step: u64,
}

/// Reason why a query cannot be answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The end is not after the begin.
    #[error("`to` must be later than `from`")]
    Empty,
    /// The step is too small or too large.
    #[error("`step` must be 1 to {STEP_MAX} minutes")]
    Step,
    /// Number of points is too large.
    #[error("{points} points are more than {POINTS_MAX}: ask for less time or a longer step")]
    TooMany {
        /// Number of points.
        points: u64,
    },
}

impl Query {
    /// Makes a query. Without a step it gets one for at most 300 points. A step is lengthened to
    /// what the rows have: a multiple of 15 minutes from 15 on, or if the time begins more than 48
    /// hours before `now`. Both ends are widened to whole steps.
    ///
    /// # Errors
    ///
    /// [`QueryError`].
    pub fn new(
        from: Minute,
        until: Minute,
        step: Option<u64>,
        now: Minute,
    ) -> Result<Self, QueryError> {
        if until <= from {
            return Err(QueryError::Empty);
        }
        let length = until.0 - from.0;
        let step = step.unwrap_or_else(|| length.div_ceil(POINTS_SHOWN).min(STEP_MAX));
        if !(1..=STEP_MAX).contains(&step) {
            return Err(QueryError::Step);
        }
        let has_minutes = from.0 >= now.0.saturating_sub(MINUTES_KEPT);
        let step = if step < QUARTER && has_minutes {
            step
        } else {
            step.next_multiple_of(QUARTER)
        };
        let from = Minute(from.0 - from.0 % step);
        let until = Minute(until.0.div_ceil(step).saturating_mul(step));
        let points = (until.0 - from.0).div_ceil(step);
        if points > POINTS_MAX {
            return Err(QueryError::TooMany { points });
        }
        Ok(Self { from, until, step })
    }

    /// Returns the minutes of the rows that it needs: 1 or 15.
    #[must_use]
    pub const fn row_minutes(&self) -> u64 {
        if self.step < QUARTER { 1 } else { QUARTER }
    }
}

/// Figures of a room over some minutes, at all nodes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Point {
    /// First minute.
    pub begins: Minute,
    /// Minutes.
    pub minutes: u64,
    /// Processes that counted.
    pub nodes: BTreeSet<u64>,
    /// Figures of all nodes together.
    pub figures: NodeFigures,
    /// Figures of the room.
    pub room: RoomFigures,
}

/// Merges the rows of all nodes into points, in the order of time. There is no point where there
/// are no rows. Rows of another length than the query needs are left out.
#[must_use]
pub fn points(rows: &[Row], query: &Query) -> Vec<Point> {
    let mut points: BTreeMap<Minute, Point> = BTreeMap::new();
    let step = query.step.max(1);
    let is_wanted = |row: &&Row| {
        row.minutes == query.row_minutes() && (query.from..query.until).contains(&row.begins)
    };
    for row in rows.iter().filter(is_wanted) {
        let begins = Minute(row.begins.0 - row.begins.0 % step);
        let point = points.entry(begins).or_insert_with(|| Point {
            begins,
            minutes: step,
            ..Point::default()
        });
        point.nodes.insert(row.node);
        point.figures.add(&row.figures);
        point.room.join(&row.room);
    }
    points.into_values().collect()
}

/// Point as JSON and CSV have it: flat, with percentiles instead of histograms. Times are in
/// milliseconds. A value that is not known is missing.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryPoint {
    /// Begin, in room time: `2026-11-29T10:00:00Z`.
    pub at: String,
    /// Length of the point in minutes.
    pub minutes: u64,
    /// Number of processes that counted.
    pub nodes: usize,
    /// Visitors who came without a ticket.
    pub arrivals: u64,
    /// Visitors admitted under the limits.
    pub admitted: u64,
    /// Visitors admitted outside the limits.
    pub admitted_outside_limits: u64,
    /// Responses that rejected a visitor.
    pub rejected: u64,
    /// Visitors who stopped waiting without an admission.
    pub abandoned: u64,
    /// Sessions that the origin ended.
    pub revoked: u64,
    /// Admitted visitors who waited.
    pub waited: u64,
    /// Median of their waits.
    pub wait_p50_ms: Option<u64>,
    /// Wait that nine of ten did not exceed.
    pub wait_p90_ms: Option<u64>,
    /// Sessions that ended.
    pub sessions: u64,
    /// Median of the times inside.
    pub inside_p50_ms: Option<u64>,
    /// Time inside that nine of ten did not exceed.
    pub inside_p90_ms: Option<u64>,
    /// Inversion that 99 of 100 admissions did not exceed: how much later an admitted visitor
    /// arrived than another who still waited.
    pub inversion_p99_ms: Option<u64>,
    /// Median of the origins' response times.
    pub origin_p50_ms: Option<u64>,
    /// Response time that 95 of 100 did not exceed.
    pub origin_p95_ms: Option<u64>,
    /// Responses with status 100 to 199.
    pub origin_1xx: u64,
    /// Responses with status 200 to 299.
    pub origin_2xx: u64,
    /// Responses with status 300 to 399.
    pub origin_3xx: u64,
    /// Responses with status 400 to 499.
    pub origin_4xx: u64,
    /// Responses with status 500 and above.
    pub origin_5xx: u64,
    /// Requests without a response.
    pub origin_none: u64,
    /// Admissions within the first announced range.
    pub announced_right: u64,
    /// Earlier admissions.
    pub announced_early: u64,
    /// Later admissions.
    pub announced_late: u64,
    /// Visitors who left before the announced range had passed.
    pub left_before: u64,
    /// Visitors who left after the announced range had passed.
    pub left_after: u64,
    /// Fewest active visitors.
    pub active_min: Option<u32>,
    /// Most active visitors.
    pub active_max: Option<u32>,
    /// Active visitors at the end.
    pub active_last: Option<u32>,
    /// Fewest waiting visitors.
    pub waiting_min: Option<u32>,
    /// Most waiting visitors.
    pub waiting_max: Option<u32>,
    /// Waiting visitors at the end.
    pub waiting_last: Option<u32>,
    /// Lowest limit of active visitors.
    pub total_active_users_min: Option<u32>,
    /// Highest limit of active visitors.
    pub total_active_users_max: Option<u32>,
    /// Lowest limit of admissions in a minute.
    pub new_users_per_minute_min: Option<u32>,
    /// Highest limit of admissions in a minute.
    pub new_users_per_minute_max: Option<u32>,
}

impl From<&Point> for HistoryPoint {
    fn from(point: &Point) -> Self {
        let (figures, room) = (&point.figures, &point.room);
        let known = |value: u32| (room.samples > 0).then_some(value);
        let part = |histogram: &Histogram, per_mille| Some(histogram.percentile(per_mille)?.0);
        let status = |class: StatusClass| figures.origin.statuses[class as usize];
        let left = |count: i64| count.max(0).unsigned_abs();
        Self {
            at: rfc3339_secs(point.begins.starts_at()),
            minutes: point.minutes,
            nodes: point.nodes.len(),
            arrivals: figures.arrivals,
            admitted: figures.admitted,
            admitted_outside_limits: figures.admitted_outside_limits,
            rejected: figures.rejected,
            abandoned: figures.abandoned(),
            revoked: figures.revoked,
            waited: figures.waits.total(),
            wait_p50_ms: part(&figures.waits, 500),
            wait_p90_ms: part(&figures.waits, 900),
            sessions: figures.inside.total(),
            inside_p50_ms: part(&figures.inside, 500),
            inside_p90_ms: part(&figures.inside, 900),
            inversion_p99_ms: part(&figures.inversions, 990),
            origin_p50_ms: part(&figures.origin.latency, 500),
            origin_p95_ms: part(&figures.origin.latency, 950),
            origin_1xx: status(StatusClass::Informational),
            origin_2xx: status(StatusClass::Success),
            origin_3xx: status(StatusClass::Redirect),
            origin_4xx: status(StatusClass::ClientError),
            origin_5xx: status(StatusClass::ServerError),
            origin_none: status(StatusClass::None),
            announced_right: figures.announced.right,
            announced_early: figures.announced.early,
            announced_late: figures.announced.late,
            left_before: left(figures.announced.left_before),
            left_after: left(figures.announced.left_after),
            active_min: known(room.active.min),
            active_max: known(room.active.max),
            active_last: known(room.active.last),
            waiting_min: known(room.waiting.min),
            waiting_max: known(room.waiting.max),
            waiting_last: known(room.waiting.last),
            total_active_users_min: known(room.total_active_users.min),
            total_active_users_max: known(room.total_active_users.max),
            new_users_per_minute_min: known(room.new_users_per_minute.min),
            new_users_per_minute_max: known(room.new_users_per_minute.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First minute of a day, and of a step of 7 minutes.
    const DAY: u64 = 1_440 * 21_000;

    fn query(from: u64, until: u64, step: Option<u64>) -> Result<(u64, u64, u64), QueryError> {
        let now = Minute(DAY + 2_880);
        let query = Query::new(Minute(DAY + from), Minute(DAY + until), step, now)?;
        Ok((query.from.0 - DAY, query.until.0 - DAY, query.step))
    }

    #[test]
    fn a_query_has_steps_that_rows_have() {
        assert_eq!(query(1, 61, Some(7)), Ok((0, 63, 7)));
        assert_eq!(query(1, 61, Some(16)), Ok((0, 90, 30)));
        assert_eq!(query(0, 240, None), Ok((0, 240, 1)));
        assert_eq!(query(0, 2_880, None), Ok((0, 2_880, 10)));
        let long = Query::new(Minute(DAY - 1), Minute(DAY + 9), None, Minute(DAY + 2_880));
        assert_eq!(long.unwrap().step, 15, "its minutes are gone");
    }

    #[test]
    fn a_query_that_cannot_be_answered_says_why() {
        assert_eq!(query(5, 5, None), Err(QueryError::Empty));
        assert_eq!(query(5, 6, Some(0)), Err(QueryError::Step));
        assert_eq!(query(5, 6, Some(1_441)), Err(QueryError::Step));
        let many = QueryError::TooMany { points: 3_001 };
        assert_eq!(query(0, 3_001, Some(1)), Err(many));
    }

    #[test]
    fn nodes_are_added_and_the_room_is_not() {
        let row = |node, minute: u64, active| {
            let mut row = Row {
                begins: Minute(DAY + minute),
                minutes: 1,
                node,
                ..Row::default()
            };
            row.figures.admitted = 10;
            row.room.samples = 1;
            row.room.as_of = row.begins.starts_at();
            row.room.active.max = active;
            row.room.active.last = active;
            row
        };
        let rows = [row(1, 0, 50), row(2, 0, 50), row(1, 1, 60), row(1, 9, 1)];
        let query = Query::new(Minute(DAY), Minute(DAY + 4), Some(2), Minute(DAY)).unwrap();
        let points = points(&rows, &query);
        assert_eq!(points.len(), 1, "the last row is not asked for");
        let shown = HistoryPoint::from(&points[0]);
        assert_eq!((shown.nodes, shown.admitted), (2, 30));
        assert_eq!((shown.active_max, shown.active_last), (Some(60), Some(60)));
    }
}
