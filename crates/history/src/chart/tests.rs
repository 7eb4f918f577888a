//! Charts as text: escaped, captioned, the same every time, and without labels that overlap.

use anteroom_room::time::Timestamp;

use super::axis::Axis;
use super::heat::HeatChart;
use super::line::{Line, LineChart};
use super::palette::{BLUE, LIMIT, Look, Mark};
use super::{Caption, Chart};

const MARKS: [Mark; 4] = [Mark::Triangle, Mark::Cross, Mark::Dot, Mark::None];

fn caption(title: &str) -> Caption {
    Caption {
        file_name: "1-test.svg".to_owned(),
        title: title.to_owned(),
        description: "A & B".to_owned(),
    }
}

fn four_lines(title: &str) -> Chart {
    let line = |(at, mark): (usize, Mark)| Line {
        name: format!("a line with quite a long name, number {at}"),
        look: Look {
            colour: BLUE,
            mark,
            is_dashed: false,
        },
        points: (0..50)
            .map(|x| (f64::from(x) * 1_000.0, f64::from(x)))
            .collect(),
    };
    let mut lines: Vec<Line> = MARKS.into_iter().enumerate().map(line).collect();
    lines.push(Line {
        name: "limit".to_owned(),
        look: LIMIT,
        points: vec![(0.0, 40.0), (50_000.0, 40.0)],
    });
    LineChart {
        caption: caption(title),
        across: Axis::time(Timestamp(1_694_432_754_000), 50_000),
        across_is: "time".to_owned(),
        up: Axis::count(50.0),
        up_is: "visitors".to_owned(),
        lines,
    }
    .draw()
}

#[test]
fn a_chart_has_a_description_for_screen_readers() {
    let svg = four_lines("Inside").svg;
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\""));
    assert!(svg.contains("aria-labelledby=\"title-1-test text-1-test\""));
    assert!(svg.contains("<title id=\"title-1-test\">Inside</title>"));
    assert!(svg.contains("<desc id=\"text-1-test\">A &amp; B</desc>"));
    assert!(svg.trim_end().ends_with("</svg>"));
}

#[test]
fn text_from_a_file_stays_text() {
    let svg = four_lines("<script>\u{1}\u{ffff}").svg;
    assert!(!svg.contains("<script"));
    assert!(!svg.contains('\u{1}') && !svg.contains('\u{ffff}'));
    assert!(svg.contains("&lt;script&gt;"));
}

#[test]
fn the_same_chart_has_the_same_bytes() {
    assert_eq!(four_lines("Inside").svg, four_lines("Inside").svg);
}

#[test]
fn long_names_take_more_rows_and_do_not_overlap() {
    let svg = four_lines("Inside").svg;
    let mut rows: Vec<&str> = svg
        .split("<text ")
        .zip(svg.split("<text ").skip(1))
        .filter(|(_, text)| text.contains("quite a long name"))
        .filter_map(|(_, text)| text.split('"').nth(3))
        .collect();
    rows.dedup();
    assert!(rows.len() > 1, "{rows:?}");
}

#[test]
fn the_darkest_shade_is_for_the_most_and_the_lightest_for_nothing() {
    let chart = HeatChart {
        caption: caption("Waiting"),
        across: Axis::time(Timestamp(0), 60_000),
        across_is: "time".to_owned(),
        shaded_is: "visitors:".to_owned(),
        rows: vec![
            ("San Jose".to_owned(), vec![0, 1, 50, 100, 100]),
            ("<b>".to_owned(), vec![]),
        ],
        most: 100,
    };
    let svg = chart.draw().svg;
    let count = |colour: &str| svg.matches(colour).count();
    // Each shade once in the key; two equal columns that touch are one rectangle.
    assert_eq!(count("#F2F2F2"), 2);
    assert_eq!(count("#C6DBEF"), 2);
    assert_eq!(count("#4D9CCB"), 2);
    assert_eq!(count("#08306B"), 2);
    assert!(svg.contains("&lt;b&gt;"));
}

#[test]
fn an_empty_chart_is_drawn() {
    let empty = LineChart {
        caption: caption("Nothing"),
        across: Axis::time(Timestamp(0), 0),
        across_is: String::new(),
        up: Axis::count(0.0),
        up_is: String::new(),
        lines: vec![Line {
            name: String::new(),
            look: LIMIT,
            points: vec![],
        }],
    };
    assert!(empty.draw().svg.contains("</svg>"));
}
