//! Curve of arrivals as a table: time, visitors per second, optionally a data center.
//!
//! The first line may name the columns. A time is a number of seconds or a duration since the
//! start, or a moment with its offset. The lines of each data center are in the order of time.

use std::collections::BTreeMap;
use std::sync::Arc;

use anteroom_config::Finding;
use anteroom_config::duration;
use anteroom_config::toml_file::{Kind as _, Location, Moment, Notes, quoted};
use anteroom_room::time::{DurationMs, Timestamp};
use csv::{ByteRecord, ReaderBuilder};
use toml::de::DeValue;

use super::kinds::PER_SECOND_MAX;
use super::{Frame, LENGTH_MAX, did_you_mean};
use crate::scenario::model::{Arrivals, RatePoint};

/// Most mistakes reported for one file: a file of another kind has one in every line.
const MISTAKES_MAX: usize = 20;

const TIME: &str = "a time: seconds, a duration such as 5m, or a moment such as \
                    2030-01-31T10:00:00Z, \
                    within 31 days after the start";

/// Mistake in one field.
struct Mistake {
    line: usize,
    column: &'static str,
    finding: Finding,
    allowed: String,
    hint: Option<String>,
}

/// Reads a table; mistakes go to `notes` with their line in the table.
pub(super) fn read(
    notes: &mut Notes,
    source: &str,
    bytes: &[u8],
    frame: &Frame<'_>,
) -> Vec<Arrivals> {
    let mut mistakes = Vec::new();
    let streams = parse(bytes, frame, &mut mistakes);
    let source: Arc<str> = Arc::from(source);
    let more = mistakes.len().saturating_sub(MISTAKES_MAX);
    for mistake in mistakes.into_iter().take(MISTAKES_MAX) {
        let key = mistake.column.to_owned();
        let location = Location::in_other_file(Arc::clone(&source), mistake.line, key);
        notes.report(&location, mistake.finding, mistake.allowed, mistake.hint);
    }
    if more > 0 {
        let location = Location::in_other_file(source, 0, String::new());
        let finding = Finding::Remark(format!("{more} more mistakes"));
        notes.report(&location, finding, "", None);
    }
    streams
}

fn parse(bytes: &[u8], frame: &Frame<'_>, mistakes: &mut Vec<Mistake>) -> Vec<Arrivals> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(bytes);
    let mut streams: BTreeMap<Option<usize>, Vec<RatePoint>> = BTreeMap::new();
    let mut record = ByteRecord::new();
    let mut is_first = true;
    // Reading from memory cannot fail; a broken quote is only an odd field.
    while reader.read_byte_record(&mut record).unwrap_or(false) {
        let line = record.position().map_or(0, csv::Position::line);
        let line = usize::try_from(line).unwrap_or(usize::MAX);
        let fields: Vec<String> = record
            .iter()
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .collect();
        let is_heading = is_first && is_heading(&fields);
        is_first = false;
        if is_heading {
            continue;
        }
        if let Some((data_center, point)) = read_line(line, &fields, frame, mistakes) {
            let points = streams.entry(data_center).or_default();
            if points.last().is_some_and(|last| point.at < last.at) {
                mistakes.push(Mistake {
                    line,
                    column: "time",
                    finding: Finding::Remark("earlier than the line before".to_owned()),
                    allowed: String::new(),
                    hint: None,
                });
            }
            points.push(point);
        }
    }
    if streams.is_empty() && mistakes.is_empty() {
        mistakes.push(Mistake {
            line: 0,
            column: "",
            finding: Finding::Remark("no line with a time and a rate".to_owned()),
            allowed: String::new(),
            hint: None,
        });
    }
    let streams = streams.into_iter();
    streams
        .map(|(data_center, points)| Arrivals {
            data_center,
            points,
        })
        .collect()
}

/// Whether the first line names the columns: no digit in it begins a time or a rate.
fn is_heading(fields: &[String]) -> bool {
    let is_word = |field: &String| field.starts_with(char::is_alphabetic);
    fields.len() >= 2 && fields.iter().take(2).all(is_word)
}

fn read_line(
    line: usize,
    fields: &[String],
    frame: &Frame<'_>,
    mistakes: &mut Vec<Mistake>,
) -> Option<(Option<usize>, RatePoint)> {
    let mut reject = |column, found: String, allowed: &str, hint| {
        mistakes.push(Mistake {
            line,
            column,
            finding: Finding::Value(found),
            allowed: allowed.to_owned(),
            hint,
        });
    };
    let (time, rate, name) = match fields {
        [time, rate] => (time, rate, ""),
        [time, rate, name] => (time, rate, name.as_str()),
        _ => {
            let found = match fields.len() {
                1 => "1 column".to_owned(),
                count => format!("{count} columns"),
            };
            let has_other_commas = fields.iter().any(|field| field.contains([';', '\t']));
            let hint = has_other_commas.then(|| "put commas between the columns".to_owned());
            reject(
                "",
                found,
                "time, visitors per second, optionally a data center",
                hint,
            );
            return None;
        }
    };
    let at = read_time(time, frame.starts_at);
    if at.is_none() {
        reject("time", quoted(time), TIME, None);
    }
    let per_second: Option<f64> = rate.parse().ok();
    let per_second = per_second.filter(|rate| (0.0..=PER_SECOND_MAX).contains(rate));
    if per_second.is_none() {
        let allowed = format!("visitors per second, from 0 to {PER_SECOND_MAX}");
        reject("per_second", quoted(rate), &allowed, None);
    }
    let data_center = match frame.find(name).filter(|_| !name.is_empty()) {
        None => None,
        Some(Ok(index)) => Some(index),
        Some(Err(nearest)) => {
            let hint = nearest.map(did_you_mean);
            reject(
                "data_center",
                quoted(name),
                "the name of a data center",
                hint,
            );
            return None;
        }
    };
    let (at, per_second) = (at?, per_second?);
    Some((data_center, RatePoint { at, per_second }))
}

fn read_time(text: &str, starts_at: Timestamp) -> Option<DurationMs> {
    let span = duration::parse(text)
        .or_else(|| read_seconds(text))
        .or_else(|| {
            let moment = Moment.read(&DeValue::String(text.into())).ok()?;
            (moment >= starts_at).then(|| moment.since(starts_at))
        });
    span.filter(|span| *span <= LENGTH_MAX)
}

fn read_seconds(text: &str) -> Option<DurationMs> {
    let seconds: f64 = text.parse().ok()?;
    let is_possible = (0.0..=super::seconds(LENGTH_MAX)).contains(&seconds);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range: 0 to a month of milliseconds, rounded"
    )]
    let millis = (seconds * 1_000.0).round() as u64;
    is_possible.then_some(DurationMs(millis))
}

/// Reads `data` as a table, for fuzzers.
///
/// # Panics
///
/// Panics if a point is outside its bounds or out of order and no mistake was reported.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let frame = Frame {
        starts_at: Timestamp(1_900_000_000_000),
        length: LENGTH_MAX,
        folder: None,
        data_centers: Some(&[]),
        rooms: None,
    };
    let mut mistakes = Vec::new();
    let streams = parse(data, &frame, &mut mistakes);
    assert!(
        !streams.is_empty() || !mistakes.is_empty(),
        "an empty table was accepted"
    );
    for point in streams.iter().flat_map(|stream| &stream.points) {
        assert!(point.at <= LENGTH_MAX && (0.0..=PER_SECOND_MAX).contains(&point.per_second));
    }
    let is_ordered = |stream: &Arrivals| stream.points.is_sorted_by_key(|point| point.at);
    assert!(!mistakes.is_empty() || streams.iter().all(is_ordered));
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_900_000_000_000);

    fn parsed(text: &str) -> (Vec<Arrivals>, Vec<Mistake>) {
        let frame = Frame {
            starts_at: START,
            length: LENGTH_MAX,
            folder: None,
            data_centers: Some(&[]),
            rooms: None,
        };
        let mut mistakes = Vec::new();
        let streams = parse(text.as_bytes(), &frame, &mut mistakes);
        (streams, mistakes)
    }

    #[test]
    fn times_are_seconds_durations_or_moments() {
        let text = "time,visitors per second\n0,1\n1.5, 2\n1m,3.5\n\"2030-03-17T17:48:20Z\",4\n";
        let (streams, mistakes) = parsed(text);
        assert!(mistakes.is_empty());
        let points: Vec<_> = streams[0]
            .points
            .iter()
            .map(|point| (point.at.0, point.per_second))
            .collect();
        let expected = [(0, 1.0), (1_500, 2.0), (60_000, 3.5), (100_000, 4.0)];
        assert_eq!(points, expected);
    }

    #[test]
    fn every_bad_field_is_reported_with_its_line() {
        let (_, mistakes) = parsed("0,1\nx,1\n2,-1\n3\n4,5,nowhere\n1,1\n0,1\n");
        let positions: Vec<_> = mistakes.iter().map(|m| (m.line, m.column)).collect();
        let expected = [
            (2, "time"),
            (3, "per_second"),
            (4, ""),
            (5, "data_center"),
            (7, "time"),
        ];
        assert_eq!(positions, expected);
    }

    #[test]
    fn a_table_without_lines_is_a_mistake() {
        for text in ["", "time,rate\n", "# nothing\n"] {
            assert_eq!(parsed(text).1.len(), 1, "{text:?}");
        }
    }
}
