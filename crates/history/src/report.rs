//! Report of an event or of any other time: did the limits hold, and how did visitors fare?

mod charts;
mod page;
mod text;

use anteroom_config::time_text::rfc3339_secs;
use anteroom_room::histogram::Histogram;
use anteroom_room::time::Minute;
use serde::Serialize;
use utoipa::ToSchema;

use crate::figures::StatusClass;
use crate::points::{Point, Query};
pub use page::html;
pub use text::text;

/// Most minutes over a limit that a report lists.
const LISTED_MAX: usize = 10;

/// Report of a room over some time.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Name of the room.
    pub room: String,
    /// Name of the event that the report is about; `None` for any other time.
    pub event: Option<String>,
    /// Begin, in room time: `2026-11-29T10:00:00Z`.
    pub from: String,
    /// End.
    pub until: String,
    /// Minutes of each point that was checked: 1, or 15 and more once the minutes are gone.
    pub step_minutes: u64,
    /// Points without any row: nothing is known of them.
    pub missing_points: u64,
    /// Whether all nodes together admitted no more than `new_users_per_minute`.
    pub admissions: LimitCheck,
    /// Whether no more than `total_active_users` were active.
    pub active: LimitCheck,
    /// Visitors who came without a ticket.
    pub arrivals: u64,
    /// Visitors admitted under the limits.
    pub admitted: u64,
    /// Visitors admitted outside the limits: no limit applies to them.
    pub admitted_outside_limits: u64,
    /// Responses that rejected a visitor.
    pub rejected: u64,
    /// Visitors who stopped waiting without an admission.
    pub abandoned: u64,
    /// Sessions that the origin ended.
    pub revoked: u64,
    /// Waits of admitted visitors who waited.
    pub waits: Lengths,
    /// Times inside, of sessions that ended.
    pub inside: Lengths,
    /// Inversions: how much later admitted visitors arrived than others who still waited.
    pub inversions: Lengths,
    /// Most visitors who waited at once.
    pub most_waiting: u32,
    /// Use of the limits while visitors waited.
    pub fill: Fill,
    /// First announced waits, by how they came true.
    pub announced: Announced,
    /// Responses of the origins.
    pub origin: Origin,
}

/// Comparison of counts with a limit.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitCheck {
    /// Whether no point was above the limit; `None` if none could be checked.
    pub held: Option<bool>,
    /// Point that came nearest to the limit, or exceeded it most.
    pub nearest: Option<AtLimit>,
    /// Points above the limit, the first ten.
    pub above: Vec<AtLimit>,
    /// Number of points above the limit.
    pub above_total: u64,
    /// Points whose limit is not known, because no ledger replied.
    pub unchecked: u64,
}

/// Count of a point and its limit.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AtLimit {
    /// Begin of the point.
    pub at: String,
    /// Count.
    pub count: u64,
    /// Limit of that point: the highest one in force.
    pub limit: u64,
}

/// Lengths of time, right to 10 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lengths {
    /// Number of lengths.
    pub count: u64,
    /// Median in milliseconds.
    pub p50_ms: Option<u64>,
    /// Length that nine of ten did not exceed.
    pub p90_ms: Option<u64>,
    /// Length that 99 of 100 did not exceed.
    pub p99_ms: Option<u64>,
    /// Longest one.
    pub max_ms: Option<u64>,
}

/// Use of the limits, in per mille, over the points in which visitors waited from begin to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fill {
    /// Number of these points.
    pub points: u64,
    /// Active visitors at the end of points, by their limit.
    pub active_per_mille: Option<u64>,
    /// Admissions by their limit. Where all seats are taken, it is no fault that this is low.
    pub admissions_per_mille: Option<u64>,
}

/// Announced waits, by how they came true.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Announced {
    /// Admissions within the range.
    pub right: u64,
    /// Earlier admissions.
    pub early: u64,
    /// Later admissions.
    pub late: u64,
    /// Visitors who left after the range had passed: a miss as well.
    pub left_after: u64,
    /// Visitors who left before; nobody knows what their wait would have been.
    pub left_before: u64,
    /// Share of right ones among the first four, in per mille; `None` without any.
    pub right_per_mille: Option<u64>,
}

/// Responses of the origins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Times until the heads of responses.
    pub latency: Lengths,
    /// Responses with status 500 and above.
    pub server_errors: u64,
    /// Requests without a response.
    pub without_response: u64,
}

impl Report {
    /// Makes the report of a room from its points, which are those of `query`.
    #[must_use]
    pub fn of(room: &str, event: Option<&str>, query: &Query, points: &[Point]) -> Self {
        let all = sum(points);
        let (figures, announced) = (&all.figures, &all.figures.announced);
        let [left_before, left_after] =
            [announced.left_before, announced.left_after].map(|left| left.max(0).unsigned_abs());
        let expected = (query.until.0 - query.from.0).div_ceil(query.step.max(1));
        let status = |class: StatusClass| figures.origin.statuses[class as usize];
        Self {
            room: room.to_owned(),
            event: event.map(str::to_owned),
            from: time(query.from),
            until: time(query.until),
            step_minutes: query.step,
            missing_points: expected.saturating_sub(points.len() as u64),
            admissions: check(points, |point, before| {
                let limit = u64::from(admissions_limit(point, before)) * point.minutes;
                (point.figures.admitted, limit)
            }),
            active: check(points, |point, before| {
                let limit = active_limit(point, before);
                (point.room.active.max.into(), limit.into())
            }),
            arrivals: figures.arrivals,
            admitted: figures.admitted,
            admitted_outside_limits: figures.admitted_outside_limits,
            rejected: figures.rejected,
            abandoned: figures.abandoned(),
            revoked: figures.revoked,
            waits: lengths(&figures.waits),
            inside: lengths(&figures.inside),
            inversions: lengths(&figures.inversions),
            most_waiting: all.room.waiting.max,
            fill: fill(points),
            announced: Announced {
                right: announced.right,
                early: announced.early,
                late: announced.late,
                left_after,
                left_before,
                right_per_mille: per_mille(
                    announced.right,
                    announced.right + announced.early + announced.late + left_after,
                ),
            },
            origin: Origin {
                latency: lengths(&figures.origin.latency),
                server_errors: status(StatusClass::ServerError),
                without_response: status(StatusClass::None),
            },
        }
    }
}

/// Returns all points as one.
fn sum(points: &[Point]) -> Point {
    let mut all = Point::default();
    for point in points {
        all.figures.add(&point.figures);
        all.room.join(&point.room);
    }
    all
}

/// Returns the highest limit that a node may have kept in a point. A node learns of a lower one
/// within a second, so the last one before counts as well.
fn admissions_limit(point: &Point, before: Option<&Point>) -> u32 {
    let last = before.map_or(0, |before| before.room.new_users_per_minute.last);
    point.room.new_users_per_minute.max.max(last)
}

/// Returns the highest number of visitors that may be active in a point. Those inside stay when a
/// limit is lowered, so as many may be active as were at the end of the point before.
fn active_limit(point: &Point, before: Option<&Point>) -> u32 {
    let last = before.map_or(0, |before| {
        before
            .room
            .active
            .last
            .max(before.room.total_active_users.last)
    });
    point.room.total_active_users.max.max(last)
}

fn check(
    points: &[Point],
    count_and_limit: impl Fn(&Point, Option<&Point>) -> (u64, u64),
) -> LimitCheck {
    let mut check = LimitCheck {
        held: None,
        nearest: None,
        above: Vec::new(),
        above_total: 0,
        unchecked: 0,
    };
    let mut before: Option<&Point> = None;
    for point in points {
        if point.room.samples == 0 {
            check.unchecked += 1;
            continue;
        }
        let is_next = |before: &&Point| before.begins.0 + before.minutes == point.begins.0;
        let (count, limit) = count_and_limit(point, before.filter(is_next));
        before = Some(point);
        let at_limit = AtLimit {
            at: time(point.begins),
            count,
            limit,
        };
        check.held = Some(check.held.unwrap_or(true) && count <= limit);
        if count > limit {
            check.above_total += 1;
            if check.above.len() < LISTED_MAX {
                check.above.push(at_limit.clone());
            }
        }
        let crosswise = |a: &AtLimit, b: &AtLimit| u128::from(a.count) * u128::from(b.limit);
        let is_nearer = check
            .nearest
            .as_ref()
            .is_none_or(|nearest| crosswise(&at_limit, nearest) > crosswise(nearest, &at_limit));
        if is_nearer {
            check.nearest = Some(at_limit);
        }
    }
    check
}

fn fill(points: &[Point]) -> Fill {
    let is_full_queue = |point: &&Point| point.room.samples > 0 && point.room.waiting.min > 0;
    let (mut fill, mut sums) = (Fill::default(), [0_u64; 4]);
    for point in points.iter().filter(is_full_queue) {
        fill.points += 1;
        let limit = u64::from(point.room.new_users_per_minute.max) * point.minutes;
        let more = [
            point.room.active.last.into(),
            point.room.total_active_users.last.into(),
            point.figures.admitted,
            limit,
        ];
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum = sum.saturating_add(more);
        }
    }
    let [active, seats, admitted, limit] = sums;
    fill.active_per_mille = per_mille(active, seats);
    fill.admissions_per_mille = per_mille(admitted, limit);
    fill
}

fn lengths(histogram: &Histogram) -> Lengths {
    let part = |per_mille| Some(histogram.percentile(per_mille)?.0);
    Lengths {
        count: histogram.total(),
        p50_ms: part(500),
        p90_ms: part(900),
        p99_ms: part(990),
        max_ms: part(1_000),
    }
}

fn per_mille(part: u64, whole: u64) -> Option<u64> {
    let quotient = (u128::from(part) * 1_000).checked_div(whole.into())?;
    Some(u64::try_from(quotient).unwrap_or(u64::MAX))
}

fn time(minute: Minute) -> String {
    rfc3339_secs(minute.starts_at())
}

#[cfg(test)]
mod tests;
