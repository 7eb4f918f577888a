//! Charts of a report.

use anteroom_room::time::Minute;

use crate::chart::axis::{Axis, as_f64};
use crate::chart::line::{Line, LineChart};
use crate::chart::palette::{BLUE, GREEN, LIMIT, Look, Mark, ORANGE, PURPLE};
use crate::chart::{Caption, Chart, MARK};
use crate::figures::StatusClass;
use crate::points::{Point, Query};

/// Milliseconds of a minute.
const MINUTE: u64 = 60_000;

const fn look(colour: crate::chart::palette::Colour, mark: Mark) -> Look {
    Look {
        colour,
        mark,
        is_dashed: false,
    }
}

/// Returns the charts: active visitors, the queue, admissions, waits, and the origin.
pub(super) fn charts(query: &Query, points: &[Point]) -> Vec<Chart> {
    let draft = Draft { query, points };
    visitors(&draft).into_iter().chain(times(&draft)).collect()
}

fn visitors(draft: &Draft<'_>) -> [Chart; 3] {
    let known = |value: fn(&Point) -> u32| {
        move |point: &Point| (point.room.samples > 0).then(|| f64::from(value(point)))
    };
    [
        draft.draw(
            ("active", "Active visitors", "visitors"),
            "The most active visitors of each step, and the limit of active visitors.",
            vec![
                draft.line(
                    "active",
                    look(BLUE, Mark::Dot),
                    known(|p| p.room.active.max),
                ),
                draft.line("limit", LIMIT, known(|p| p.room.total_active_users.max)),
            ],
        ),
        draft.draw(
            ("waiting", "Waiting visitors", "visitors"),
            "The most waiting visitors of each step, and those who left without an admission.",
            vec![
                draft.line(
                    "waiting",
                    look(ORANGE, Mark::Triangle),
                    known(|p| p.room.waiting.max),
                ),
                draft.line("left", look(PURPLE, Mark::Cross), |point: &Point| {
                    Some(as_f64(point.figures.abandoned()))
                }),
            ],
        ),
        draft.draw(
            (
                "admissions",
                "Arrivals and admissions per minute",
                "visitors",
            ),
            "New visitors and admissions of each step, per minute, and the limit of admissions.",
            vec![
                draft.line("came", look(PURPLE, Mark::Cross), |point: &Point| {
                    Some(as_f64(point.figures.arrivals) / as_f64(point.minutes.max(1)))
                }),
                draft.line("admitted", look(GREEN, Mark::Dot), |point: &Point| {
                    Some(as_f64(point.figures.admitted) / as_f64(point.minutes.max(1)))
                }),
                draft.line("limit", LIMIT, known(|p| p.room.new_users_per_minute.max)),
            ],
        ),
    ]
}

fn times(draft: &Draft<'_>) -> [Chart; 3] {
    let secs = |ms: u64| as_f64(ms) / 1_000.0;
    let wait =
        |per_mille| move |point: &Point| Some(secs(point.figures.waits.percentile(per_mille)?.0));
    let latency = |per_mille| {
        move |point: &Point| {
            Some(as_f64(
                point.figures.origin.latency.percentile(per_mille)?.0,
            ))
        }
    };
    [
        draft.draw(
            ("waits", "Waits of admitted visitors", "seconds"),
            "How long visitors had waited who were admitted in each step: half of them, and nine \
             of ten.",
            vec![
                draft.line("half", look(BLUE, Mark::Dot), wait(500)),
                draft.line("nine of ten", look(ORANGE, Mark::Triangle), wait(900)),
            ],
        ),
        draft.draw(
            ("origin", "Response times of the origin", "milliseconds"),
            "Times until the head of a response: half of them, and 95 of 100.",
            vec![
                draft.line("half", look(BLUE, Mark::Dot), latency(500)),
                draft.line("95 of 100", look(ORANGE, Mark::Triangle), latency(950)),
            ],
        ),
        draft.draw(
            ("errors", "Server errors and missing responses", "requests"),
            "Responses with status 500 and above, and requests without a response.",
            vec![
                draft.line("errors", look(ORANGE, Mark::Cross), |point: &Point| {
                    let statuses = &point.figures.origin.statuses;
                    let errors = [StatusClass::ServerError, StatusClass::None];
                    let errors = errors.map(|class| statuses[class as usize]);
                    Some(as_f64(errors[0].saturating_add(errors[1])))
                }),
            ],
        ),
    ]
}

struct Draft<'a> {
    query: &'a Query,
    points: &'a [Point],
}

impl Draft<'_> {
    /// Returns a line through the known values, each in the middle of its step.
    fn line(&self, name: &str, look: Look, value: impl Fn(&Point) -> Option<f64>) -> Line {
        let begin = self.query.from;
        let at = |minute: Minute| as_f64((minute.0 - begin.0) * MINUTE);
        let middle = as_f64(self.query.step * MINUTE / 2);
        let points = self.points.iter();
        let points = points.filter_map(|point| Some((at(point.begins) + middle, value(point)?)));
        Line {
            name: name.to_owned(),
            look,
            points: points.collect(),
        }
    }

    fn draw(
        &self,
        (slug, title, up_is): (&str, &str, &str),
        about: &str,
        lines: Vec<Line>,
    ) -> Chart {
        let heights = lines.iter().flat_map(|line| &line.points);
        let most = heights.map(|(_, height)| *height).fold(0.0, f64::max);
        let length = (self.query.until.0 - self.query.from.0) * MINUTE;
        let mut chart = LineChart {
            caption: Caption {
                file_name: format!("{slug}.svg"),
                title: title.to_owned(),
                description: about.to_owned(),
            },
            across: Axis::time(self.query.from.starts_at(), length),
            across_is: "time of day (UTC)".to_owned(),
            up: Axis::count(most * 1.05),
            up_is: up_is.to_owned(),
            lines,
        }
        .draw();
        // The mark is for files of the simulator, and this chart is part of a page.
        chart.svg = chart.svg.replacen(&format!("{MARK}\n"), "", 1);
        chart
    }
}
