//! Report as one HTML page: no script, nothing fetched, all charts inside, so that the file can be
//! mailed. Each chart is described, and a table has its numbers.

use std::fmt::Write as _;

use super::Report;
use super::charts::charts;
use super::text::{lines, span, title};
use crate::chart::escape::escape;
use crate::points::{HistoryPoint, Point, Query};

const STYLE: &str = include_str!("page.css");

/// Column of the table: name, and the value of a point.
type Column = (&'static str, fn(&HistoryPoint) -> Option<u64>);

const COLUMNS: [Column; 11] = [
    ("Came", |point| Some(point.arrivals)),
    ("Admitted", |point| Some(point.admitted)),
    ("Limit per minute", |point| {
        point.new_users_per_minute_max.map(u64::from)
    }),
    ("Most active", |point| point.active_max.map(u64::from)),
    ("Limit of active", |point| {
        point.total_active_users_max.map(u64::from)
    }),
    ("Most waiting", |point| point.waiting_max.map(u64::from)),
    ("Left", |point| Some(point.abandoned)),
    ("Half waited, ms", |point| point.wait_p50_ms),
    ("Nine of ten waited, ms", |point| point.wait_p90_ms),
    ("Origin, 95 of 100, ms", |point| point.origin_p95_ms),
    ("Server errors", |point| Some(point.origin_5xx)),
];

/// Returns the page of a report about these points.
#[must_use]
pub fn html(report: &Report, query: &Query, points: &[Point]) -> String {
    let name = escape(&title(report));
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"anteroom report\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{name}</h1>\n<p>{}</p>\n<h2>Summary</h2>\n<dl>\n",
        escape(&span(report))
    );
    for line in lines(report) {
        let (class, mark) = if line.is_bad {
            (" class=\"bad\"", "<b>Look here:</b> ")
        } else {
            ("", "")
        };
        push(
            &mut html,
            format_args!(
                "<dt>{}</dt><dd{class}>{mark}{}</dd>\n",
                escape(line.name),
                escape(&line.words)
            ),
        );
    }
    html.push_str("</dl>\n<h2>Charts</h2>\n");
    for chart in charts(query, points) {
        push(
            &mut html,
            format_args!(
                "<figure>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" \
                 aria-label=\"{}\">\n{}</div>\n<figcaption>{}</figcaption>\n</figure>\n",
                escape(&chart.title),
                chart.svg,
                escape(&chart.description)
            ),
        );
    }
    push_table(&mut html, points);
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn push_table(html: &mut String, points: &[Point]) {
    html.push_str(
        "<h2>Numbers</h2>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" \
         aria-label=\"Numbers by time\">\n<table>\n\
         <caption>The numbers of the charts. Times are in UTC; percentiles are right to 10 %.\
         </caption>\n<thead>\n<tr><th scope=\"col\">Time</th>",
    );
    for (name, _) in COLUMNS {
        push(html, format_args!("<th scope=\"col\">{name}</th>"));
    }
    html.push_str("</tr>\n</thead>\n<tbody>\n");
    for point in points {
        let point = HistoryPoint::from(point);
        push(
            html,
            format_args!("<tr><th scope=\"row\">{}</th>", escape(&point.at)),
        );
        for (_, value) in COLUMNS {
            match value(&point) {
                Some(value) => push(html, format_args!("<td>{value}</td>")),
                None => html.push_str("<td>unknown</td>"),
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
}

fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    html.write_fmt(text)
        .expect("writing to a string cannot fail");
}
