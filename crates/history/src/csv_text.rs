//! Points as CSV.

use crate::points::{HistoryPoint, Point};

/// Returns points as CSV with a line of names: one line for each point, the values of
/// [`HistoryPoint`]. A value that is not known is empty.
#[must_use]
pub fn csv(points: &[Point]) -> String {
    if points.is_empty() {
        // The names come with the first point.
        let text = lines(&[Point::default()]);
        return text
            .lines()
            .take(1)
            .map(|names| format!("{names}\n"))
            .collect();
    }
    lines(points)
}

fn lines(points: &[Point]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for point in points {
        let written = writer.serialize(HistoryPoint::from(point));
        written.expect("a point is flat, and memory can be written to");
    }
    let bytes = writer.into_inner();
    let bytes = bytes.expect("memory can be written to");
    String::from_utf8(bytes).expect("names and numbers are text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anteroom_room::time::Minute;

    #[test]
    fn a_point_is_a_line_under_the_names() {
        let point = Point {
            begins: Minute(28_240_560),
            minutes: 1,
            ..Point::default()
        };
        let text = csv(&[point.clone(), point]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("at,minutes,nodes,arrivals,admitted,"));
        assert!(
            lines[1].starts_with("2023-09-11T12:00:00Z,1,0,0,0,"),
            "{}",
            lines[1]
        );
        let commas = |line: &str| line.matches(',').count();
        assert_eq!(commas(lines[0]), commas(lines[1]));
        assert_eq!(csv(&[]), format!("{}\n", lines[0]));
    }
}
