//! Charts of a report. For each room and setting: active visitors, waiting visitors, admissions and
//! waits, all allocations in one chart; then the visitors by data center.

use crate::chart::axis::{Axis, as_f64};
use crate::chart::bars::{BarChart, BarRow};
use crate::chart::heat::HeatChart;
use crate::chart::line::{Line, LineChart};
use crate::chart::palette::{GREY, LIMIT, Look, Mark};
use crate::chart::{Caption, Chart};
use anteroom_config::words;
use anteroom_room::event::EventPhase;
use anteroom_sim::outcome::{EventMark, Outcome};

use crate::look::look;
use crate::series::{self, Row};
use crate::variant::Variant;

/// Waits longer than this are drawn in minutes.
const MINUTES_FROM_MS: f64 = 600_000.0;
const TIME: &str = "time of day (UTC)";

/// Returns the charts of a variant; `prefix` distinguishes their names from those of other
/// variants.
pub(crate) fn charts(variant: &Variant<'_>, prefix: &str) -> Vec<Chart> {
    let mut charts = vec![
        inside(variant, prefix),
        waiting(variant, prefix),
        admissions(variant, prefix),
        wait(variant, prefix),
    ];
    let rows = series::rows(variant.first());
    if rows.len() > 1 {
        charts.push(by_data_center(variant, &rows, prefix));
        let most = rows.iter().flat_map(|row| {
            let outcomes = variant.outcomes.iter();
            outcomes.flat_map(|outcome| row.waiting(outcome))
        });
        let most = most.max().unwrap_or(0);
        if most > 0 {
            let outcomes = variant.outcomes.iter();
            charts.extend(outcomes.map(|outcome| heat(outcome, &rows, most, prefix)));
        }
    }
    charts
}

fn inside(variant: &Variant<'_>, prefix: &str) -> Chart {
    let mut lines = lines(variant, |outcome| {
        series::line(outcome, |sample| sample.inside.into())
    });
    let limit = series::line(variant.first(), |sample| sample.seats_limit.into());
    lines.push(limit_line(limit));
    let caption = caption(
        prefix,
        "inside",
        "Active visitors, against the limit",
        "The dashed line is the limit. A line above it means more visitors on the site than \
         allowed.",
    );
    over_time(variant, caption, "visitors inside", lines)
}

fn waiting(variant: &Variant<'_>, prefix: &str) -> Chart {
    let lines = lines(variant, |outcome| {
        series::line(outcome, |sample| sample.waiting.into())
    });
    let caption = caption(
        prefix,
        "waiting",
        "Waiting visitors",
        "Number of waiting visitors at each moment.",
    );
    over_time(variant, caption, "waiting visitors", lines)
}

fn admissions(variant: &Variant<'_>, prefix: &str) -> Chart {
    let mut lines = lines(variant, series::admissions);
    let limit = series::line(variant.first(), |sample| sample.rate_limit.into());
    lines.push(limit_line(limit));
    let caption = caption(
        prefix,
        "admissions",
        "Admissions a minute, against the limit",
        "Each step is a calendar minute; the dashed line is the limit. A step above it means that \
         more visitors came in within that minute than allowed.",
    );
    over_time(variant, caption, "admissions in the minute", lines)
}

fn wait(variant: &Variant<'_>, prefix: &str) -> Chart {
    let mut lines = lines(variant, series::wait);
    let most = highest(&lines);
    let (unit, unit_ms) = if most > MINUTES_FROM_MS {
        ("minutes", 60_000.0)
    } else {
        ("seconds", 1_000.0)
    };
    for line in &mut lines {
        for (_, ms) in &mut line.points {
            *ms /= unit_ms;
        }
    }
    let caption = caption(
        prefix,
        "wait",
        "Wait of admitted visitors",
        "The mean wait of visitors who got in at that moment after they had waited; 0 where nobody \
         waits.",
    );
    over_time(variant, caption, &format!("wait in {unit}"), lines)
}

/// Draws the arrivals and the admissions by data center.
fn by_data_center(variant: &Variant<'_>, rows: &[Row], prefix: &str) -> Chart {
    let first = variant.first();
    let bars: Vec<BarRow> = rows
        .iter()
        .map(|row| BarRow {
            name: row.name.clone(),
            bar: as_f64(row.came(first)),
            marks: variant
                .outcomes
                .iter()
                .map(|outcome| as_f64(row.admitted(outcome)))
                .collect(),
        })
        .collect();
    let values = bars
        .iter()
        .flat_map(|row| row.marks.iter().chain([&row.bar]));
    let most = values.copied().fold(0.0, f64::max);
    let marks = variant.outcomes.iter();
    BarChart {
        caption: caption(
            prefix,
            "by-data-center",
            "Arrivals and admissions, by data center",
            "The grey bar shows the visitors who came to a data center during the run. Each mark \
             shows how many of them an allocation admitted.",
        ),
        across: Axis::count(most),
        across_is: "visitors during the whole run".to_owned(),
        bars_are: "came".to_owned(),
        marks: marks
            .map(|outcome| {
                (
                    format!("admitted: {}", name(outcome)),
                    look(outcome.allocation),
                )
            })
            .collect(),
        rows: bars,
    }
    .draw()
}

fn heat(outcome: &Outcome, rows: &[Row], most: u32, prefix: &str) -> Chart {
    let name = name(outcome);
    HeatChart {
        caption: caption(
            prefix,
            &format!("waiting-by-data-center-{name}"),
            &format!("Waiting visitors by data center, with {name}"),
            "One row for each data center; a darker shade is more waiting visitors at that time.",
        ),
        across: Axis::time(outcome.starts_at, outcome.length.0),
        across_is: TIME.to_owned(),
        shaded_is: "waiting visitors:".to_owned(),
        rows: rows
            .iter()
            .map(|row| (row.name.clone(), row.waiting(outcome)))
            .collect(),
        most,
    }
    .draw()
}

fn over_time(variant: &Variant<'_>, caption: Caption, up_is: &str, mut lines: Vec<Line>) -> Chart {
    let first = variant.first();
    let top = highest(&lines);
    lines.extend(first.events.iter().map(|mark| edge(mark, top)));
    LineChart {
        caption,
        across: Axis::time(first.starts_at, first.length.0),
        across_is: TIME.to_owned(),
        up: Axis::count(highest(&lines)),
        up_is: up_is.to_owned(),
        lines,
    }
    .draw()
}

/// Returns a line for each allocation; later ones are drawn over earlier ones.
fn lines(variant: &Variant<'_>, points: impl Fn(&Outcome) -> Vec<(f64, f64)>) -> Vec<Line> {
    let line = |outcome: &&Outcome| Line {
        name: name(outcome).to_owned(),
        look: look(outcome.allocation),
        points: points(outcome),
    };
    variant.outcomes.iter().map(line).collect()
}

/// Returns an upright line where an event reaches a phase.
fn edge(mark: &EventMark, top: f64) -> Line {
    let at = as_f64(mark.at_ms);
    Line {
        name: format!("{}: {}", mark.event, mark.phase.name()),
        look: Look {
            colour: GREY,
            mark: match mark.phase {
                EventPhase::Upcoming | EventPhase::Prequeue => Mark::Dot,
                EventPhase::Running => Mark::Triangle,
                EventPhase::Over => Mark::Cross,
            },
            is_dashed: true,
        },
        points: vec![(at, 0.0), (at, top)],
    }
}

fn limit_line(points: Vec<(f64, f64)>) -> Line {
    Line {
        name: "limit".to_owned(),
        look: LIMIT,
        points,
    }
}

fn highest(lines: &[Line]) -> f64 {
    let heights = lines.iter().flat_map(|line| &line.points);
    heights.map(|(_, height)| *height).fold(0.0, f64::max)
}

const fn name(outcome: &Outcome) -> &'static str {
    words::allocation(outcome.allocation)
}

fn caption(prefix: &str, slug: &str, title: &str, description: &str) -> Caption {
    Caption {
        file_name: format!("{prefix}-{slug}.svg"),
        title: title.to_owned(),
        description: description.to_owned(),
    }
}
